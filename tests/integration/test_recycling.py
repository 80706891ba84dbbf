"""Hosts that make room for a new one: between batches, and nobody loses anything by it."""

import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from benchmarks.farm_process import running_farm
from shared.errors import HostLostError, TransientError
from shared.settings import Settings
from tests.hosts import START_S, ignore, running_host, socket_folder, utterance
from worker.engines.base import Samples
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode
from worker.host.wear import WearLimits
from worker.node import HostProcess


def spoken(samples: Samples, text: str) -> bool:
    return [m.hash_hex for m in decode(samples, 24_000)] == [utterance_hash(text, "a", 1.0)]


def test_a_worn_host_finishes_its_batch_turns_the_rest_away_and_ends_in_order() -> None:
    limits = WearLimits(max_batches=1)
    with (
        running_host(delay_s=0.4, slots=1, recycle=limits) as host,
        ThreadPoolExecutor(2) as pool,
    ):
        begun = threading.Event()
        first = pool.submit(host.link.synthesize, utterance("First."), on_progress=begun.set)
        assert begun.wait(20)
        second = pool.submit(host.link.synthesize, utterance("Second."), on_progress=ignore)
        assert spoken(first.result(20), "First.")
        with pytest.raises(TransientError) as caught:
            second.result(20)
        assert not isinstance(caught.value, HostLostError)  # so nobody is suspected
        assert host.process.wait(20) == 0


def test_a_host_that_grows_is_worn() -> None:
    limits = WearLimits(max_growth_mb=1e-6)
    with running_host("simulated", base_s=0.01, per_item_s=0, recycle=limits) as host:
        deadline_s = time.monotonic() + 30
        while host.process.poll() is None and time.monotonic() < deadline_s:
            try:
                host.link.synthesize(utterance("x" * 400, voice="tone"), on_progress=ignore)
            except TransientError:
                break
        assert host.process.wait(10) == 0


@pytest.fixture
def renewing() -> object:
    """A node's host that serves three batches a life, watched as its node does."""
    with socket_folder() as folder:
        settings = Settings(
            data_dir=Path(folder), host_max_batches=3, engine_options={"tone": {"slots": 1}}
        )
        host = HostProcess("tone", folder / "host.sock", settings)
        stop = threading.Event()
        host.start()

        def watch() -> None:
            while not stop.wait(0.05):
                host.revive()

        host.wait_ready(stop)
        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield host
        finally:
            stop.set()
            thread.join()
            host.stop()


def test_the_node_starts_the_next_host_at_once_and_every_sentence_is_spoken(
    renewing: HostProcess,
) -> None:
    texts = [f"Sentence {n}." for n in range(14)]

    def say(text: str) -> Samples:
        deadline_s = time.monotonic() + START_S
        while True:
            try:
                return renewing.link.synthesize(utterance(text), on_progress=ignore)
            except HostLostError:
                raise  # it was on the device: that must not happen
            except TransientError:
                assert time.monotonic() < deadline_s
                time.sleep(0.05)

    with ThreadPoolExecutor(3) as pool:
        for text, audio in zip(texts, pool.map(say, texts), strict=True):
            assert spoken(audio, text)


def test_lives_that_ended_in_order_do_not_slow_the_restart_after_a_crash(
    renewing: HostProcess,
) -> None:
    for _ in range(4):
        renewing.link.wait_ready(START_S)
        process = renewing._process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        began_s = time.monotonic()
        while renewing._process is process:
            time.sleep(0.01)
            assert time.monotonic() - began_s < 1.0


@pytest.mark.slow
def test_a_farm_whose_hosts_are_renewed_all_the_time_loses_nothing_and_burns_no_attempt(
    tmp_path: Path,
) -> None:
    environment = {"VOXFARM_HOST_MAX_BATCHES": "4"}
    with running_farm(engine="tone", nodes=1, environment=environment, data_dir=tmp_path) as farm:
        text = "\n\n".join(f"Sentence number {n}." for n in range(120))
        body = {"text": text, "engine": "tone", "format": "flac"}
        job = httpx.post(f"{farm.url}/v1/jobs", json=body).raise_for_status().json()
        deadline_s = time.monotonic() + 120
        while job["state"] not in {"completed", "partial", "failed"}:
            assert time.monotonic() < deadline_s
            time.sleep(0.2)
            job = httpx.get(f"{farm.url}/v1/jobs/{job['id']}").json()
        with sqlite3.connect(tmp_path / "voxfarm.db") as ledger:
            rows = ledger.execute("SELECT DISTINCT state, attempt, crashes, suspect FROM segment")
            assert rows.fetchall() == [("done", 1, 0, 0)]
    assert job["state"] == "completed"
    log = "".join(path.read_text() for path in (tmp_path / "logs").glob("node*"))
    assert "made room for a new one" in log
