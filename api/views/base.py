"""What all views share: frozen, and times in UTC."""

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict


class View(BaseModel):
    """A frozen answer."""

    model_config = ConfigDict(frozen=True)


def utc(epoch_s: float) -> datetime:
    """A moment of the ledger's clock as a date."""
    return datetime.fromtimestamp(epoch_s, UTC)


def utc_or_none(epoch_s: float | None) -> datetime | None:
    """Likewise, for what may not have happened yet."""
    return None if epoch_s is None else utc(epoch_s)


def duration_s(samples: int, rate_hz: int) -> float | None:
    """Length of audio; None for what is not audio (rate 0)."""
    return samples / rate_hz if rate_hz else None
