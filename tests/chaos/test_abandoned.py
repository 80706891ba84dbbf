"""Work that takes down whoever does it, and work whose doers die by chance, on a real farm."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psutil
import pytest

from tests.chaos.farm import SENTENCES, ChaosFarm
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos 2"), pytest.mark.timeout(600)]
PATIENCE_S = 400.0  # five or six leases, and as many starts of a process on a busy machine


@contextmanager
def deadly(farm: ChaosFarm, point: str, subject: str) -> Iterator[None]:
    """Every process is killed that comes to this point with this subject."""
    farm.crash_file.write_text(f"{point}\n{subject}")
    try:
        yield
    finally:
        farm.crash_file.unlink()


def heard(pcm: np.ndarray) -> list[str]:
    return [mark.hash_hex for mark in decode(pcm.astype(np.float32) / 32_768, 24_000)]


def test_a_sentence_that_kills_its_consumer_becomes_a_named_gap_and_costs_no_neighbour(
    farm: ChaosFarm,
) -> None:
    good = SENTENCES[0]
    text = "\n\n".join([*good[:10], "A deadly piece of text.", *good[10:]])
    with deadly(farm, "segment.rendered", "deadly"):
        job_id = farm.submit(chapters=[{"title": "", "text": text}])
        job = farm.end_of(job_id, PATIENCE_S)
    assert job["state"] == "partial", job
    assert job["progress"]["segments_quarantined"] == 1  # type: ignore[index]
    [pcm] = farm.audio(job_id)
    assert heard(pcm) == [utterance_hash(sentence, "a", 1.0) for sentence in good]
    [gap] = farm.manifest(job_id)["gaps"]  # type: ignore[misc]
    assert "deadly" in text[gap["start"] : gap["end"]]
    assert "while it alone was spoken" in gap["reason"]

    farm.post(f"/v1/jobs/{job_id}/retry")
    [whole] = farm.finish(job_id)
    assert len(heard(whole)) == len(good) + 1


@pytest.mark.long  # `test_kills` kills each kind once
@pytest.mark.parametrize("kind", ["consumer", "node"])
def test_processes_killed_at_random_cost_no_sentence(farm: ChaosFarm, kind: str) -> None:
    chance = random.Random(kind)
    job_id = farm.submit()
    for _ in range(10):
        time.sleep(chance.uniform(0.3, 2.5))
        there = farm.watched().processes(kind)
        for victim in chance.sample(there, min(2, len(there))):
            try:
                victim.kill()
            except psutil.NoSuchProcess:
                continue
    job = farm.end_of(job_id, PATIENCE_S)
    assert job["state"] == "completed", job
    farm.check(farm.audio(job_id))


@pytest.mark.long
def test_an_assembly_that_kills_its_process_fails_its_job_and_a_retry_finishes_it(
    farm: ChaosFarm,
) -> None:
    job_id = farm.submit()
    with deadly(farm, "assemble.claimed", job_id):
        other = farm.submit()
        job = farm.end_of(job_id, PATIENCE_S)
        farm.check(farm.finish(other))
    assert (job["state"], job["error"]["code"]) == ("failed", "assemble-failed")  # type: ignore[index]
    farm.post(f"/v1/jobs/{job_id}/retry")
    farm.check(farm.finish(job_id))
