"""What is tried: attack, length of the excerpt, how it is searched, and what must come of it."""

from dataclasses import dataclass

from worker.watermark.detect import Speeds


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the table. `errors_allowed` of `trials`; None: measured, but no bar."""

    attack: str
    length_s: float
    trials: int
    errors_allowed: int | None
    speeds: Speeds = Speeds.MARKED

    @property
    def name(self) -> str:
        """As it stands in reports."""
        return f"{self.attack} {self.length_s:g} s"


_STRICT = ("pcm", "mp3-64k", "aac-64k", "16khz", "8khz", "gain+12db", "gain-12db", "eq-6db")
_WEAK = ("noise-10db", "opus-12k-voip", "reverb-0.3s")
_OTHERS = ("mp3-32k", "aac-32k", "vorbis-q0", "g711", "noise-20db", "telephone-band", *_WEAK)
_FAST = ("speed+2%", "speed-2%")

CELLS = (
    *(Cell(attack, 15, 1_000, 1) for attack in _STRICT),
    *(Cell(attack, 15, 1_000, 1, Speeds.WIDE) for attack in _FAST),
    Cell("opus-24k", 20, 1_000, 1),
    Cell("chain", 30, 1_000, 1),
    *(Cell(attack, 30, 500, 5) for attack in _WEAK),
    *(Cell(attack, 45, 500, 1) for attack in _WEAK),
    *(Cell(attack, 15, 200, None) for attack in _OTHERS),
    *(Cell(attack, length_s, 200, None) for attack in ("pcm", "mp3-64k") for length_s in (3, 5)),
    Cell("tempo+2%", 15, 200, None, Speeds.WIDE),
)
HIGH_LENGTH_S = 3.0
HIGH_TRIALS = 1_000
HIGH_KEPT = ("pcm", "mp3-128k", "aac-128k", "opus-64k")
HIGH_LOST = ("mp3-64k", "opus-24k", "16khz")
WRONG_KEY_TRIALS, KEYS_A_TRIAL = 313, 32  # 10,016 pairs
UNMARKED_LENGTH_S = 30.0
UNMARKED_TRIALS = 36_000  # 300 key-hours
UNMARKED_WIDE_EVERY = 8
AVERAGING_TRIALS = 200
COPIES_TRIALS = 200
