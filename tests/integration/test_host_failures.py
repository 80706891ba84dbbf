"""Engines that crash, hang, raise and run out of memory: who notices, and who is blamed."""

import os
import signal
import socket
import struct
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from shared.errors import HostLostError, TransientError, UtteranceError
from shared.settings import Settings
from tests.hosts import START_S, RunningHost, ignore, running_host, socket_folder, utterance
from worker.engines.base import Samples
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode
from worker.host.address import connect_to
from worker.host.link import HostLink
from worker.host.pace import KNOWN_AFTER_STEPS
from worker.host.spawn import spawn_host
from worker.host.wire import MAX_HEADER_BYTES, encode
from worker.node import HostProcess


def say(host: RunningHost, text: str, **changes: Any) -> Samples:
    alone = changes.pop("alone", False)
    on_waiting = changes.pop("on_waiting", ignore)
    return host.link.synthesize(
        utterance(text, **changes), on_progress=ignore, on_waiting=on_waiting, alone=alone
    )


def spoken(samples: Samples, text: str) -> bool:
    return [m.hash_hex for m in decode(samples, 24_000)] == [utterance_hash(text, "a", 1.0)]


def together(host: RunningHost, pool: ThreadPoolExecutor, texts: list[str]) -> list[Future[Any]]:
    """Say texts so that they share a batch, the first in front: they wait for one being spoken."""
    futures = [pool.submit(say, host, "First of all.")]
    time.sleep(0.1)
    waits = threading.Event()
    futures.append(pool.submit(say, host, texts[0], due_at=0.0, on_waiting=waits.set))
    assert waits.wait(20)
    return futures + [pool.submit(say, host, t, due_at=1.0) for t in texts[1:]]


def test_a_crash_is_seen_at_once_and_a_new_host_serves_the_same_link() -> None:
    with running_host() as host:
        began_s = time.monotonic()
        with pytest.raises(HostLostError) as caught:
            say(host, "[[crash]]")
        assert caught.value.companions == 0
        assert time.monotonic() - began_s < 5
        assert host.process.wait(20) == -signal.SIGABRT
        heir = spawn_host("tone", host.path)
        try:
            host.link.wait_ready(START_S, alive=lambda: heir.poll() is None)
            assert spoken(say(host, "All is well."), "All is well.")
        finally:
            heir.kill()
            heir.wait()


def test_those_who_shared_the_device_with_a_crash_know_that_they_were_not_alone() -> None:
    with running_host(delay_s=0.8) as host, ThreadPoolExecutor(3) as pool:
        futures = together(host, pool, ["[[crash]]", "Innocent."])
        assert spoken(futures[0].result(20), "First of all.")
        for future in futures[1:]:
            error = future.exception(20)
            assert isinstance(error, HostLostError)
            assert error.companions == 1


def test_those_who_only_waited_when_it_crashed_are_not_suspected() -> None:
    with running_host(delay_s=0.8, slots=1) as host, ThreadPoolExecutor(3) as pool:
        futures = together(host, pool, ["[[crash]]", "Innocent."])
        assert isinstance(futures[1].exception(20), HostLostError)
        innocent = futures[2].exception(20)
        assert isinstance(innocent, TransientError)
        assert not isinstance(innocent, HostLostError)


def test_a_suspect_is_spoken_without_neighbours_when_asked_to() -> None:
    with running_host(delay_s=0.3) as host, ThreadPoolExecutor(3) as pool:
        first = pool.submit(say, host, "First of all.")
        time.sleep(0.1)
        suspect = pool.submit(say, host, "[[crash]]", due_at=-1.0, alone=True)
        innocent = pool.submit(say, host, "Innocent.", due_at=1.0)
        assert spoken(first.result(20), "First of all.")
        error = suspect.exception(20)
        assert isinstance(error, HostLostError)
        assert error.companions == 0
        assert not isinstance(innocent.exception(20), HostLostError)


def test_no_host_is_nobodys_fault() -> None:
    with socket_folder() as folder:
        link = HostLink(folder / "none.sock", silence_s=1)
        for call in (link.info, link.ping, lambda: link.wait_ready(0.1)):
            with pytest.raises(TransientError):
                call()
        with pytest.raises(TransientError) as caught:
            link.synthesize(utterance(), on_progress=ignore)
        assert not isinstance(caught.value, HostLostError)


def test_waiting_for_a_host_that_cannot_start_ends_when_it_does() -> None:
    with socket_folder() as folder:
        process = spawn_host("tone", folder / "s", options={"tempo": 3})
        with pytest.raises(HostLostError, match="before it was ready"):
            HostLink(folder / "s", silence_s=1).wait_ready(
                START_S, alive=lambda: process.poll() is None
            )
        assert process.wait() == 2


def test_a_hang_is_noticed_after_the_silence_allowed() -> None:
    with running_host(silence_s=1.0, slots=1) as host, ThreadPoolExecutor(2) as pool:
        hanging = pool.submit(say, host, "[[hang]]")
        time.sleep(0.2)
        behind = pool.submit(say, host, "Innocent.")
        assert isinstance(hanging.exception(20), HostLostError)
        assert not isinstance(behind.exception(20), HostLostError)
        assert host.link.ping().busy_s > 0.9


def test_a_host_that_hangs_is_killed_by_what_its_steps_took_before_and_started_again() -> None:
    """given steps of milliseconds / when one never ends / then nobody waits the time of silence."""
    with socket_folder() as folder, ThreadPoolExecutor(1) as pool:
        settings = Settings(data_dir=folder, engines=("tone",), host_silence_s=3_600)
        node = HostProcess("tone", folder / "s", settings)
        node.start()
        try:
            node.wait_ready(threading.Event())
            for n in range(KNOWN_AFTER_STEPS):
                node.link.synthesize(utterance(f"Sentence number {n}."), on_progress=ignore)
            hanging = pool.submit(node.link.synthesize, utterance("[[hang]]"), on_progress=ignore)
            deadline_s = time.monotonic() + 300
            while not hanging.done():
                node.kill_if_hung()
                assert time.monotonic() < deadline_s
                time.sleep(0.2)
            error = hanging.exception()
            assert isinstance(error, HostLostError)
            assert error.companions == 0
            while not _is_ready(node):
                node.revive()
                assert time.monotonic() < deadline_s
            well = node.link.synthesize(utterance("All is well."), on_progress=ignore)
            assert spoken(well, "All is well.")
        finally:
            node.stop()


def _is_ready(node: HostProcess) -> bool:
    try:
        node.link.ping()
    except TransientError:
        time.sleep(0.1)
        return False
    return True


def test_a_stopped_host_is_given_up_like_one_that_hangs() -> None:
    with running_host(silence_s=0.5, delay_s=0.2) as host, ThreadPoolExecutor(1) as pool:
        future = pool.submit(say, host, "Long.")
        time.sleep(0.1)
        os.kill(host.process.pid, signal.SIGSTOP)
        assert isinstance(future.exception(20), HostLostError)
        os.kill(host.process.pid, signal.SIGCONT)
        assert spoken(say(host, "Awake again."), "Awake again.")


def test_an_exception_in_a_batch_is_narrowed_down_to_the_utterance_that_raises() -> None:
    texts = [f"Sentence {n}." for n in range(7)]
    texts.insert(4, "[[raise]]")
    with running_host(delay_s=0.8) as host, ThreadPoolExecutor(9) as pool:
        futures = together(host, pool, texts)[1:]
        for text, future in zip(texts, futures, strict=True):
            if text == "[[raise]]":
                assert isinstance(future.exception(20), UtteranceError)
            else:
                assert spoken(future.result(20), text)


def test_out_of_memory_makes_batches_smaller_and_fails_nobody() -> None:
    texts = ["[[oom]]", *(f"Sentence {n}." for n in range(7))]
    with running_host(delay_s=0.8) as host, ThreadPoolExecutor(9) as pool:
        for text, future in zip(texts, together(host, pool, texts)[1:], strict=True):
            assert spoken(future.result(20), text)
        assert spoken(say(host, "[[oom]]"), "[[oom]]")


HOSTILE = {
    "noise": b"\x00\xff\x80GET / HTTP/1.1\r\n\r\n" * 9,
    "huge header": struct.pack("!II", MAX_HEADER_BYTES + 1, 0),
    "huge payload": struct.pack("!II", 2, 0xFFFFFFFF) + b"{}",
    "payload from a link": encode({"op": "hello", "v": 1}, b"1234"),
    "not JSON": struct.pack("!II", 3, 0) + b"{]}",
    "not UTF-8": struct.pack("!II", 3, 0) + b'"\xff"',
    "not an object": struct.pack("!II", 2, 0) + b"[]",
    "nested deeply": struct.pack("!II", 200_000, 0) + b"[" * 200_000,
    "no operation": encode({"op": 7}),
    "no hello": encode({"op": "ping"}),
    "newer protocol": encode({"op": "hello", "v": 99}),
    "unknown operation": encode({"op": "hello", "v": 1}) + encode({"op": "sing"}),
    "half an utterance": encode({"op": "hello", "v": 1})
    + encode({"op": "say", "utterance": {"id": "x", "text": "y"}}),
    "NaN": encode({"op": "hello", "v": 1}) + struct.pack("!II", 12, 0) + b'{"op": NaN} ',
}


@pytest.fixture(scope="module")
def survivor() -> Any:
    with running_host() as host:
        yield host


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_bad_frame_closes_that_connection_only(survivor: RunningHost, attack: str) -> None:
    neighbour = connect_to(survivor.path, timeout_s=20)
    with connect_to(survivor.path, timeout_s=20) as hostile, neighbour:
        hostile.sendall(HOSTILE[attack])
        while _recv(hostile):
            pass
        neighbour.sendall(encode({"op": "hello", "v": 1}))
        assert neighbour.recv(10)
    assert spoken(say(survivor, "Unmoved."), "Unmoved.")


def _recv(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65_536)
    except ConnectionResetError:
        return b""


def test_one_utterance_asked_for_twice_at_once_closes_that_connection_only(
    survivor: RunningHost,
) -> None:
    said = utterance()
    frame = encode(
        {"op": "say", "utterance": {name: getattr(said, name) for name in said.__slots__}}
    )
    with connect_to(survivor.path, timeout_s=20) as hostile:
        hostile.sendall(encode({"op": "hello", "v": 1}) + frame * 65)
        while _recv(hostile):
            pass
    assert spoken(say(survivor, "Unmoved."), "Unmoved.")


def test_a_link_that_never_reads_does_not_hold_up_the_others(survivor: RunningHost) -> None:
    with connect_to(survivor.path, timeout_s=20) as deaf:
        said = utterance()
        deaf.sendall(encode({"op": "hello", "v": 1}))
        for n in range(60):
            fields = {name: getattr(said, name) for name in said.__slots__} | {"id": str(n)}
            deaf.sendall(encode({"op": "say", "utterance": fields}))
        assert spoken(say(survivor, "Unmoved."), "Unmoved.")
