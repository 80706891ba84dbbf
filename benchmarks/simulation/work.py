"""What a simulated farm renders: jobs, their sentences, and when each was done. Decides nothing."""

from dataclasses import dataclass
from math import inf

from shared.scheduling.offer import WaitingSegment
from shared.tiers import Tier


@dataclass(slots=True, eq=False)
class SimJob:
    """A job from its arrival to its last sentence. Times are seconds of the simulation.

    `flood` marks the jobs of a tenant who sends far more at once than its share. A job that came
    before the simulation began has `first_due_s` infinite: its first audio is long out.
    """

    id: str
    tenant: str
    tier: Tier
    arrives_s: float
    due_s: float
    first_due_s: float
    segments: list[WaitingSegment]
    chars: list[int]
    flood: bool = False
    sent: int = 0
    done: int = 0
    first_done_s: float = inf
    last_done_s: float = inf

    @property
    def head(self) -> WaitingSegment:
        """The next sentence to be sent."""
        return self.segments[self.sent]

    @property
    def all_sent(self) -> bool:
        """Whether nothing waits any more."""
        return self.sent == len(self.segments)

    @property
    def kept(self) -> bool:
        """Whether the promise was kept: first audio and completion, both in time."""
        return self.first_done_s <= self.first_due_s and self.last_done_s <= self.due_s


@dataclass(frozen=True, slots=True)
class Sent:
    """A sentence on its way to a device. `place` is its position in the job's lists."""

    job: SimJob
    place: int

    @property
    def segment(self) -> WaitingSegment:
        """The sentence itself."""
        return self.job.segments[self.place]


def send_next(job: SimJob) -> Sent:
    """Take a job's next sentence."""
    sent = Sent(job, job.sent)
    job.sent += 1
    return sent
