"""An assembly that takes longer than any lease and any visibility timeout runs once.

Real cpu workers and a real scheduler reach a real store over a slow line.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from sqlalchemy import Row, select

from shared import object_keys
from shared.farm import Farm
from shared.jobs import JobState
from shared.ledger import settling
from shared.ledger import tables as t
from shared.ledger.renderings import Audio
from shared.settings import Settings
from tests.contract.ledger import shelf, story
from tests.integration.slow_line import slow_line
from worker.assembly.segment_audio import encode_segment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
LEASE_S, VISIBILITY_S = 1.0, 2.0
RATE_HZ = 24_000
SENTENCES, SENTENCE_S = 40, 2.0
DEADLINE_S = 180.0
LATENCY_S = 0.25  # of a request: the sentences lie in objects of their own, four are read at once
BYTES_PER_S = 500_000.0  # so that the file, of about three megabytes, goes in one request of 6 s


@contextmanager
def working(settings: Settings, endpoint: str) -> Iterator[None]:
    """Two cpu workers and a scheduler, as processes that reach the store at this endpoint."""
    changes = {
        "s3_endpoint": endpoint,
        "lease_s": LEASE_S,
        "visibility_timeout_s": VISIBILITY_S,
        "redispatch_after_s": 1.0,
        "cpu_workers": 2,
    }
    plain = settings.model_dump(mode="json", exclude_defaults=True) | changes
    plain["s3_secret_key"] = settings.s3_secret_key.get_secret_value()
    environment = {
        f"VOXFARM_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in plain.items()
    }
    modules = ("worker.cpu", "worker.scheduler")
    processes = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for module in modules
    ]
    try:
        yield
        assert [process.poll() for process in processes] == [None, None]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def speak(farm: Farm, job_id: str) -> None:
    """Store and commit every sentence: noise, of which no codec makes little."""
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, int(SENTENCE_S * RATE_HZ))
    data = encode_segment(noise.astype(np.float32), RATE_HZ)
    digest = hashlib.sha256(data).hexdigest()
    for message in story.feed(farm.database):
        claimed = story.must_claim(farm.database, message)
        key = object_keys.segment_audio("default", job_id, claimed.index, claimed.token, together=1)
        farm.store.put(key, data, content_type="audio/flac")
        audio = Audio(key, 0, len(data), digest, len(noise), RATE_HZ)
        rendered = [(claimed.index, claimed.token, audio)]
        farm.database.transact(lambda conn, r=rendered: settling.commit(conn, job_id, r))  # type: ignore[misc]


def assemblies(farm: Farm, job_id: str) -> list[Row[tuple[int, int, int, float]]]:
    c = t.step.c
    query = select(c.part, c.attempt, c.token, (c.done_at - c.dispatched_at).label("took_s"))
    return farm.database.read(
        lambda conn: list(
            conn.execute(query.where(c.job_id == job_id, c.kind == "assemble").order_by(c.part))
        )
    )


def test_an_assembly_longer_than_lease_and_visibility_runs_once(
    farm: Farm, settings: Settings
) -> None:
    job_id = story.planned_job(farm.database, per_part=SENTENCES)
    speak(farm, job_id)
    port = int(settings.s3_endpoint.rpartition(":")[2])
    with (
        slow_line(port, bytes_per_s=BYTES_PER_S, latency_s=LATENCY_S) as slow_port,
        working(settings, f"127.0.0.1:{slow_port}"),
    ):
        deadline_s = time.monotonic() + DEADLINE_S
        while shelf.state(farm.database, job_id) is not JobState.COMPLETED:
            assert time.monotonic() < deadline_s, assemblies(farm, job_id)
            time.sleep(0.2)
    manifest, part = assemblies(farm, job_id)
    assert (part.attempt, part.token) == (1, 1)
    assert (manifest.attempt, manifest.token) == (1, 1)
    assert part.took_s > max(6.0, 3 * VISIBILITY_S)
    made = [key for key in farm.store.keys("t/") if "/out/" in key]
    assert sorted(key.rpartition("/")[2] for key in made) == ["audio.flac", "manifest.json"]
