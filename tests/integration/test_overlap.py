"""Parts are assembled while others are still rendered: a reader of chapter one need not wait."""

import hashlib
import io
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import soundfile

from benchmarks.farm_process import Watched, running_farm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
DEADLINE_S = 90.0
FIRST, SECOND = 2, 120  # sentences; the second chapter takes a minute at least
ENVIRONMENT = {"VOXFARM_ENGINE_OPTIONS": json.dumps({"tone": {"delay_s": 0.5}})}


@pytest.fixture(scope="module")
def farm() -> Iterator[Watched]:
    with running_farm(engine="tone", nodes=1, environment=ENVIRONMENT) as farm:
        yield farm


def chapter(name: str, sentences: int) -> dict[str, str]:
    text = "\n\n".join(f"This is sentence {n} of the {name}." for n in range(sentences))
    return {"title": name, "text": text}


def test_the_first_chapters_file_is_there_while_the_second_is_spoken(farm: Watched) -> None:
    chapters = [chapter("beginning", FIRST), chapter("end", SECOND)]
    body = {"chapters": chapters, "engine": "tone", "format": "flac", "reuse": False}
    with httpx.Client(base_url=farm.url, timeout=20) as client:
        job = client.post("/v1/jobs", json=body).raise_for_status().json()
        here = f"/v1/jobs/{job['id']}"
        deadline_s = time.monotonic() + DEADLINE_S
        files = list[dict[str, Any]]()
        while not files:
            assert time.monotonic() < deadline_s, client.get(here).json()
            time.sleep(0.1)
            files = client.get(f"{here}/deliverables").raise_for_status().json()["files"]
        job = client.get(here).json()  # asked after the file was there
        audio = httpx.get(files[0]["url"], timeout=20).raise_for_status().content
        assert client.post(f"{here}/cancel").is_success

    assert job["state"] == "rendering"
    assert (job["progress"]["parts_done"], job["progress"]["parts_total"]) == (1, 2)
    assert FIRST <= job["progress"]["segments_done"] < FIRST + SECOND
    [file] = files
    assert (file["kind"], file["part"], file["title"]) == ("audio", 0, "beginning")
    assert hashlib.sha256(audio).hexdigest() == file["sha256"]
    assert soundfile.info(io.BytesIO(audio)).frames == file["samples"] > 0
