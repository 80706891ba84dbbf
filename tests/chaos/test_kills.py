"""kill -9 of every kind of process, at random moments and at named code points.

One farm with the tone engine renders the same book again and again. Its audio spells a hash of
each sentence, so the delivered files alone tell order, absence and doubling; and they must equal,
sample for sample, those of an undisturbed run.
"""

import random

import psutil
import pytest

from benchmarks.farm_process import kind_of
from tests.chaos.farm import ChaosFarm

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos 1")]

KINDS = (
    "engine host",
    "consumer",
    "node",
    "cpu worker",
    "deliver worker",
    "scheduler",
    "api",
    "valkey",
    "seaweedfs",
    "flower",
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_process_costs_neither_a_sentence_nor_a_sample(farm: ChaosFarm, kind: str) -> None:
    job_id = farm.submit()
    fraction = random.Random(kind).uniform(0.05, 0.6)
    farm.wait_for_fraction(job_id, fraction)
    victims = farm.watched().processes(kind)
    assert victims, f"no {kind} runs"
    random.Random(kind).choice(victims).kill()
    farm.check(farm.finish(job_id))
    assert all(not p.is_running() or kind_of(p) == kind for p in victims)


def test_a_killed_supervisor_takes_all_down_and_the_next_one_finishes_the_job(
    farm: ChaosFarm,
) -> None:
    job_id = farm.submit()
    farm.wait_for_fraction(job_id, 0.3)
    watched = farm.watched()
    children = watched.process.children(recursive=True)
    assert farm.process is not None
    farm.process.kill()
    farm.process.wait()
    _gone, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
    farm.start()
    farm.check(farm.finish(job_id))


CRASH_POINTS = (
    "plan.opened",
    "plan.chunk_written",
    "dispatch.step_marked",
    "segment.claimed",
    "segment.stored",
    "segment.committed",
    "assemble.stored",
)
# Between two lines that others of them enclose: with `scripts/chaos` only.
MORE_CRASH_POINTS = (
    "plan.claimed",
    "plan.finished",
    "dispatch.marked",
    "segment.rendered",
    "assemble.claimed",
    "assemble.committed",
    "manifest.stored",
)


@pytest.mark.parametrize(
    "point", [*CRASH_POINTS, *(pytest.param(p, marks=pytest.mark.long) for p in MORE_CRASH_POINTS)]
)
def test_a_process_killed_at_a_named_point_costs_neither_a_sentence_nor_a_sample(
    farm: ChaosFarm, point: str
) -> None:
    farm.crash_file.write_text(point)
    chapters = farm.finish(farm.submit())
    assert not farm.crash_file.exists(), f"no process passed {point}"
    farm.check(chapters)


@pytest.mark.long
@pytest.mark.parametrize(
    "point", ["plan.opened", "plan.chunk_written", "plan.finished", "assemble.committed"]
)
def test_a_book_that_is_all_there_survives_it_too_and_nothing_is_spoken_again(
    farm: ChaosFarm, point: str
) -> None:
    farm.finish(farm.submit(reuse=True))
    farm.crash_file.write_text(point)
    job_id = farm.submit(reuse=True)
    farm.check(farm.finish(job_id))
    assert not farm.crash_file.exists(), f"no process passed {point}"
    assert sum(s["attempts"] for s in farm.manifest(job_id)["segments"]) == 0  # type: ignore[attr-defined]
