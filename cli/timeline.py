"""Where a render's time went, told from what the client saw. Pure but for the clock passed in."""

from collections.abc import Callable
from dataclasses import dataclass, field

from cli.replies import Job
from shared.jobs import JobState

STAGES = ("start", "plan", "render", "assemble", "download")


@dataclass(slots=True)
class Timeline:
    """Begins stages in their order; going back is ignored (a retried job renders again)."""

    clock: Callable[[], float]
    _began_s: dict[str, float] = field(default_factory=dict)
    _ended_s: float | None = None

    def begin(self, stage: str) -> None:
        """Say that `stage` begins now, which ends the one before it."""
        later = STAGES[STAGES.index(stage) :]
        if not any(name in self._began_s for name in later):
            self._began_s[stage] = self.clock()

    def see(self, job: Job) -> None:
        """Begin whatever stage the job has come to."""
        match job.state:
            case JobState.ACCEPTED | JobState.PLANNING:
                self.begin("plan")
            case JobState.RENDERING if not _all_spoken(job):
                self.begin("render")
            case _:
                self.begin("assemble")

    def end(self) -> None:
        """Say that the last stage has ended."""
        self._ended_s = self.clock()

    def since_s(self, stage: str) -> float:
        """Seconds since `stage` began; 0 if it has not."""
        began_s = self._began_s.get(stage)
        return 0.0 if began_s is None else self.clock() - began_s

    def spans_s(self) -> dict[str, float]:
        """Seconds spent in each stage that was entered, in order."""
        names = [stage for stage in STAGES if stage in self._began_s]
        begins = [self._began_s[name] for name in names]
        last = self._ended_s if self._ended_s is not None else self.clock()
        ends = [*begins[1:], last]
        return {name: end - begin for name, begin, end in zip(names, begins, ends, strict=True)}


def _all_spoken(job: Job) -> bool:
    at = job.progress
    settled = at.segments_done + at.segments_quarantined + at.segments_skipped
    return at.segments_total > 0 and settled >= at.segments_total
