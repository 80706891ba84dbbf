"""The engine host as a consumer thread sees it, over real processes and sockets."""

import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
import psutil
import pytest

from shared.errors import HostLostError, SetupError, TransientError, UtteranceError
from shared.settings import DEFAULT_TIERS
from shared.tiers import Tier
from tests.hosts import START_S, RunningHost, ignore, running_host, socket_folder, utterance
from worker.engines import registry
from worker.engines.base import Samples
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode
from worker.host.address import connect_to
from worker.host.link import HostLink
from worker.host.spawn import spawn_host
from worker.host.wire import Frame, FrameReader, encode


def heard(samples: Samples) -> list[str]:
    return [mark.hash_hex for mark in decode(samples, 24_000)]


def said(text: str, voice: str = "a") -> list[str]:
    return [utterance_hash(text, voice, 1.0)]


def eventually(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it never came true"
        time.sleep(0.01)


class RawLink:
    """A connection on which any frame can be sent, and several utterances be in flight."""

    def __init__(self, host: RunningHost) -> None:
        self.socket = connect_to(host.path, timeout_s=20)
        self.reader = FrameReader()
        self.frames: list[Frame] = []
        self.send({"op": "hello", "v": 1})
        assert self.next().op == "hello"

    def send(self, header: dict[str, Any]) -> None:
        self.socket.sendall(encode(header))

    def say(self, id_: str, text: str, **changes: Any) -> None:
        u = utterance(text, id=id_, **changes)
        fields = {name: getattr(u, name) for name in u.__slots__}
        self.send({"op": "say", "utterance": fields})

    def next(self) -> Frame:
        while not self.frames:
            data = self.socket.recv(1 << 20)
            assert data, "the host hung up"
            self.frames += self.reader.feed(data)
        return self.frames.pop(0)

    def finals(self, count: int) -> list[str]:
        ids: list[str] = []
        while len(ids) < count:
            frame = self.next()
            if frame.header.get("final"):
                ids.append(frame.text("id"))
        return ids

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def test_a_host_says_what_its_engine_is_once_it_is_ready() -> None:
    with running_host() as host:
        info = host.link.info()
        assert info == registry.build("tone", {}).info
        assert heard(host.link.synthesize(utterance("Good."), on_progress=ignore)) == said("Good.")


def test_many_threads_each_get_the_audio_they_asked_for() -> None:
    with running_host() as host, ThreadPoolExecutor(12) as pool:
        texts = [f"This is sentence {n}." for n in range(60)]
        audio = pool.map(lambda t: host.link.synthesize(utterance(t), on_progress=ignore), texts)
        assert [heard(a) for a in audio] == [said(t) for t in texts]


def test_one_connection_may_have_several_utterances_in_flight() -> None:
    with running_host() as host, RawLink(host) as raw:
        for n in range(10):
            raw.say(f"id{n}", f"Number {n}.")
        assert sorted(raw.finals(10)) == sorted(f"id{n}" for n in range(10))


def test_equal_ids_on_two_connections_do_not_mix() -> None:
    with running_host(delay_s=0.05) as host, RawLink(host) as one, RawLink(host) as two:
        one.say("x", "I am one.")
        two.say("x", "I am two.")
        for raw, text in ((one, "I am one."), (two, "I am two.")):
            frame = raw.next()
            while frame.op != "chunk":
                frame = raw.next()
            assert heard(np.frombuffer(frame.payload, np.float32)) == said(text)


def test_utterances_that_wait_together_are_batched() -> None:
    with running_host("simulated", base_s=0.02, per_item_s=0.001) as host:
        with ThreadPoolExecutor(16) as pool:
            list(
                pool.map(
                    lambda n: host.link.synthesize(
                        utterance(f"Sentence {n}.", voice="tone"), on_progress=ignore
                    ),
                    range(96),
                )
            )
        eventually(lambda: host.link.ping().utterances == 96)
        assert host.link.ping().steps <= 24


def test_rush_overtakes_what_waits() -> None:
    with running_host(delay_s=0.05, slots=1) as host, RawLink(host) as raw:
        for n in range(4):
            raw.say(f"bulk{n}", f"Bulk {n}.", tier="bulk", due_at=n)
        raw.say("rush", "Quick!", tier="rush", due_at=1e9)
        assert raw.finals(5).index("rush") <= 1


def test_the_tier_limits_given_to_a_host_are_obeyed() -> None:
    tiers = {Tier.BULK: DEFAULT_TIERS[Tier.BULK].model_copy(update={"max_batch": 2})}
    with running_host("simulated", tiers=tiers, base_s=0.01, per_item_s=0) as host:
        with RawLink(host) as raw:
            for n in range(8):
                raw.say(str(n), f"Number {n}.", voice="tone", tier="bulk")
            raw.finals(8)
        eventually(lambda: host.link.ping().utterances == 8)
        assert host.link.ping().steps >= 4


@pytest.mark.parametrize(
    ("engine", "fewest", "most"), [("simulated", 8, 8), ("another", 1, 4)], ids=["it", "another"]
)
def test_the_batch_of_one_engine_binds_that_engine_only(
    engine: str, fewest: int, most: int
) -> None:
    changes = {"max_batch": 8, "max_batch_by_engine": {engine: 1}}
    tiers = {Tier.BULK: DEFAULT_TIERS[Tier.BULK].model_copy(update=changes)}
    with running_host("simulated", tiers=tiers, base_s=0.2, per_item_s=0) as host:
        with RawLink(host) as raw:
            for n in range(8):
                raw.say(str(n), f"Number {n}.", voice="tone", tier="bulk")
            raw.finals(8)
        eventually(lambda: host.link.ping().utterances == 8)
        assert fewest <= host.link.ping().steps <= most


def test_progress_is_told_to_those_on_the_device_and_to_those_who_wait() -> None:
    ticks = {"first": 0, "second": 0}

    def count(name: str) -> Callable[[], None]:
        def tick() -> None:
            ticks[name] += 1

        return tick

    with running_host("simulated", base_s=0.6, slots=1) as host, ThreadPoolExecutor(2) as pool:
        for name in ticks:
            pool.submit(
                host.link.synthesize, utterance(name, voice="tone"), on_progress=count(name)
            )
        eventually(lambda: all(ticks.values()), 1.0)


class LeaseLostError(Exception):
    """What a consumer raises from on_progress when it may not go on."""


@pytest.mark.parametrize("error", [LeaseLostError(), TransientError("the ledger is away")])
def test_an_utterance_given_up_by_its_caller_is_dropped_and_the_link_goes_on(
    error: Exception,
) -> None:
    def give_up() -> None:
        raise error

    with running_host(delay_s=1.0) as host, ThreadPoolExecutor(2) as pool:
        begun, waits = threading.Event(), threading.Event()
        synthesize = host.link.synthesize
        pool.submit(synthesize, utterance("First."), on_progress=begun.set)
        assert begun.wait(20)
        second = utterance("Second.", due_at=1.0)
        pool.submit(synthesize, second, on_progress=ignore, on_waiting=waits.set)
        assert waits.wait(20)
        with pytest.raises(type(error)) as caught:  # begun together with the second, and behind it
            synthesize(utterance("Never mind.", due_at=2.0), on_progress=give_up)
        assert caught.value is error
        assert heard(synthesize(utterance("Third."), on_progress=ignore)) == said("Third.")
        eventually(lambda: host.link.ping().utterances == 3)


def test_who_waits_for_the_device_may_give_up_and_who_is_on_it_is_not_asked() -> None:
    spoken, asked = threading.Event(), list[str]()

    def note() -> None:
        if spoken.is_set():
            asked.append("while it was spoken")

    def give_up() -> None:
        raise LeaseLostError

    options = {"base_s": 3.0, "per_item_s": 0.0, "slots": 2}
    with running_host("simulated", **options) as host, ThreadPoolExecutor(2) as pool:
        begun = [
            pool.submit(
                host.link.synthesize,
                utterance(text, voice="tone"),
                on_progress=ignore,
                on_waiting=note,
            )
            for text in ("First.", "Second.")
        ]
        eventually(lambda: host.link.ping().busy_s > 0.5)
        spoken.set()
        with pytest.raises(LeaseLostError):
            host.link.synthesize(
                utterance("Never mind.", voice="tone"), on_progress=ignore, on_waiting=give_up
            )
        assert host.link.ping().busy_s > 0  # the two are still being spoken
        assert all(future.result(60).size for future in begun)
        assert asked == []
        assert host.link.synthesize(utterance("Third.", voice="tone"), on_progress=ignore).size
        eventually(lambda: host.link.ping().utterances == 3)  # counted after it is sent


def test_a_dropped_utterance_is_never_begun() -> None:
    with running_host(delay_s=0.2, slots=1) as host, RawLink(host) as raw:
        raw.say("first", "First.")
        raw.say("second", "Never mind.")
        raw.send({"op": "drop", "id": "second"})
        raw.send({"op": "drop", "id": "unheard of"})
        raw.say("third", "Third.")
        assert raw.finals(2) == ["first", "third"]


def test_a_link_that_disconnects_takes_its_utterances_with_it() -> None:
    with running_host(delay_s=0.05, slots=1) as host:
        with RawLink(host) as raw:
            for n in range(20):
                raw.say(str(n), f"Number {n}.")
            raw.finals(1)
        audio = host.link.synthesize(utterance("Next, please."), on_progress=ignore)
        assert heard(audio) == said("Next, please.")
        assert host.link.ping().utterances < 8


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"text": "..."}, "nothing to speak"),
        ({"text": "x" * 401}, "longer"),
        ({"text": "half \ud800 a pair"}, "surrogate"),
        ({"voice": "nobody"}, "voice"),
        ({"language": "tlh"}, "does not speak"),
        ({"speed": 0.0}, "speed"),
        ({"speed": float("nan")}, "sent"),
        ({"seed": -1}, "seed"),
        ({"text": "[[fail]]"}, "asked for it"),
    ],
)
def test_what_an_engine_cannot_say_comes_back_as_the_utterances_own_error(
    shared_host: RunningHost, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UtteranceError, match=reason):
        shared_host.link.synthesize(utterance(**{"text": "fine", **changes}), on_progress=ignore)
    assert shared_host.link.synthesize(utterance("fine"), on_progress=ignore).size


@pytest.fixture(scope="module")
def shared_host() -> Any:
    with running_host() as host:
        yield host


def test_only_its_user_may_open_the_socket(shared_host: RunningHost) -> None:
    assert stat.S_IMODE(shared_host.path.stat().st_mode) == 0o600


def test_sigterm_finishes_what_is_on_the_device_and_turns_the_rest_away() -> None:
    with running_host(delay_s=0.5, slots=1) as host, ThreadPoolExecutor(2) as pool:
        begun = threading.Event()
        first = pool.submit(host.link.synthesize, utterance("First."), on_progress=begun.set)
        assert begun.wait(20)
        second = pool.submit(host.link.synthesize, utterance("Second."), on_progress=ignore)
        time.sleep(0.1)
        host.process.send_signal(signal.SIGTERM)
        assert heard(first.result(20)) == said("First.")
        with pytest.raises(TransientError) as caught:
            second.result(20)
        assert not isinstance(caught.value, HostLostError)
        assert host.process.wait(20) == 0
        assert not host.path.exists()


def test_an_idle_host_stops_at_once() -> None:
    with running_host() as host:
        host.process.send_signal(signal.SIGTERM)
        assert host.process.wait(5) == 0


def test_a_host_dies_with_its_parent_even_when_that_is_killed() -> None:
    parent_code = (
        "import sys, time; from pathlib import Path; from worker.host.spawn import spawn_host\n"
        "print(spawn_host('tone', Path(sys.argv[1])).pid, flush=True); time.sleep(600)"
    )
    with socket_folder() as folder:
        parent = subprocess.Popen(
            [sys.executable, "-c", parent_code, str(folder / "s")], stdout=subprocess.PIPE
        )
        assert parent.stdout is not None
        with parent.stdout:
            pid = int(parent.stdout.readline())
        link = HostLink(folder / "s", silence_s=5)
        link.wait_ready(START_S)
        parent.kill()
        parent.wait()
        eventually(lambda: not psutil.pid_exists(pid))
        with pytest.raises(TransientError):
            link.ping()
        link.close()


def test_a_host_whose_parent_died_before_it_could_ask_ends_at_once() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with socket_folder() as folder:
        command = [sys.executable, "-m", "worker.host", "--engine", "tone"]
        command += ["--socket", str(folder / "s"), "--parent", str(gone.pid)]
        orphan = subprocess.run(command, check=False, timeout=60)
        assert orphan.returncode == -signal.SIGKILL


def test_a_dead_hosts_socket_is_replaced_and_a_living_ones_is_not() -> None:
    with running_host() as host:
        rival = spawn_host("tone", host.path)
        assert rival.wait(60) == 3
        assert host.link.synthesize(utterance("Still here."), on_progress=ignore).size
        host.process.kill()
        host.process.wait()
        assert host.path.exists()
        heir = spawn_host("tone", host.path)
        try:
            host.link.wait_ready(START_S, alive=lambda: heir.poll() is None)
            audio = host.link.synthesize(utterance("Back again."), on_progress=ignore)
            assert heard(audio) == said("Back again.")
        finally:
            heir.kill()
            heir.wait()


def test_a_path_too_long_for_a_socket_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120)
    with pytest.raises(SetupError, match="107"):
        spawn_host("tone", path)
    with pytest.raises(SetupError, match="107"):
        HostLink(path, silence_s=1).info()


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (["--engine", "nobody"], 2, "installed: hibari"),
        (["--engine", "tone", "--options", '{"tempo": 1}'], 2, "delay_s, slots"),
        (["--engine", "tone", "--options", "[]"], 2, "JSON object"),
        (["--engine", "tone", "--tiers", '{"rush": {"max_batch": 99}}'], 2, "max_batch"),
        (["--engine", "tone", "--socket", "/nowhere/at/all"], 3, "No such file"),
    ],
)
def test_wrong_arguments_end_with_one_line_and_a_status(
    arguments: list[str], status: int, reason: str
) -> None:
    with socket_folder() as folder:
        command = [sys.executable, "-m", "worker.host", "--socket", str(folder / "s"), *arguments]
        ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert ended.returncode == status
    assert reason in ended.stderr
    assert "Traceback" not in ended.stderr


def test_hibari_speaks_through_a_host_exactly_as_it_does_alone() -> None:
    engine = registry.build("hibari", {})
    request = utterance("The farm renders 12 sentences.", voice="heart", seed=5)
    engine.admit([request])
    (alone,) = engine.step()
    with running_host("hibari") as host:
        far = host.link.synthesize(request, on_progress=ignore)
    assert np.array_equal(far, alone.samples)
