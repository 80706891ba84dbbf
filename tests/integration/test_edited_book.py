"""An edited book on a whole farm: only what changed is spoken and encoded, and all is right."""

import io
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile

from benchmarks.farm_process import Watched, running_farm
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
DEADLINE_S = 90.0
CHAPTERS, SENTENCES = 4, 12
Book = list[list[str]]


@pytest.fixture(scope="module")
def farm() -> Iterator[Watched]:
    with running_farm(engine="tone", nodes=1) as farm:
        yield farm


def book(name: str) -> Book:
    return [
        [f"This is sentence {c} {n} of {name}." for n in range(SENTENCES)] for c in range(CHAPTERS)
    ]


def render(farm: Watched, chapters: Book, **wishes: object) -> dict[str, Any]:
    parts = [
        {"title": f"Chapter {n}", "text": "\n\n".join(chapter)}
        for n, chapter in enumerate(chapters)
    ]
    body = {"chapters": parts, "engine": "tone", "format": "flac"} | wishes
    job = httpx.post(f"{farm.url}/v1/jobs", json=body, timeout=20).raise_for_status().json()
    deadline = time.monotonic() + DEADLINE_S
    while job["state"] in {"accepted", "planning", "rendering", "assembling"}:
        assert time.monotonic() < deadline, job
        time.sleep(0.1)
        job = httpx.get(f"{farm.url}/v1/jobs/{job['id']}", timeout=20).json()
    assert job["state"] == "completed", job
    found: dict[str, Any] = job
    return found


def files(farm: Watched, job: dict[str, Any]) -> list[dict[str, Any]]:
    reply = httpx.get(f"{farm.url}/v1/jobs/{job['id']}/deliverables", timeout=20)
    listed: list[dict[str, Any]] = reply.raise_for_status().json()["files"]
    return listed


def manifest(farm: Watched, job: dict[str, Any]) -> dict[str, Any]:
    [url] = [file["url"] for file in files(farm, job) if file["kind"] == "manifest"]
    written: dict[str, Any] = httpx.get(url, timeout=20).raise_for_status().json()
    return written


def heard(farm: Watched, job: dict[str, Any]) -> list[list[str]]:
    """What each chapter's file says, as hashes of utterances."""
    chapters = []
    for file in files(farm, job):
        if file["kind"] == "audio":
            content = httpx.get(file["url"], timeout=20).raise_for_status().content
            pcm = soundfile.read(io.BytesIO(content), dtype="float32")[0]
            chapters.append([mark.hash_hex for mark in decode(pcm.astype(np.float32), 24_000)])
    return chapters


def said(chapters: Book) -> list[list[str]]:
    return [[utterance_hash(sentence, "a", 1.0) for sentence in c] for c in chapters]


def claims(written: dict[str, Any]) -> int:
    return sum(segment["attempts"] for segment in written["segments"])


def test_an_edited_book_claims_its_changed_sentences_and_encodes_their_chapters(
    farm: Watched,
) -> None:
    first = render(farm, book("the first edition"))
    assert first["reuse"] == {"segments": 0, "of": 48, "parts": 0}
    edited = book("the first edition")
    edited[1][5] = "This sentence was changed."
    edited[3].insert(0, "This one is new, at the very beginning.")
    del edited[3][7]
    job = render(farm, edited)
    assert job["reuse"] == {"segments": 46, "of": 48, "parts": 2}
    assert heard(farm, job) == said(edited)
    written = manifest(farm, job)
    assert claims(written) == 2
    old, new = ([f["sha256"] for f in files(farm, j)[:CHAPTERS]] for j in (first, job))
    assert [a == b for a, b in zip(old, new, strict=True)] == [True, False, True, False]
    # Every sentence lies where the manifest says, in reused files too.
    for n, chapter in enumerate(said(edited)):
        url = files(farm, job)[n]["url"]
        content = httpx.get(url, timeout=20).content
        pcm = soundfile.read(io.BytesIO(content), dtype="float32")[0].astype(np.float32)
        places = [
            (s["start_sample"], s["end_sample"])
            for s in written["segments"]
            if s["part"] == n and s["kind"] == "speech"
        ]
        for (start, end), expected in zip(places, chapter, strict=True):
            [mark] = decode(pcm[start:end], 24_000)
            assert mark.hash_hex == expected


def test_what_shapes_the_sound_or_the_file_is_not_taken_from_elsewhere(farm: Watched) -> None:
    one = book("another book")[:1]
    before = figures(farm)
    render(farm, one)
    assert grown(before, figures(farm)) == {"planned": 12, "reused": 0, "parts": 0}
    for wishes, reuse in (
        ({}, (12, 1)),
        ({"voice": "b"}, (0, 0)),
        ({"speed": 1.5}, (0, 0)),
        ({"seed": 5}, (0, 1)),  # spoken anew; this engine says it as before, so its file will do
        ({"reuse": False}, (0, 0)),
        ({"format": "wav"}, (12, 0)),
        ({"sample_rate_hz": 48_000}, (12, 0)),
        ({"pauses": {"sentence_s": 0.5, "paragraph_s": 0.9}}, (12, 0)),
    ):
        job = render(farm, one, **wishes)
        assert (job["reuse"]["segments"], job["reuse"]["parts"]) == reuse, wishes
    # As often as jobs say so, and no oftener: of nine jobs four took 12 sentences, two the file.
    assert grown(before, figures(farm)) == {"planned": 9 * 12, "reused": 4 * 12, "parts": 2}


def figures(farm: Watched) -> dict[str, float]:
    """The unlabelled figures of /metrics."""
    lines = httpx.get(f"{farm.url}/metrics", timeout=20).raise_for_status().text.splitlines()
    pairs = (line.split(" ") for line in lines if line.startswith("voxfarm_") and "{" not in line)
    return {name: float(value) for name, value in pairs}


def grown(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """By how much the figures of reuse have grown."""
    names = {
        "planned": "voxfarm_segments_planned_total",
        "reused": "voxfarm_segments_reused_total",
        "parts": "voxfarm_parts_reused_total",
    }
    return {what: after[name] - before[name] for what, name in names.items()}


def test_a_deleted_job_takes_its_files_along_but_not_those_of_an_edition_that_shares_them(
    farm: Watched,
) -> None:
    text = book("a third book")[:2]
    first = render(farm, text)
    edited = [text[0], [*text[1], "One more."]]
    second = render(farm, edited)
    deleted = subprocess.run(
        [sys.executable, "-m", "cli", "jobs", "delete", first["id"], "--url", farm.url],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert deleted.stdout == f"job {first['id']} is expired\n"
    gone = httpx.get(f"{farm.url}/v1/jobs/{first['id']}/deliverables", timeout=20)
    assert (gone.status_code, gone.json()["code"]) == (410, "job-expired")
    assert heard(farm, second) == said(edited)
    third = render(farm, text)
    assert third["reuse"]["segments"] == 24
