"""What nodes do with sentences, in any order and however late: claim, renew, commit, give back.

An engine here is a hash: which content it was asked to speak can be told from the audio.
"""

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection

from shared import object_keys
from shared.ledger import blame, segments, settling, taking_over
from shared.ledger.giving_up import give_up
from shared.ledger.renderings import Audio
from shared.ledger.segments import Claim
from shared.messages import SynthMessage
from tests.contract.ledger.machine.held import Held

LEASE_S = 3_600.0  # the machine decides when a lease has run out, not the clock
MOST_CRASHES = 2
RATE_HZ = 24_000


def claim(held: Held, message: SynthMessage) -> None:
    claimed = held.database.transact(
        lambda conn: segments.claim(
            conn, message.job_id, message.index, message.dispatch_no, lease_s=LEASE_S
        )
    )
    if claimed is not None:
        held.claims.append(claimed)


def renew(held: Held, claimed: Claim) -> None:
    def work(conn: Connection) -> None:
        where = (claimed.job_id, claimed.index, claimed.token)
        if not segments.renew(conn, *where, lease_s=LEASE_S):
            blame.forgive(conn, claimed)

    held.database.transact(work)


def stand_alone(held: Held, claimed: Claim, *, alone: bool) -> None:
    held.database.transact(
        lambda conn: blame.stand_alone(conn, claimed, alone=alone, lease_s=LEASE_S)
    )


def commit(held: Held, together: Sequence[Claim]) -> None:
    """Commit what ended together; all of it is one job's."""
    first = together[0]
    count = len(together)
    key = object_keys.segment_audio(
        first.tenant, first.job_id, first.index, first.token, together=count
    )
    rendered = [
        (one.index, one.token, audio(key, one.content_key, place))
        for place, one in enumerate(together)
    ]
    held.database.transact(lambda conn: settling.commit(conn, first.job_id, rendered))


def take_over(held: Held, claimed: Claim) -> None:
    """Commit audio that another job has had made, if there is any."""
    if held.books[claimed.job_id].reuse:
        held.database.transact(lambda conn: taking_over.take_over(conn, claimed))


def audio(object_key: str, content_key: str, place: int = 0) -> Audio:
    samples = 100 * len(content_key)
    return Audio(object_key, 1_000 * place, 1_000, spoken(content_key), samples, RATE_HZ)


def spoken(content_key: str) -> str:
    """The hash of the audio in which this content is spoken."""
    return hashlib.sha256(content_key.encode()).hexdigest()


def release(held: Held, claimed: Claim, *, delay_s: float) -> None:
    def work(conn: Connection) -> None:
        where = (claimed.job_id, claimed.index, claimed.token)
        if not segments.release(conn, *where, delay_s=delay_s, error="the store is away"):
            blame.forgive(conn, claimed)

    held.database.transact(work)


def put_back(held: Held, claimed: Claim) -> None:
    where = (claimed.job_id, claimed.index, claimed.token)
    held.database.transact(lambda conn: segments.put_back(conn, *where))


def crash(held: Held, claimed: Claim, *, alone: bool) -> None:
    """The engine broke under a sentence: as a node does it, in one transaction."""

    def decide(conn: Connection) -> None:
        where = (claimed.job_id, claimed.index)
        known = blame.testify(conn, claimed, crashed=alone, suspect=not alone)
        if known is None:
            return
        if known.crashes < MOST_CRASHES:
            segments.release(conn, *where, claimed.token, delay_s=0.0, error="it crashed")
        else:
            give_up(conn, *where, known.token, "it crashed alone")

    held.database.transact(decide)
