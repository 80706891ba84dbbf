"""Pausing and cancelling on a whole farm: the devices are free for others within a batch.

The engine takes half a second a sentence and a node claims 32 at a time: without their being taken
back and dropped, a job's claims would hold the device for sixteen seconds.
"""

import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from benchmarks.farm_process import Watched, running_farm
from cli.client import FarmClient
from cli.job_request import JobRequest
from cli.replies import Job
from shared.jobs import JobState

CLAIMS = 32  # four times the slots of the one node
SENTENCE_S = 0.5
LONG = "\n\n".join(f"This is sentence number {n} of the story." for n in range(60))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.xdist_group("farm")]


@pytest.fixture(scope="module")
def farm() -> Iterator[Watched]:
    options = f'{{"tone": {{"delay_s": {SENTENCE_S}}}}}'
    with running_farm(
        engine="tone", nodes=1, environment={"VOXFARM_ENGINE_OPTIONS": options}
    ) as farm:
        yield farm


@pytest.fixture
def client(farm: Watched) -> Iterator[FarmClient]:
    with FarmClient(farm.url) as client:
        yield client


def submit(client: FarmClient, text: str) -> Job:
    return client.submit(JobRequest(text=text, engine="tone", format="flac"))


def wait_for_segments(client: FarmClient, job: Job, count: int) -> None:
    deadline = time.monotonic() + 60
    while client.job(job.id).progress.segments_done < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def wait_for_end(client: FarmClient, job: Job) -> float:
    """Seconds until the job has ended, well."""
    began = time.monotonic()
    *_, last = client.follow(job.id)
    assert last.state is JobState.COMPLETED
    return time.monotonic() - began


def voxfarm(farm: Watched, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "jobs", *words, "--url", farm.url],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_a_paused_job_stands_still_lets_others_by_and_goes_on_where_it_was(
    farm: Watched, client: FarmClient
) -> None:
    book = submit(client, LONG)
    wait_for_segments(client, book, 2)
    assert f"job {book.id} is rendering (paused)" in voxfarm(farm, "pause", book.id)
    done = client.job(book.id).progress.segments_done
    waiting = httpx.get(f"{farm.url}/v1/tiers").json()["tiers"][1]["backlog"]
    assert waiting["segments_waiting"] == 0
    news = submit(client, "One sentence of news.")
    # The claims of the book finish first; nothing else of it is begun.
    assert wait_for_end(client, news) < CLAIMS * SENTENCE_S + 5
    time.sleep(CLAIMS * SENTENCE_S)
    stood = client.job(book.id)
    assert stood.paused
    assert stood.progress.segments_done <= done + CLAIMS
    time.sleep(2 * SENTENCE_S)
    assert client.job(book.id).progress == stood.progress
    assert "(paused)" in voxfarm(farm, "show", book.id)
    assert f"job {book.id} is rendering" in voxfarm(farm, "resume", book.id)
    wait_for_end(client, book)
    assert client.job(book.id).progress.segments_done == 60


def test_a_cancelled_job_is_dropped_by_the_device_within_a_batch(client: FarmClient) -> None:
    book = submit(client, LONG.replace("story", "novel"))
    wait_for_segments(client, book, 2)
    time.sleep(1)
    assert client.cancel(book.id).state is JobState.CANCELLED
    news = submit(client, "Another sentence of news.")
    assert (
        wait_for_end(client, news) < 4.0
    )  # planning, one sentence, its file; not the 32 that were claimed
