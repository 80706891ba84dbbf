"""Storing and committing renderings: those of one job that end together, in one go.

One object holds their audio one after the other, one transaction commits them, each under its own
fencing token: a stale one loses alone.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from shared import object_keys
from shared.crashpoints import crash_point
from shared.farm import Farm
from shared.ledger import settling
from shared.ledger.renderings import Audio
from shared.ledger.segments import Claim
from shared.tiers import Tier
from worker.companions import Companions


@dataclass(frozen=True, slots=True)
class Rendering:
    """A claimed segment's audio as it is to be stored: `samples` of it, mono, at `rate_hz`."""

    claim: Claim
    data: bytes
    samples: int
    rate_hz: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a finished try leaves to do: a step to send, a window to fill."""

    step_id: str | None
    window_is_low: bool


def settler(farm: Farm) -> Companions[Rendering, Outcome]:
    """Where renderings arrive, by job id, to be stored and committed."""
    most, wait_s = farm.settings.commit_most, farm.settings.commit_wait_s
    return Companions(partial(_settle, farm), most=most, wait_s=wait_s)


def _settle(farm: Farm, renderings: Sequence[Rendering]) -> list[Outcome]:
    """Store and commit renderings of one job. Raises TransientError: then none is committed."""
    first = renderings[0].claim
    key = object_keys.segment_audio(
        first.tenant, first.job_id, first.index, first.token, together=len(renderings)
    )
    data = b"".join(rendering.data for rendering in renderings)
    farm.store.put(key, data, content_type="audio/flac")
    crash_point("segment.stored")
    placed = list(_placed(key, renderings))

    def commit(conn: Connection) -> list[Outcome]:
        committed = settling.commit(conn, first.job_id, placed)
        low = farm.dispatcher.is_low(conn, Tier(first.tier))
        # One of them is enough to fill the window.
        return [Outcome(c.step_id, low and place == 0) for place, c in enumerate(committed)]

    outcomes = farm.database.transact(commit)
    crash_point("segment.committed")
    return outcomes


def _placed(key: str, renderings: Sequence[Rendering]) -> list[tuple[int, int, Audio]]:
    placed, offset_bytes = [], 0
    for r in renderings:
        sha256 = hashlib.sha256(r.data).hexdigest()
        audio = Audio(key, offset_bytes, len(r.data), sha256, r.samples, r.rate_hz)
        placed.append((r.claim.index, r.claim.token, audio))
        offset_bytes += len(r.data)
    return placed
