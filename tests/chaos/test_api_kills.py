"""kill -9 of the API at every point between the request and the queue: no job, or one that ends.

The points are the API's alone: no other process passes one of these names.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import httpx
import psutil
import pytest
from sqlalchemy import select

from shared.ledger import tables as t
from tests.chaos.farm import SENTENCES, ChaosFarm, opened
from tests.chaos.test_faults import heard
from worker.engines.tone import utterance_hash

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos 2")]

TEXT = SENTENCES[0][:3]
BODY = {"text": "\n\n".join(TEXT), "engine": "tone", "format": "flac", "reuse": False}
BEFORE_THE_COMMIT = ("api.read", "api.writing", "api.written")
AFTER_THE_COMMIT = (
    "api.accepted",
    "api.answering",
    "api.step_marking",
    "api.step_marked",
    "api.step_sent",
)
POINTS = (*BEFORE_THE_COMMIT, *AFTER_THE_COMMIT)
EDGES = (BEFORE_THE_COMMIT[-1], AFTER_THE_COMMIT[0])  # of the commit
DEATHS_A_FARM = 4


@pytest.fixture(scope="module")
def deaths() -> Iterator[int]:
    """Counts the tests of this module, each of which is a death of the API."""
    return count()


@pytest.fixture(autouse=True)
def patience(farm: ChaosFarm, deaths: Iterator[int]) -> None:
    """A supervisor gives up after five deaths within a minute, so no farm sees more than four."""
    before = next(deaths)
    if before and before % DEATHS_A_FARM == 0:
        farm.stop()
        farm.start()


def jobs_of(farm: ChaosFarm) -> set[str]:
    with opened(farm) as (database, _):
        return database.read(lambda conn: set(conn.execute(select(t.job.c.id)).scalars()))


def set_trap(farm: ChaosFarm, point: str) -> psutil.Process:
    """Have the API die at a point. Returns its process."""
    [api] = farm.watched().processes("api")
    farm.crash_file.write_text(point)
    return api


def must_have_died(farm: ChaosFarm, api: psutil.Process, point: str) -> None:
    psutil.wait_procs([api], timeout=60)
    assert not api.is_running(), f"the API did not die at {point}"
    assert not farm.crash_file.exists(), f"the API did not pass {point}"
    farm.get("/readyz")  # until the next one answers


def must_be_whole(farm: ChaosFarm, job_id: str) -> None:
    [pcm] = farm.finish(job_id)
    assert heard(pcm) == [utterance_hash(sentence, "a", 1.0) for sentence in TEXT]


@pytest.mark.parametrize(
    "point",
    [p if p in EDGES else pytest.param(p, marks=pytest.mark.long) for p in POINTS],
)
def test_who_asks_an_api_that_dies_again_has_one_job_that_is_whole(
    farm: ChaosFarm, point: str
) -> None:
    before = jobs_of(farm)
    api = set_trap(farm, point)
    job_id = farm.send(BODY)
    must_have_died(farm, api, point)
    must_be_whole(farm, job_id)
    assert jobs_of(farm) - before == {job_id}


@pytest.mark.parametrize("point", POINTS)
def test_who_asks_once_has_no_job_or_one_that_is_whole(farm: ChaosFarm, point: str) -> None:
    before = jobs_of(farm)
    api = set_trap(farm, point)
    answered = None
    with suppress(httpx.TransportError):
        answered = httpx.post(f"{farm.url}/v1/jobs", json=BODY, timeout=60)
    must_have_died(farm, api, point)
    made = jobs_of(farm) - before
    assert len(made) == (0 if point in BEFORE_THE_COMMIT else 1)
    for job_id in made:
        must_be_whole(farm, job_id)
    if answered is not None:  # death may come after the answer, which then must be true
        assert {answered.raise_for_status().json()["id"]} == made
