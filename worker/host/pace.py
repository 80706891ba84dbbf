"""Tells a step that hangs from one that is only long, by the steps before it. Knows no engine.

The host remembers how long its steps take (`Pace`) and says so in its vitals; who watches it judges
by them (`HangWatch`). A host that is killed for nothing costs its batch a try, so the rule is slow
to judge: what is larger than all before it, the first steps, and whatever is no step, get all the
time there is; and only time during which the watcher was awake and the host answered counts.
"""

from dataclasses import dataclass

from worker.host.protocol import Vitals

KNOWN_AFTER_STEPS = 20
TIMES_LONGEST = 20.0
LEAST_S = 10.0  # no step is held to hang before that, however fast the device
LONGEST_LOOK_S = 2.0  # more between two looks was a pause of the machine's, or of the watcher's
_FADES = 0.999  # of the longest step, with each shorter one: a slow first one counts no longer


@dataclass(frozen=True, slots=True)
class Pace:
    """What the steps so far were like: the longest, and the largest in rows and characters."""

    steps: int = 0
    longest_s: float = 0.0
    most_rows: int = 0
    most_chars: int = 0

    def after(self, rows: int, chars: int, took_s: float) -> "Pace":
        """With one more step that went well: its rows, its longest text, its length."""
        return Pace(
            self.steps + 1,
            max(took_s, _FADES * self.longest_s),
            max(rows, self.most_rows),
            max(chars, self.most_chars),
        )

    def usual_s(self, rows: int, chars: int) -> float:
        """The longest that a step like this has taken; 0 when nothing like it is known."""
        known = rows <= self.most_rows and chars <= self.most_chars
        return self.longest_s if known and self.steps >= KNOWN_AFTER_STEPS else 0.0


def allowed_s(usual_s: float, most_s: float) -> float:
    """How long a step may take before it is held to hang: never more than `most_s`."""
    if usual_s <= 0:
        return most_s
    return min(most_s, max(LEAST_S, TIMES_LONGEST * usual_s))


@dataclass(slots=True)
class HangWatch:
    """Judges one host by its vitals, looked at again and again. `most_s` is what any step gets."""

    most_s: float
    _steps: int = -1
    _looked_s: float = 0.0
    _watched_s: float = 0.0

    def hangs(self, vitals: Vitals, now_s: float) -> bool:
        """Whether what the host does now has gone on for too long; `now_s` is monotonic."""
        elapsed_s, self._looked_s = now_s - self._looked_s, now_s
        same = vitals.steps == self._steps and vitals.busy_s > 0
        self._steps = vitals.steps
        self._watched_s = self._watched_s + min(elapsed_s, LONGEST_LOOK_S) if same else 0.0
        if vitals.busy_s > self.most_s:
            return True
        stuck_s = min(vitals.busy_s, self._watched_s)
        return stuck_s > allowed_s(vitals.usual_s, self.most_s)
