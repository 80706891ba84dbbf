"""All that anybody was ever sent or lent: nothing is forgotten, so everything can come late.

A message in here may be delivered again, a claim may belong to a zombie. Knows no order: who picks
decides what is a second delivery, and what a worker's last word.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shared.ledger.database import Database
from shared.ledger.deliverables import Deliverable
from shared.ledger.deliveries import DeliveryClaim
from shared.ledger.plans import PlannedPart, PlannedSegment
from shared.ledger.segments import Claim
from shared.ledger.steps import StepClaim
from shared.messages import DeliveryMessage, StepMessage, SynthMessage
from shared.segments import SegmentKind

TENANTS = ("default", "other")
BOOKS = ((2, 1), (4,), (1, 0, 2), (3, 2, 3), (0, 5))  # sentences of each part
SENTENCES = ("One.", "And two.", "Thirdly, three.", "In the fourth place, four.")


@dataclass(frozen=True)
class Book:
    """What a job's text comes to: speech segments of each part, each part with a rest at its end.

    A part without speech is a picture. Sentences repeat, within a book and between books.
    """

    tenant: str
    speech: tuple[int, ...]
    chunk: int
    reuse: bool

    def parts(self) -> list[PlannedPart]:
        return [
            PlannedPart(
                part, "", 0, 1, count, sum(len(self._sentence(part, i)) for i in range(count))
            )
            for part, count in enumerate(self.speech)
        ]

    def rows(self) -> list[PlannedSegment]:
        return list(self._rows())

    def _sentence(self, part: int, place: int) -> str:
        return SENTENCES[(2 * part + place) % len(SENTENCES)]

    def _rows(self) -> Iterator[PlannedSegment]:
        index = 0
        for part, count in enumerate(self.speech):
            for place in range(count + 1):
                speech = place < count
                said = self._sentence(part, place) if speech else ""
                yield PlannedSegment(
                    index=index,
                    part=part,
                    kind=SegmentKind.SPEECH if speech else SegmentKind.SILENCE,
                    start=index,
                    end=index + 1,
                    text=said,
                    pause_after_s=0.3,
                    reason="",
                    due_at=1_000.0 + index,
                    content_key=f"{self.tenant}: {said}" if speech else "",
                )
                index += 1


@dataclass
class PlanRun:
    """A worker at a plan: `stage` counts what it has done. Only one thread does it at a time."""

    claim: StepClaim
    stage: int = 0
    one_thread: threading.Lock = field(default_factory=threading.Lock)
    chunks: Sequence[Sequence[PlannedSegment]] = ()


@dataclass
class AssemblyRun:
    """A worker at an assembly: what it has made, once it has read what to make it of."""

    claim: StepClaim
    file: Deliverable | None = None
    part_key: str | None = None


@dataclass
class Held:
    """Everything, in the order in which it came."""

    database: Database
    books: dict[str, Book] = field(default_factory=dict)
    messages: list[SynthMessage] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    step_messages: list[StepMessage] = field(default_factory=list)
    plans: list[PlanRun] = field(default_factory=list)
    assemblies: list[AssemblyRun] = field(default_factory=list)
    letters: list[DeliveryMessage] = field(default_factory=list)
    deliveries: list[DeliveryClaim] = field(default_factory=list)

    @property
    def jobs(self) -> list[str]:
        """Ids of the jobs, the oldest first."""
        return list(self.books)
