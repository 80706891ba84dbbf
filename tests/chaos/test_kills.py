"""kill -9 of every kind of process, at random moments and at named code points.

One farm with the tone engine renders the same book again and again. Its audio spells a hash of
each sentence, so the delivered files alone tell order, absence and doubling; and they must equal,
sample for sample, those of an undisturbed run.
"""

import io
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import numpy as np
import psutil
import pytest
import soundfile

from benchmarks.farm_process import Watched, kind_of, start_up, wait_ready
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos")]

CHAPTERS = [
    {"title": f"Chapter {c}", "text": "\n\n".join(f"This is {c} {n} speaking." for n in range(30))}
    for c in range(1, 4)
]
SENTENCES = [[f"This is {c} {n} speaking." for n in range(30)] for c in range(1, 4)]
FARM_ENVIRONMENT = {
    "VOXFARM_LEASE_S": "3",
    "VOXFARM_VISIBILITY_TIMEOUT_S": "4",
    "VOXFARM_REDISPATCH_AFTER_S": "1",
    "VOXFARM_ENGINE_OPTIONS": '{"tone": {"delay_s": 0.05}}',
}
DEADLINE_S = 90.0


class ChaosFarm:
    """A real `voxfarm up` that can be wounded and, when its supervisor is killed, started again."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.crash_file = data_dir / "crash-at"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.reference: list[np.ndarray] | None = None

    def start(self) -> None:
        environment = FARM_ENVIRONMENT | {"VOXFARM_CRASH_FILE": str(self.crash_file)}
        self.process = start_up(self.data_dir, ["--engine", "tone", "--nodes", "2"], environment)
        self.url = wait_ready(self.process, self.data_dir)

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)

    def watched(self) -> Watched:
        assert self.process is not None
        return Watched(psutil.Process(self.process.pid), self.data_dir, self.url)

    def submit(self) -> str:
        body = {"chapters": CHAPTERS, "engine": "tone", "format": "flac"}
        key = os.urandom(8).hex()
        deadline = time.monotonic() + DEADLINE_S
        while True:  # an API that was killed before its answer is asked again with the same key
            try:
                reply = httpx.post(
                    f"{self.url}/v1/jobs", json=body, headers={"Idempotency-Key": key}, timeout=10
                )
                reply.raise_for_status()
                return str(reply.json()["id"])
            except httpx.HTTPError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def get(self, path: str) -> dict[str, object]:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                reply = httpx.get(f"{self.url}{path}", timeout=10)
                reply.raise_for_status()
                return dict(reply.json())
            except (httpx.HTTPError, ValueError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def wait_for_fraction(self, job_id: str, fraction: float) -> None:
        while True:
            job = self.get(f"/v1/jobs/{job_id}")
            if job["progress"]["fraction"] >= fraction:  # type: ignore[index]
                return
            time.sleep(0.02)

    def finish(self, job_id: str) -> list[np.ndarray]:
        """Wait for the job's end and return each chapter's PCM."""
        deadline = time.monotonic() + DEADLINE_S
        while (job := self.get(f"/v1/jobs/{job_id}"))["state"] in {
            "accepted",
            "planning",
            "rendering",
            "assembling",
        }:
            assert time.monotonic() < deadline, f"the job hangs: {job}"
            time.sleep(0.1)
        assert job["state"] == "completed", job
        files = self.get(f"/v1/jobs/{job_id}/deliverables")["files"]
        audio = [f for f in files if f["kind"] == "audio"]  # type: ignore[attr-defined,index]
        return [self._download(f["url"]) for f in audio]  # type: ignore[index]

    def _download(self, url: str) -> np.ndarray:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                content = httpx.get(url, timeout=20).raise_for_status().content
                return soundfile.read(io.BytesIO(content), dtype="int16")[0]
            except httpx.HTTPError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def check(self, chapters: list[np.ndarray]) -> None:
        """Every sentence once and in order; the same samples as the undisturbed run."""
        for sentences, pcm in zip(SENTENCES, chapters, strict=True):
            marks = decode(pcm.astype(np.float32) / 32_768, 24_000)
            assert [m.hash_hex for m in marks] == [utterance_hash(s, "a", 1.0) for s in sentences]
        if self.reference is None:
            self.reference = chapters
        for mine, undisturbed in zip(chapters, self.reference, strict=True):
            np.testing.assert_array_equal(mine, undisturbed)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosFarm]:
    farm = ChaosFarm(tmp_path_factory.mktemp("chaos"))
    farm.start()
    try:
        farm.check(farm.finish(farm.submit()))  # the undisturbed run
        yield farm
    finally:
        farm.stop()


KINDS = (
    "engine host",
    "consumer",
    "node",
    "cpu worker",
    "deliver worker",
    "scheduler",
    "api",
    "valkey",
    "seaweedfs",
    "flower",
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_process_costs_neither_a_sentence_nor_a_sample(farm: ChaosFarm, kind: str) -> None:
    job_id = farm.submit()
    fraction = random.Random(kind).uniform(0.05, 0.6)
    farm.wait_for_fraction(job_id, fraction)
    victims = farm.watched().processes(kind)
    assert victims, f"no {kind} runs"
    random.Random(kind).choice(victims).kill()
    farm.check(farm.finish(job_id))
    assert all(not p.is_running() or kind_of(p) == kind for p in victims)


def test_a_killed_supervisor_takes_all_down_and_the_next_one_finishes_the_job(
    farm: ChaosFarm,
) -> None:
    job_id = farm.submit()
    farm.wait_for_fraction(job_id, 0.3)
    watched = farm.watched()
    children = watched.process.children(recursive=True)
    assert farm.process is not None
    farm.process.kill()
    farm.process.wait()
    _gone, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
    farm.start()
    farm.check(farm.finish(job_id))


CRASH_POINTS = (
    "job.accepted",
    "plan.claimed",
    "plan.opened",
    "plan.chunk_written",
    "plan.finished",
    "dispatch.marked",
    "dispatch.step_marked",
    "segment.claimed",
    "segment.rendered",
    "segment.stored",
    "segment.committed",
    "assemble.claimed",
    "assemble.stored",
    "assemble.committed",
)


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_process_killed_at_a_named_point_costs_neither_a_sentence_nor_a_sample(
    farm: ChaosFarm, point: str
) -> None:
    farm.crash_file.write_text(point)
    chapters = farm.finish(farm.submit())
    assert not farm.crash_file.exists(), f"no process passed {point}"
    farm.check(chapters)
