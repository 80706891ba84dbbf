"""Jobs in several voices share a farm's queue at once, and each sentence keeps its own voice."""

import io
import time

import httpx
import pytest
import soundfile

from benchmarks.farm_process import running_farm
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode

pytestmark = pytest.mark.slow
VOICES = ("a", "b", "c")
SENTENCES = [f"This is the sentence with number {n}." for n in range(30)]


def test_no_sentence_is_spoken_in_the_voice_of_another_job() -> None:
    with (
        running_farm(engine="tone", nodes=2) as farm,
        httpx.Client(base_url=farm.url, timeout=30) as client,
    ):
        body = {"text": "\n\n".join(SENTENCES), "engine": "tone", "format": "wav"}
        asked = [
            body | {"voice": voice, "speed": speed} for voice in VOICES for speed in (1.0, 1.5)
        ]
        jobs = [client.post("/v1/jobs", json=one).raise_for_status().json() for one in asked]
        heard = [spoken(client, job["id"]) for job in jobs]
    for wish, marks in zip(asked, heard, strict=True):
        voice, speed = str(wish["voice"]), float(str(wish["speed"]))
        assert marks == [utterance_hash(sentence, voice, speed) for sentence in SENTENCES]


def spoken(client: httpx.Client, job_id: str) -> list[str]:
    """The hashes that the delivered file spells, once it is there."""
    deadline_s = time.monotonic() + 120
    while (job := client.get(f"/v1/jobs/{job_id}").json())["state"] != "completed":
        assert job["error"] is None, job["error"]
        assert time.monotonic() < deadline_s
        time.sleep(0.2)
    files = client.get(f"/v1/jobs/{job_id}/deliverables").json()["files"]
    [url] = [file["url"] for file in files if file["kind"] == "audio"]
    samples, rate_hz = soundfile.read(io.BytesIO(httpx.get(url).content), dtype="float32")
    return [mark.hash_hex for mark in decode(samples, rate_hz)]
