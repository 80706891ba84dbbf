"""What the farm delivers is listened to: a small recogniser must find every sentence in it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from benchmarks.farm_process import Watched
from benchmarks.judges import hold_against, transcribe, whisper_tiny_en
from benchmarks.planned import SAMPLE, sentences
from cli.client import FarmClient
from cli.job_request import JobRequest

EXAMPLE = Path(__file__).parents[2] / "examples" / "text_to_url.py"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_every_sentence_of_the_sample_is_heard(hibari_farm: Watched, tmp_path: Path) -> None:
    text = SAMPLE.read_text()
    with FarmClient(hibari_farm.url) as farm:
        job = farm.submit(JobRequest(text=text, format="mp3"))
        for _seen in farm.follow(job.id):
            pass
        [audio] = [f for f in farm.deliverables(job.id) if f.kind == "audio"]
    path = tmp_path / "sample.mp3"
    path.write_bytes(httpx.get(audio.url).raise_for_status().content)
    hearing = hold_against(sentences(text), transcribe(whisper_tiny_en(), path))
    assert hearing.missing_sentences == ()
    assert hearing.wer < 0.12  # tiny.en errs about twice as often as the base model


def test_the_example_of_the_readme_prints_a_playable_url(hibari_farm: Watched) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), hibari_farm.url], check=True, capture_output=True, text=True
    )
    url = done.stdout.split()[-1]
    audio = httpx.get(url)
    assert audio.headers["content-type"] == "audio/mpeg"
    assert audio.content[:3] == b"ID3" or audio.content[0] == 0xFF


def test_flower_shows_every_sentence_as_a_task(hibari_farm: Watched) -> None:
    with FarmClient(hibari_farm.url) as farm:
        job = farm.submit(JobRequest(text="This is the first.\n\nThis is the second.", tier="rush"))
        for _seen in farm.follow(job.id):
            pass
    flower = json.loads((hibari_farm.data_dir / "farm.json").read_text())["flower_url"]
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        tasks = httpx.get(f"{flower}/api/tasks", params={"limit": 10_000}).json()
        states = {number: tasks.get(f"{job.id}.{number}.1", {}).get("state") for number in range(2)}
        if states == {0: "SUCCESS", 1: "SUCCESS"}:
            break
        time.sleep(0.2)  # events are sent in groups, half a second late at most
    assert states == {0: "SUCCESS", 1: "SUCCESS"}
    expected = {"synth.rush", "synth.standard", "synth.bulk", "plan"}
    while time.monotonic() < deadline:
        queues = httpx.get(f"{flower}/api/queues/length").json()["active_queues"]
        if expected <= {queue["name"] for queue in queues}:
            break
        # Who did not answer Flower's first question within a second is asked again.
        httpx.get(f"{flower}/api/workers", params={"refresh": True}, timeout=20)
    assert expected <= {queue["name"] for queue in queues}
