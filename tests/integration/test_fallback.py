"""A whole farm with two engines: what the first cannot speak, the second does, and it is said."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.farm_process import start_up, wait_ready

pytestmark = pytest.mark.slow
TEXT = "This one is easy.\n\nThis one is hard: [[fail]].\n\nAnd this one is easy again."
HARD = (TEXT.index("This one is hard"), TEXT.index("And this"))


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("farm")
    process = start_up(Path(data), ["--engine", "tone", "--engine", "simulated", "--nodes", "1"])
    try:
        yield wait_ready(process, data)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def ended(url: str, **asked: object) -> tuple[dict[str, object], dict[str, object]]:
    """The job and its manifest, once it has ended."""
    body = {"text": TEXT, "engine": "tone", "format": "flac"} | asked
    job = httpx.post(f"{url}/v1/jobs", json=body).raise_for_status().json()
    deadline_s = time.monotonic() + 90
    while job["state"] in {"accepted", "planning", "rendering", "assembling"}:
        assert time.monotonic() < deadline_s
        time.sleep(0.2)
        job = httpx.get(f"{url}/v1/jobs/{job['id']}").json()
    files = httpx.get(f"{url}/v1/jobs/{job['id']}/deliverables").json()["files"]
    [manifest] = [file["url"] for file in files if file["kind"] == "manifest"]
    return job, httpx.get(manifest).json()


def test_what_the_engine_gives_up_is_spoken_by_the_fallback_and_named(farm: str) -> None:
    job, manifest = ended(farm, fallback_engine="simulated")
    assert job["state"] == "completed"
    assert job["fallback_engine"] == "simulated"
    assert manifest["gaps"] == []
    [spoken] = manifest["fallbacks"]
    assert spoken["engine"] == "simulated"
    assert HARD[0] <= spoken["start"] < spoken["end"] <= HARD[1]


def test_without_one_it_is_a_gap(farm: str) -> None:
    job, manifest = ended(farm)
    assert job["state"] == "partial"
    assert len(manifest["gaps"]) == 1
    assert manifest["fallbacks"] == []
