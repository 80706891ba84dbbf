"""What the farm can promise now: each tier's backlog in audio, and how long until it is done.

Reads the ledger and applies the forecast; decides nothing. Admission, quotes and `GET /v1/tiers`
all speak from here, so that they agree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from shared.ledger import backlog, kept, nodes
from shared.ledger.backlog import TierLoad
from shared.ledger.clock import read_clock
from shared.ledger.kept import Record
from shared.scheduling.depth import room
from shared.scheduling.forecast import Rate, Spoken, audio_per_char_s, drains_s, rate_of
from shared.settings import Settings
from shared.tiers import Tier
from shared.voices import EngineInfo

_CHARS_PER_AUDIO_S = EngineInfo.model_fields["chars_per_audio_s"].default


@dataclass(frozen=True, slots=True)
class TierOutlook:
    """One tier. `audio_per_char_s` is what a character of it has become lately, silent ends too.

    `wait_s` is None while no rate is known: nothing was rendered for a day, or no node is alive.
    """

    load: TierLoad
    last_hour: Record
    last_day: Record
    audio_per_char_s: float
    backlog_audio_s: float
    wait_s: float | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """All tiers at one moment of the ledger's clock, and the rate that all of them share."""

    at: float
    rate: Rate | None
    tiers: Mapping[Tier, TierOutlook]


def rate(conn: Connection, settings: Settings) -> Rate | None:
    """The rate alone: what the door goes by."""
    return _rate(conn, [backlog.spoken(conn, tier) for tier in Tier], settings, read_clock(conn))


def _rate(
    conn: Connection, spoken: Sequence[Sequence[Spoken]], settings: Settings, now_s: float
) -> Rate | None:
    fleets = nodes.fleets(conn)
    rooms = [
        room(fleets, settling=settings.commit_most, max_batch=settings.tiers[tier].max_batch)
        for tier in Tier
    ]
    return rate_of(spoken, now_s=now_s, rooms=rooms)


def read(conn: Connection, settings: Settings) -> Outlook:
    """The outlook now; what the default engine says of its pace is the prior of every tier."""
    now, loads = backlog.read(conn)
    last_hour = kept.read(conn, now, within_s=kept.HOUR_S)
    last_day = kept.read(conn, now, within_s=kept.DAY_S)
    known = {record.info.name: record.info for record in nodes.engines(conn)}
    info = known.get(settings.default_engine)
    prior = _CHARS_PER_AUDIO_S if info is None else info.chars_per_audio_s
    rate = _rate(conn, [load.spoken for load in loads.values()], settings, now)
    per_char_s = {
        tier: audio_per_char_s(load.spoken, chars_per_audio_s=prior) for tier, load in loads.items()
    }
    audio_s = {tier: load.backlog.chars * per_char_s[tier] for tier, load in loads.items()}
    waits_s = drains_s(audio_s, rate)
    return Outlook(
        at=now,
        rate=rate,
        tiers={
            tier: TierOutlook(
                load,
                last_hour[tier],
                last_day[tier],
                per_char_s[tier],
                audio_s[tier],
                waits_s[tier],
            )
            for tier, load in loads.items()
        },
    )
