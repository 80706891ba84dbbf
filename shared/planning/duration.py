"""How long a plan's audio will be, before any of it is spoken. Knows no engine but its pace."""

from collections.abc import Callable
from dataclasses import dataclass

from shared.planning.pieces import Plan
from shared.segments import SegmentKind

LEAD_IN_S = 0.1  # what the stitcher puts before each part


@dataclass(frozen=True, slots=True)
class Expected:
    """What a plan will become. `chars` are those that are spoken; audio in seconds."""

    segments: int
    skipped: int
    chars: int
    audio_s: float


def expected(plan: Plan, *, speech_s: Callable[[str], float], speed: float) -> Expected:
    """What is spoken at the engine's pace, and the pauses as they are.

    `speech_s` tells how many seconds a text takes at speed 1, without pauses.

    The pace is that of delivered audio, which is stitched without the silence at the ends of
    segments. Over a page or more the engine's pace holds within a few per cent; a single sentence
    may differ by a third.
    """
    spoken = [piece for piece in plan.pieces if piece.kind is SegmentKind.SPEECH]
    chars = sum(len(piece.text) for piece in spoken)
    parts = {piece.part for piece in spoken}
    pauses_s = sum(piece.pause_after_s for piece in plan.pieces)
    return Expected(
        segments=len(spoken),
        skipped=sum(piece.kind is SegmentKind.SKIP for piece in plan.pieces),
        chars=chars,
        audio_s=sum(speech_s(piece.text) for piece in spoken) / speed
        + pauses_s
        + LEAD_IN_S * len(parts),
    )
