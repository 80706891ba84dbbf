"""A tier as clients see it: what it promises, what waits in it, and how it has kept its word."""

from datetime import datetime
from typing import Self

from pydantic import Field

from api.views.base import View, utc
from shared.ledger.kept import Kept
from shared.outlook import Outlook
from shared.settings import TierSettings
from shared.tiers import Tier


class TargetView(View):
    """What the tier promises, in seconds from the submit."""

    first_audio_s: float
    per_1000_chars_s: float = Field(description="completion, for every 1,000 characters")
    floor_s: float = Field(description="least time for completion, however short the text")


class BacklogView(View):
    """Work that is not done, without that of paused jobs."""

    jobs_unplanned: int = Field(description="accepted, not yet divided into segments")
    segments_waiting: int
    segments_in_flight: int = Field(description="sent to a node, or being spoken")
    characters: int
    audio_s: float = Field(description="the length that the audio of it is expected to have")
    oldest_age_s: float | None = Field(description="age of the oldest job not all spoken")


class KeptView(View):
    """Promises that fell due: they were kept, or their time was over."""

    jobs: int
    met: int
    share: float | None = Field(description="0 to 1; null: no job")

    @classmethod
    def of(cls, kept: Kept) -> Self:
        """The view of a count."""
        return cls(jobs=kept.jobs, met=kept.met, share=kept.share)


class TierView(View):
    """One tier now."""

    tier: Tier
    target: TargetView
    backlog: BacklogView
    predicted_wait_s: float | None = Field(
        description=(
            "time until all that waits here, and in more urgent tiers, is done at the measured "
            "rate; null: not known, since no node is alive or nothing was rendered for a day"
        )
    )
    met_last_hour: KeptView = Field(description="completion: ended by `due_at`, not as failed")
    met_last_day: KeptView
    first_audio_last_hour: KeptView = Field(description="the first audio was there in time")
    first_audio_last_day: KeptView


class TierList(View):
    """All tiers, most urgent first."""

    at: datetime
    rate_audio_s_per_s: float | None = Field(
        description=(
            "audio seconds that the farm makes a second while it has enough to do; null: not known"
        )
    )
    rate_is_bound: bool = Field(
        description="true: it never had enough to do of late, so this is the most that it may be"
    )
    tiers: list[TierView]

    @classmethod
    def of(cls, outlook: Outlook, targets: dict[Tier, TierSettings]) -> Self:
        """The view of an outlook under these targets."""
        return cls(
            at=utc(outlook.at),
            rate_audio_s_per_s=outlook.rate.audio_s_per_s if outlook.rate else None,
            rate_is_bound=outlook.rate is not None and outlook.rate.is_bound,
            tiers=[_tier(tier, outlook, targets[tier]) for tier in Tier],
        )


def _tier(tier: Tier, outlook: Outlook, target: TierSettings) -> TierView:
    here = outlook.tiers[tier]
    waiting = here.load.backlog
    oldest_at = waiting.oldest_at
    return TierView(
        tier=tier,
        target=TargetView(
            first_audio_s=target.first_audio_s,
            per_1000_chars_s=target.per_1000_chars_s,
            floor_s=target.floor_s,
        ),
        backlog=BacklogView(
            jobs_unplanned=waiting.jobs_unplanned,
            segments_waiting=waiting.segments_waiting,
            segments_in_flight=waiting.segments_in_flight,
            characters=waiting.chars,
            audio_s=here.backlog_audio_s,
            oldest_age_s=None if oldest_at is None else max(0.0, outlook.at - oldest_at),
        ),
        predicted_wait_s=here.wait_s,
        met_last_hour=KeptView.of(here.last_hour.completion),
        met_last_day=KeptView.of(here.last_day.completion),
        first_audio_last_hour=KeptView.of(here.last_hour.first_audio),
        first_audio_last_day=KeptView.of(here.last_day.first_audio),
    )
