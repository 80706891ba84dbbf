"""Two jobs of one text at once, on a whole farm: what one has in hand the other does not speak."""

import io
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from sqlalchemy import ColumnElement, func, select

from benchmarks.farm_process import Watched, running_farm
from shared.ledger import tables as t
from shared.ledger.database import Database, open_database
from shared.segments import SegmentState
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
DEADLINE_S = 90.0
SENTENCES = 6  # fewer than the engine has slots: all of them are leased at once
ENVIRONMENT = {
    "VOXFARM_ENGINE_OPTIONS": json.dumps({"tone": {"delay_s": 1.5}}),
}


@pytest.fixture(scope="module")
def farm() -> Iterator[Watched]:
    with running_farm(engine="tone", nodes=1, environment=ENVIRONMENT) as farm:
        yield farm


@pytest.fixture
def database(farm: Watched) -> Iterator[Database]:
    with open_database(f"sqlite:///{farm.data_dir / 'voxfarm.db'}") as database:
        yield database


def sentences(name: str) -> list[str]:
    return [f"This is sentence {n} of {name}." for n in range(SENTENCES)]


def submit(farm: Watched, text: list[str], **wishes: object) -> str:
    body = {"text": "\n\n".join(text), "engine": "tone", "format": "flac"} | wishes
    job = httpx.post(f"{farm.url}/v1/jobs", json=body, timeout=20).raise_for_status().json()
    return str(job["id"])


def finish(farm: Watched, job_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        job: dict[str, Any] = httpx.get(f"{farm.url}/v1/jobs/{job_id}", timeout=20).json()
        if job["state"] not in {"accepted", "planning", "rendering", "assembling"}:
            assert job["state"] == "completed", job
            return job
        assert time.monotonic() < deadline, job
        time.sleep(0.1)


def heard(farm: Watched, job_id: str) -> list[str]:
    reply = httpx.get(f"{farm.url}/v1/jobs/{job_id}/deliverables", timeout=20).json()
    [url] = [file["url"] for file in reply["files"] if file["kind"] == "audio"]
    content = httpx.get(url, timeout=20).raise_for_status().content
    pcm = soundfile.read(io.BytesIO(content), dtype="float32")[0]
    return [mark.hash_hex for mark in decode(pcm.astype(np.float32), 24_000)]


def said(text: list[str]) -> list[str]:
    return [utterance_hash(sentence, "a", 1.0) for sentence in text]


def count(database: Database, job_id: str, which: ColumnElement[bool]) -> int:
    query = select(func.count()).where(t.segment.c.job_id == job_id, which)
    return database.read(lambda conn: int(conn.execute(query).scalar_one()))


def spoken(database: Database, job_id: str) -> int:
    """How many of a job's sentences an engine spoke for it."""
    return count(database, job_id, t.segment.c.claimed_at.is_not(None))


def wait(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def all_in_hand(database: Database, job_id: str) -> Callable[[], bool]:
    leased = t.segment.c.state.in_((SegmentState.LEASED, SegmentState.DONE))
    return lambda: count(database, job_id, leased) == SENTENCES


def test_a_text_that_is_being_spoken_is_not_spoken_again_for_another_job(
    farm: Watched, database: Database
) -> None:
    text = sentences("a text")
    first = submit(farm, text)
    wait(all_in_hand(database, first))
    second = submit(farm, text)
    job = finish(farm, second)
    finish(farm, first)
    assert count(database, second, t.segment.c.follows) > 0
    assert spoken(database, first) + spoken(database, second) == SENTENCES
    assert job["reuse"]["segments"] == SENTENCES
    assert heard(farm, first) == heard(farm, second) == said(text)


@pytest.mark.long
def test_rush_speaks_itself_what_a_standard_job_has_in_hand(
    farm: Watched, database: Database
) -> None:
    text = sentences("a hurry")
    first = submit(farm, text)
    wait(all_in_hand(database, first))
    second = submit(farm, text, tier="rush")
    finish(farm, second)
    finish(farm, first)
    assert count(database, second, t.segment.c.follows) == 0
    assert heard(farm, second) == said(text)


@pytest.mark.long
def test_who_follows_a_worker_that_dies_is_whole_all_the_same(
    farm: Watched, database: Database
) -> None:
    text = sentences("a death")
    first = submit(farm, text)
    wait(all_in_hand(database, first))
    second = submit(farm, text)
    wait(lambda: count(database, second, t.segment.c.follows) > 0)
    httpx.post(f"{farm.url}/v1/jobs/{first}/cancel", timeout=20).raise_for_status()
    for consumer in farm.processes("consumer"):
        consumer.kill()
    finish(farm, second)
    assert heard(farm, second) == said(text)
