"""What the farm delivers is listened to: a small recogniser must find every sentence in it."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from benchmarks.judges import hold_against, transcribe, whisper_tiny_en
from benchmarks.planned import SAMPLE, sentences
from cli.client import FarmClient
from cli.job_request import JobRequest

EXAMPLE = Path(__file__).parents[2] / "examples" / "text_to_url.py"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_every_sentence_of_the_sample_is_heard(hibari_farm: str, tmp_path: Path) -> None:
    text = SAMPLE.read_text()
    with FarmClient(hibari_farm) as farm:
        job = farm.submit(JobRequest(text=text, format="mp3"))
        for _seen in farm.follow(job.id):
            pass
        [audio] = [f for f in farm.deliverables(job.id) if f.kind == "audio"]
    path = tmp_path / "sample.mp3"
    path.write_bytes(httpx.get(audio.url).raise_for_status().content)
    hearing = hold_against(sentences(text), transcribe(whisper_tiny_en(), path))
    assert hearing.missing_sentences == ()
    assert hearing.wer < 0.12  # tiny.en errs about twice as often as the base model


def test_the_example_of_the_readme_prints_a_playable_url(hibari_farm: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), hibari_farm], check=True, capture_output=True, text=True
    )
    url = done.stdout.split()[-1]
    audio = httpx.get(url)
    assert audio.headers["content-type"] == "audio/mpeg"
    assert audio.content[:3] == b"ID3" or audio.content[0] == 0xFF
