"""When a job and each of its segments are due. Pure: times in, times out (epoch seconds)."""

from shared.settings import TierSettings

FIRST_SEGMENTS = 3  # so many must be there for playback to begin without a stop


def job_due_at(created_at: float, chars: int, target: TierSettings) -> float:
    """The completion target of a job of so many characters."""
    return created_at + max(target.floor_s, target.per_1000_chars_s * chars / 1000)


def first_due_at(created_at: float, due_at: float, target: TierSettings) -> float:
    """The target of a job's first audio; never later than that of all of it."""
    return min(created_at + target.first_audio_s, due_at)


def segment_due_at(
    created_at: float, due_at: float, index: int, fraction_before: float, target: TierSettings
) -> float:
    """A segment's own deadline: the first few by the first-audio target, the rest spread evenly.

    `fraction_before` is the share of the job's characters that come before this segment.
    """
    first_at = first_due_at(created_at, due_at, target)
    if index < FIRST_SEGMENTS:
        return first_at
    return first_at + (due_at - first_at) * fraction_before
