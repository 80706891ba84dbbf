"""How right a job's ETA is, on its way, against when it really ended: alone and beside others.

Reads the API as any client would. A steady neighbour is a job that was there before the book and is
there after it.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.farm_process import Watched, running_farm
from benchmarks.planned import FOUR_CHAPTERS
from benchmarks.tenants import ENDED, Tenant, ask_ledger

FRACTIONS = (0.1, 0.2, 0.3, 0.5, 0.7)
POLL_S = 0.25
NEIGHBOUR_LEAD_S = 15.0  # so long the neighbour was alone before the book came
WITHIN_S = 900.0
DEVICE = {"base_s": 0.12, "per_item_s": 0.11}  # 8 sentences a second: little work for the rest
JOB_COLUMNS = "id, tenant, tier, created_at, due_at, rendered_at, ended_at"
SEGMENT_COLUMNS = 'job_id, "index", chars, due_at, dispatched_at, claimed_at, done_at, samples'


@dataclass(frozen=True, slots=True)
class Arm:
    """A book, and what it has beside it. `neighbour` is (tenant, tier); None: it is alone.

    `copies` of the text make the neighbour; `joins_s` is when it comes, from the book's submit on.
    """

    name: str
    tier: str = "standard"
    neighbour: tuple[str, str] | None = None
    copies: int = 6
    joins_s: float = -NEIGHBOUR_LEAD_S
    judged: bool = True


ARMS = (
    Arm("alone"),
    Arm("same_tenant", neighbour=("a", "standard")),
    Arm("other_tenant", neighbour=("b", "standard")),
    Arm("beside_bulk", neighbour=("b", "bulk")),
    Arm("bulk_beside_bulk", tier="bulk", neighbour=("b", "bulk")),
    Arm("together", neighbour=("b", "standard"), joins_s=0.0),
    # What nobody can know, or what changes on the way: shown, not judged.
    Arm("joined_late", neighbour=("b", "standard"), joins_s=20.0, judged=False),
    Arm("neighbour_ends", neighbour=("b", "standard"), copies=1, judged=False),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a job said of itself at a moment (epoch seconds)."""

    at: float
    fraction: float
    eta_s: float | None


def measure(arm: Arm, *, engine: str, nodes: int, traces: Path | None) -> dict[str, object]:
    """A farm of its own for the arm; errors by fraction, and the quote against what came."""
    text = FOUR_CHAPTERS.read_text(encoding="utf-8")
    with farm_with(engine, nodes) as farm:
        book_tenant = Tenant(farm, "a", engine)
        tenants = {"a": book_tenant, "b": Tenant(farm, "b", engine)}
        book_tenant.wait_ended(book_tenant.submit("One warm-up sentence.", "rush"), within_s=60)
        joined = _Neighbour(arm, tenants, text)
        joined.come(before_book=True)
        quoted = book_tenant.quote(text, arm.tier)
        book = book_tenant.submit(text, arm.tier)
        submitted_s = time.monotonic()
        readings = list[Reading]()
        while (job := book_tenant.job(book))["state"] not in ENDED:
            progress = job["progress"]
            readings.append(Reading(time.time(), progress["fraction"], progress["eta_s"]))
            if time.monotonic() - submitted_s > WITHIN_S:
                raise TimeoutError(f"{arm.name}: the book did not end")
            if time.monotonic() - submitted_s >= arm.joins_s:
                joined.come(before_book=False)
            time.sleep(POLL_S)
        ended_at = _epoch_s(job["ended_at"])
        if traces is not None:
            _keep(farm, traces / f"{arm.name}.json", book, readings)
        joined.go()
        [(audio_s,)] = ask_ledger(
            farm,
            "SELECT sum(1.0 * samples / rate_hz) FROM deliverable"
            " WHERE job_id = ? AND kind = 'audio'",
            (book,),
        )
    errors = dict(errors_of(readings, ended_at))
    return {
        "took_s": round(ended_at - _epoch_s(job["created_at"]), 1),
        "eta_error_at": errors,
        "quoted_audio_error": round(quoted["audio_s"] / audio_s - 1, 3),
        "quoted_completion_s": quoted["completion_s"],
    }


def errors_of(readings: list[Reading], ended_at: float) -> Iterator[tuple[str, float | None]]:
    """The relative error of the time left, at the first reading from each fraction on."""
    for fraction in FRACTIONS:
        reading = next((one for one in readings if one.fraction >= fraction), None)
        if reading is None or reading.eta_s is None:
            yield f"{fraction:.0%}", None
        else:
            yield f"{fraction:.0%}", round(reading.eta_s / (ended_at - reading.at) - 1, 3)


@contextmanager
def farm_with(engine: str, nodes: int, device: Mapping[str, float] = DEVICE) -> Iterator[Watched]:
    """A farm that refuses nobody and waits for no one."""
    environment = {
        "VOXFARM_ENGINE_OPTIONS": json.dumps({"simulated": dict(device)}),
        "VOXFARM_REFUSE_WHEN_FULL": "false",
        "VOXFARM_REQUESTS_PER_S": "0",
    }
    with running_farm(engine=engine, nodes=nodes, environment=environment) as farm:
        yield farm


class _Neighbour:
    """The job beside the book."""

    def __init__(self, arm: Arm, tenants: Mapping[str, Tenant], text: str) -> None:
        self._arm, self._tenants, self._text = arm, tenants, text
        self._job: str | None = None

    def come(self, *, before_book: bool) -> None:
        """Submit it, once, when its time has come; early ones get their lead."""
        arm = self._arm
        if self._job or arm.neighbour is None or before_book != (arm.joins_s < 0):
            return
        tenant, tier = arm.neighbour
        self._job = self._tenants[tenant].submit("\n\n".join([self._text] * arm.copies), tier)
        time.sleep(max(0.0, -arm.joins_s))

    def go(self) -> None:
        """Cancel what is left of it."""
        if self._job and self._arm.neighbour is not None:
            self._tenants[self._arm.neighbour[0]].cancel(self._job)


def _epoch_s(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def _keep(farm: Watched, path: Path, book: str, readings: list[Reading]) -> None:
    """Write down everything that an estimate could have been made from."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {
        "book": book,
        "readings": [[one.at, one.fraction, one.eta_s] for one in readings],
        "jobs": ask_ledger(farm, f"SELECT {JOB_COLUMNS} FROM job"),  # noqa: S608 - constants
        "segments": ask_ledger(
            farm,
            f"SELECT {SEGMENT_COLUMNS} FROM segment"  # noqa: S608 - constants
            " WHERE kind = 'speech' ORDER BY done_at",
        ),
    }
    path.write_text(json.dumps(kept), encoding="utf-8")
