"""Pausing and cancelling on a whole farm: the device is free for others within a batch.

A batch takes a second and a half and a node claims four batches at a time: without what waits being
given back or dropped, a job's claims would hold the device for six seconds.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.farm_process import Watched, running_farm
from cli.client import FarmClient
from cli.job_request import JobRequest
from cli.replies import Job
from shared.jobs import JobState

SLOTS = 8
BATCH_S = 1.5
SENTENCES = 60
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("device") / "journal"


@pytest.fixture(scope="module")
def farm(journal: Path) -> Iterator[Watched]:
    device = {"base_s": BATCH_S, "per_item_s": 0.0, "slots": SLOTS, "journal": str(journal)}
    options = json.dumps({"simulated": device})
    with running_farm(
        engine="simulated", nodes=1, environment={"VOXFARM_ENGINE_OPTIONS": options}
    ) as farm:
        yield farm


@pytest.fixture
def client(farm: Watched) -> Iterator[FarmClient]:
    with FarmClient(farm.url) as client:
        yield client


def story_of(title: str) -> str:
    return "\n\n".join(f"This is sentence number {n} of {title}." for n in range(SENTENCES))


def submit(client: FarmClient, text: str) -> Job:
    return client.submit(JobRequest(text=text, engine="simulated", format="flac"))


def fill_the_device(client: FarmClient, title: str) -> Job:
    """A job whose sentences are on the device, and wait for it in every thread."""
    book = submit(client, story_of(title))
    deadline = time.monotonic() + 60
    while client.job(book.id).progress.segments_done < SLOTS:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return book


def wait_for_end(client: FarmClient, job: Job) -> None:
    *_, last = client.follow(job.id)
    assert last.state is JobState.COMPLETED


def batches(journal: Path, title: str, *, begun_after: float = 0.0) -> list[list[str]]:
    """The batches with sentences of a story, as far as they are of it."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    of_it = (
        [text for text in line["texts"] if title in text]
        for line in lines
        if line["began_at"] > begun_after
    )
    return [texts for texts in of_it if texts]


def attempts(farm: Watched, job: Job) -> list[int]:
    """How many tries each sentence of a job took that is there."""
    page = httpx.get(f"{farm.url}/v1/jobs/{job.id}/segments", params={"limit": 200}).json()
    return [segment["attempts"] for segment in page["data"] if segment["state"] == "done"]


def voxfarm(farm: Watched, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "jobs", *words, "--url", farm.url],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_a_paused_job_leaves_the_device_to_others_and_goes_on_where_it_was(
    farm: Watched, client: FarmClient, journal: Path
) -> None:
    book = fill_the_device(client, "the story")
    client.pause(book.id)
    paused_at = time.time()
    waiting = httpx.get(f"{farm.url}/v1/tiers").json()["tiers"][1]["backlog"]
    assert waiting["segments_waiting"] == 0
    news = submit(client, "One sentence of the news.")
    wait_for_end(client, news)
    assert f"job {book.id} is rendering (paused)" in voxfarm(farm, "pause", book.id)
    stood = client.job(book.id)
    assert stood.paused
    assert stood.progress.segments_done == sum(map(len, batches(journal, "the story")))
    time.sleep(2 * BATCH_S)
    assert client.job(book.id).progress == stood.progress
    # One batch may begin before the consumers have looked; four had been claimed.
    assert len(batches(journal, "the story", begun_after=paused_at)) <= 1
    assert "(paused)" in voxfarm(farm, "show", book.id)
    assert f"job {book.id} is rendering" in voxfarm(farm, "resume", book.id)
    wait_for_end(client, book)
    assert attempts(farm, book) == [1] * SENTENCES
    spoken = Counter(text for texts in batches(journal, "the story") for text in texts)
    assert len(spoken) == SENTENCES


def test_pausing_and_going_on_at_once_again_and_again_loses_nothing(
    farm: Watched, client: FarmClient, journal: Path
) -> None:
    book = fill_the_device(client, "the saga")
    for wait_s in (0.0, 0.1, 0.2, 0.3, 0.4):
        client.pause(book.id)
        time.sleep(wait_s)
        client.resume(book.id)
        time.sleep(0.2)
    wait_for_end(client, book)
    assert attempts(farm, book) == [1] * SENTENCES
    assert {text for texts in batches(journal, "the saga") for text in texts} == set(
        story_of("the saga").split("\n\n")
    )


def test_a_cancelled_job_is_dropped_by_the_device_within_a_batch(
    client: FarmClient, journal: Path
) -> None:
    book = fill_the_device(client, "the novel")
    assert client.cancel(book.id).state is JobState.CANCELLED
    cancelled_at = time.time()
    news = submit(client, "Another sentence of the news.")
    wait_for_end(client, news)
    assert len(batches(journal, "the novel", begun_after=cancelled_at)) <= 1
