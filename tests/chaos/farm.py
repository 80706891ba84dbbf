"""A real farm that tests wound, and the book that they render on it."""

import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import soundfile

from benchmarks.farm_process import Watched, start_up, wait_ready
from cli.servers.seaweed import SeaweedServer
from shared.ledger.database import Database, open_database
from shared.settings import Settings
from shared.storage import S3Store
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode

CHAPTERS = [
    {"title": f"Chapter {c}", "text": "\n\n".join(f"This is {c} {n} speaking." for n in range(30))}
    for c in range(1, 4)
]
SENTENCES = [[f"This is {c} {n} speaking." for n in range(30)] for c in range(1, 4)]
FARM_ENVIRONMENT = {
    "VOXFARM_LEASE_S": "3",
    "VOXFARM_VISIBILITY_TIMEOUT_S": "4",
    "VOXFARM_REDISPATCH_AFTER_S": "1",
    "VOXFARM_WEBHOOK_ALLOW_HTTP": "true",
    "VOXFARM_WEBHOOK_ALLOWED_NETWORKS": '["127.0.0.0/8"]',
    "VOXFARM_WEBHOOK_TIMEOUT_S": "5",
    "VOXFARM_HOST_SILENCE_S": "5",  # as usual, longer than a lease
}
DEADLINE_S = 90.0


class ChaosFarm:
    """A real `voxfarm up` that can be wounded and, when its supervisor is killed, started again."""

    def __init__(self, data_dir: Path, environment: Mapping[str, str] = FARM_ENVIRONMENT) -> None:
        self.data_dir = data_dir
        self.environment = environment
        self.crash_file = data_dir / "crash-at"
        self.sick_file = data_dir / "sick"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.reference: list[np.ndarray] | None = None

    def start(self) -> None:
        tone = {"delay_s": 0.05, "sick_file": str(self.sick_file)}
        environment = {
            "VOXFARM_ENGINE_OPTIONS": json.dumps({"tone": tone}),
            **self.environment,
            "VOXFARM_CRASH_FILE": str(self.crash_file),
        }
        self.process = start_up(self.data_dir, ["--engine", "tone", "--nodes", "2"], environment)
        self.url = wait_ready(self.process, self.data_dir)

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)

    def watched(self) -> Watched:
        assert self.process is not None
        return Watched(psutil.Process(self.process.pid), self.data_dir, self.url)

    def submit(self, **changes: object) -> str:
        body = {"chapters": CHAPTERS, "engine": "tone", "format": "flac", "reuse": False}
        return self.send(body | changes)

    def send(self, body: Mapping[str, object]) -> str:
        """Submit a job and return its id."""
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

    def post(self, path: str) -> None:
        self.job_post(path).raise_for_status()

    def job_post(self, path: str) -> httpx.Response:
        return httpx.post(f"{self.url}{path}", timeout=10)

    def delete(self, job_id: str) -> None:
        """Have a job forgotten."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                httpx.delete(f"{self.url}/v1/jobs/{job_id}", timeout=10).raise_for_status()
            except httpx.HTTPError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def files(self, job_id: str) -> list[dict[str, Any]]:
        return list(self.get(f"/v1/jobs/{job_id}/deliverables")["files"])  # type: ignore[call-overload]

    def wait_for_fraction(self, job_id: str, fraction: float) -> None:
        while True:
            job = self.get(f"/v1/jobs/{job_id}")
            if job["progress"]["fraction"] >= fraction:  # type: ignore[index]
                return
            time.sleep(0.02)

    def end_of(self, job_id: str, within_s: float = DEADLINE_S) -> dict[str, object]:
        """Wait for the job's end and return it."""
        deadline = time.monotonic() + within_s
        while (job := self.get(f"/v1/jobs/{job_id}"))["state"] in {
            "accepted",
            "planning",
            "rendering",
            "assembling",
        }:
            assert time.monotonic() < deadline, f"the job hangs: {job}"
            time.sleep(0.1)
        return job

    def finish(self, job_id: str) -> list[np.ndarray]:
        """Wait for the job's completion and return each file's PCM."""
        job = self.end_of(job_id)
        assert job["state"] == "completed", job
        return self.audio(job_id)

    def audio(self, job_id: str) -> list[np.ndarray]:
        """Each file's PCM."""
        files = self.get(f"/v1/jobs/{job_id}/deliverables")["files"]
        audio = [f for f in files if f["kind"] == "audio"]  # type: ignore[attr-defined,index]
        return [self._download(f["url"]) for f in audio]  # type: ignore[index]

    def manifest(self, job_id: str) -> dict[str, object]:
        files = self.get(f"/v1/jobs/{job_id}/deliverables")["files"]
        [url] = [f["url"] for f in files if f["kind"] == "manifest"]  # type: ignore[attr-defined,index]
        return dict(json.loads(self.fetch(url)))

    def _download(self, url: str) -> np.ndarray:
        return soundfile.read(io.BytesIO(self.fetch(url)), dtype="int16")[0]

    def fetch(self, url: str) -> bytes:
        """A file by its presigned URL."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                return httpx.get(url, timeout=20).raise_for_status().content
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


@contextmanager
def opened(farm: ChaosFarm) -> Iterator[tuple[Database, S3Store]]:
    """The ledger and the store of a running farm, to look into and to tamper with."""
    access = SeaweedServer.access_of(farm.data_dir / "seaweedfs")
    assert access is not None
    settings = Settings(
        s3_endpoint=access[0],
        s3_access_key=access[1],
        s3_secret_key=access[2],  # type: ignore[arg-type]
        database_url=f"sqlite:///{farm.data_dir / 'voxfarm.db'}",
    )
    with open_database(settings.sqlalchemy_url) as database:
        yield database, S3Store(settings)
