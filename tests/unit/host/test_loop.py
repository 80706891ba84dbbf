"""The engine loop around engines that misbehave in every way an engine can."""

import queue
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.hosts import utterance
from worker.batching.policy import Policy, TierLimits
from worker.batching.room import GROWS_AFTER_BATCHES
from worker.engines.base import Chunk, Utterance
from worker.engines.simulated import build as simulated
from worker.host.canary import CANARY_TEXT, BrokenEngineError, speak_canary
from worker.host.desk import Desk
from worker.host.events import Drop, Event, Gone, Say, Stop
from worker.host.loop import HostLoop
from worker.host.pace import KNOWN_AFTER_STEPS
from worker.host.protocol import Vitals
from worker.host.shortages import FORGIVEN
from worker.host.wear import Wear, WearLimits

LIMITS = {"standard": TierLimits(max_batch=8, max_wait_s=0)}
SOUND = np.full(10, 0.5, np.float32)


@dataclass
class Outlet:
    """Keeps what is sent, and calls `enough` when so many utterances are over."""

    enough: Callable[[], None]
    ends: int
    sent: list[tuple[int, Mapping[str, Any], bytes]] = field(default_factory=list)
    hung_up: list[int] = field(default_factory=list)
    senders: int = 1

    def send(self, connection: int, header: Mapping[str, Any], payload: bytes = b"") -> None:
        self.sent.append((connection, header, payload))
        self.ends -= header["op"] in ("error", "lost") or bool(header.get("final"))
        if self.ends == 0:
            self.enough()

    def hang_up(self, connection: int) -> None:
        self.hung_up.append(connection)

    def of(self, id_: str) -> list[Mapping[str, Any]]:
        return [header for _, header, _ in self.sent if header.get("id") == id_]

    def ops(self, id_: str) -> list[str]:
        return [str(header["op"]) for header in self.of(id_)]


@dataclass
class Script:
    """An engine whose step does what the test says to the utterances it holds."""

    act: Callable[[list[Utterance]], Sequence[Chunk]]
    slots: int = 8
    held: list[Utterance] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = simulated(base_s=0, per_item_s=0).info
        voices = (model.voices[0].model_copy(update={"id": "a"}),)
        self.info = model.model_copy(update={"slots": self.slots, "voices": voices})

    def admit(self, utterances: Sequence[Utterance]) -> None:
        assert len(self.held) + len(utterances) <= self.slots
        self.held.extend(utterances)

    def step(self) -> Sequence[Chunk]:
        self.batches.append(len(self.held))
        chunks = self.act(self.held)
        over = {chunk.utterance_id for chunk in chunks if chunk.final}
        self.held = [u for u in self.held if u.id not in over]
        return chunks

    def drop(self, ids: Collection[str]) -> None:
        self.held = [u for u in self.held if u.id not in ids]


def speak_all(held: list[Utterance]) -> list[Chunk]:
    return [Chunk(u.id, SOUND, final=True) for u in held]


def run(
    engine: Script,
    *events: Event,
    ends: int | None = None,
    clock: Callable[[], float] = lambda: 0,
    wear: Wear | None = None,
) -> Outlet:
    """Feed events, stop when `ends` utterances (all said) are over; returns what was sent."""
    inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
    for event in events:
        inbox.put(event)
    said = sum(isinstance(event, Say) for event in events)
    outlet = Outlet(lambda: inbox.put(Stop()), said if ends is None else ends)
    loop = HostLoop(
        engine=engine,
        policy=Policy(slots=engine.info.slots, limits=LIMITS),
        desk=Desk(engine.info, outlet, clock),
        inbox=inbox,
        clock=clock,
        wear=wear or Wear(),
    )
    loop.run()
    return outlet


def say(id_: str, text: str = "Fine.", connection: int = 1, **changes: Any) -> Say:
    return Say(connection, utterance(text, id=id_, **changes), alone=False)


def test_a_batch_is_spoken_in_one_step() -> None:
    engine = Script(speak_all)
    outlet = run(engine, *(say(f"u{n}") for n in range(5)))
    assert engine.batches == [5]
    assert outlet.ops("u0") == ["started", "chunk"]
    assert outlet.of("u0")[0]["held"] == 5


def test_chunks_are_passed_on_as_they_come() -> None:
    def stream(held: list[Utterance]) -> list[Chunk]:
        last = len(engine.batches) == 3
        return [Chunk(u.id, SOUND, final=last) for u in held]

    engine = Script(stream)
    outlet = run(engine, say("u"))
    assert [h["final"] for h in outlet.of("u")[1:]] == [False, False, True]


def test_audio_of_a_batch_that_failed_begins_anew() -> None:
    def fail_once(held: list[Utterance]) -> list[Chunk]:
        if len(engine.batches) == 2:
            raise RuntimeError
        return [Chunk(u.id, SOUND, final=len(engine.batches) > 2) for u in held]

    engine = Script(fail_once)
    outlet = run(engine, say("a"), say("b"))
    for id_ in "ab":
        assert outlet.ops(id_) == ["started", "chunk", "restarted", "started", "chunk"]


def test_bisection_blames_one_and_needs_few_runs() -> None:
    def refuse_bad(held: list[Utterance]) -> list[Chunk]:
        if any("bad" in u.text for u in held):
            raise ValueError("bad text here")
        return speak_all(held)

    engine = Script(refuse_bad)
    outlet = run(engine, *(say(f"u{n}", "bad" if n == 5 else "fine") for n in range(8)))
    assert outlet.ops("u5")[-1] == "error"
    assert "bad text" not in str(outlet.of("u5")), "messages of engines may quote a text"
    assert all(outlet.ops(f"u{n}")[-1] == "chunk" for n in range(8) if n != 5)
    assert engine.batches == [8, 4, 4, 2, 1, 1, 1, 2]  # the fifth single one is the canary


def test_several_bad_ones_are_all_found() -> None:
    def refuse_bad(held: list[Utterance]) -> list[Chunk]:
        if any("bad" in u.text for u in held):
            raise ValueError
        return speak_all(held)

    outlet = run(Script(refuse_bad), *(say(f"u{n}", "bad" if n % 3 else "ok") for n in range(8)))
    assert [outlet.ops(f"u{n}")[-1] for n in range(8)] == [
        "error" if n % 3 else "chunk" for n in range(8)
    ]


def test_a_device_that_is_lost_blames_nobody_and_ends_the_host() -> None:
    def lost(_held: list[Utterance]) -> list[Chunk]:
        raise RuntimeError

    with pytest.raises(BrokenEngineError):
        run(Script(lost), say("u"))


def test_out_of_memory_is_remembered() -> None:
    def small(held: list[Utterance]) -> list[Chunk]:
        if len(held) > 3:
            raise MemoryError
        return speak_all(held)

    engine = Script(small)
    outlet = run(engine, *(say(f"u{n}") for n in range(16)))
    assert all(outlet.ops(f"u{n}")[-1] == "chunk" for n in range(16))
    assert engine.batches == [8, 4, 2, 2, 2, 2, 2, 2, 2, 2]


def test_what_was_cut_too_large_is_cut_again_before_it_is_tried() -> None:
    """given a device for three / when five run out of memory / then three and two are tried."""

    def small(held: list[Utterance]) -> list[Chunk]:
        if len(held) > 3:
            raise MemoryError
        return speak_all(held)

    engine = Script(small, slots=5)
    run(engine, *(say(f"u{n}") for n in range(5)))
    assert engine.batches == [5, 3, 2]


def test_memory_that_was_short_for_a_while_is_used_again() -> None:
    def short_at_first(held: list[Utterance]) -> list[Chunk]:
        if len(engine.batches) == 1:
            raise MemoryError
        return speak_all(held)

    engine = Script(short_at_first)
    outlet = run(engine, *(say(f"u{n}", connection=n // 50) for n in range(200)))
    assert all(outlet.ops(f"u{n}")[-1] == "chunk" for n in range(200))
    assert engine.batches[:34] == [8] + [4] * 32 + [8]


def test_a_batch_that_is_too_large_is_tried_ever_more_seldom() -> None:
    def small(held: list[Utterance]) -> list[Chunk]:
        if len(held) > 4:
            raise MemoryError
        return speak_all(held)

    engine = Script(small)
    count = 4 * GROWS_AFTER_BATCHES * 20
    outlet = run(engine, *(say(f"u{n}", connection=n // 50) for n in range(count)))
    assert all(outlet.ops(f"u{n}")[-1] == "chunk" for n in range(count))
    tries = [n for n, size in enumerate(engine.batches) if size == 8]
    gaps = [later - sooner for sooner, later in pairwise(tries)]
    assert len(tries) >= 4
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 1.9 * gaps[-2]


def too_large(held: list[Utterance]) -> list[Chunk]:
    if any(len(u.text) > 50 for u in held):
        raise MemoryError
    return speak_all(held)


def test_an_utterance_too_large_for_the_device_alone_is_its_own_fault_in_the_end() -> None:
    """It goes back a few times first, by whatever id and link it comes: memory may be short."""
    tries = [say(f"u{n}", "long " * 20, connection=n) for n in range(FORGIVEN + 2)]
    outlet = run(Script(too_large), *(replace(one, alone=True) for one in tries))
    ends = [outlet.ops(f"u{n}")[-1] for n in range(FORGIVEN + 2)]
    assert ends == ["lost"] * FORGIVEN + ["error"] * 2


def test_who_shared_a_batch_with_one_too_large_is_spoken() -> None:
    outlet = run(
        Script(too_large), *(say(f"u{n}", "long " * 20 if n == 1 else "Fine.") for n in range(4))
    )
    assert [outlet.ops(f"u{n}")[-1] for n in (0, 2, 3)] == ["chunk"] * 3


NOT_AUDIO = {
    "no audio": SOUND[:0],
    "not numbers": np.array([0.1, np.nan], np.float32),
    "stereo": np.zeros((2, 5), np.float32),
    "float64": np.zeros(5),
}


@pytest.mark.parametrize("kind", NOT_AUDIO)
def test_what_is_not_audio_becomes_an_error_and_never_a_gap(kind: str) -> None:
    samples: Any = NOT_AUDIO[kind]
    outlet = run(Script(lambda held: [Chunk(u.id, samples, final=True) for u in held]), say("u"))
    assert outlet.ops("u") == ["started", "error"]


def test_an_engines_own_refusal_reaches_the_link() -> None:
    def refuse(held: list[Utterance]) -> list[Chunk]:
        return [Chunk(u.id, SOUND[:0], final=True, error="I do not sing") for u in held]

    assert run(Script(refuse), say("u")).of("u")[-1]["message"] == "I do not sing"


def test_what_the_engine_says_of_unknown_utterances_is_ignored() -> None:
    def chatty(held: list[Utterance]) -> list[Chunk]:
        return [Chunk("ghost", SOUND, final=True), *speak_all(held)]

    assert run(Script(chatty), say("u")).ops("u") == ["started", "chunk"]


@pytest.mark.parametrize(("batch_by", "sizes"), [((), [4]), (("speed",), [2, 2])])
def test_what_an_engine_cannot_mix_is_kept_apart(batch_by: tuple[str], sizes: list[int]) -> None:
    engine = Script(speak_all)
    engine.info = engine.info.model_copy(update={"batch_by": batch_by})
    run(engine, *(say(f"u{n}", speed=1.0 + n % 2) for n in range(4)))
    assert engine.batches == sizes


def test_a_worn_host_ends_with_nothing_on_the_device_and_turns_away_what_waits() -> None:
    engine = Script(speak_all, slots=2)
    outlet = run(engine, *(say(f"u{n}") for n in range(5)), wear=Wear(WearLimits(max_batches=2)))
    assert [outlet.ops(f"u{n}")[-1] for n in range(5)] == ["chunk"] * 4 + ["lost"]


def test_a_link_that_is_gone_gets_nothing_and_its_place_goes_to_others() -> None:
    engine = Script(speak_all)
    outlet = run(engine, say("a", connection=1), say("b", connection=2), Gone(1), ends=1)
    assert outlet.ops("a") == []
    assert outlet.ops("b") == ["started", "chunk"]
    assert engine.batches == [1]


def test_a_drop_touches_only_that_utterance_of_that_link() -> None:
    events = [say("a"), say("b"), say("a", connection=2), Drop(1, "a"), Drop(1, "nothing")]
    outlet = run(Script(speak_all), *events, ends=2)
    assert [c for c, h, _ in outlet.sent if h["op"] == "chunk"] == [1, 2]


def test_an_engine_that_cannot_drop_is_broken() -> None:
    class Clinging(Script):
        def drop(self, ids: Collection[str]) -> None:
            raise RuntimeError(str(ids))

    def fail(_held: list[Utterance]) -> list[Chunk]:
        raise ValueError

    with pytest.raises(BrokenEngineError):
        run(Clinging(fail), say("a"), say("b"))


def test_an_utterance_asked_for_twice_by_one_link_ends_that_link() -> None:
    outlet = run(Script(speak_all), say("a"), say("a"), say("b", connection=2), ends=2)
    assert outlet.hung_up == [1]


def test_progress_is_told_twice_a_second_at_most() -> None:
    now = iter(n * 0.1 for n in range(10_000))

    def slow(held: list[Utterance]) -> list[Chunk]:
        return [Chunk(u.id, SOUND, final=len(engine.batches) == 40) for u in held]

    engine = Script(slow)
    outlet = run(engine, say("u"), clock=lambda: next(now))
    told = sum(header["op"] == "progress" for _, header, _ in outlet.sent)
    assert 10 <= told <= 40
    assert all("id" not in h for _, h, _ in outlet.sent if h["op"] == "progress")


def test_vitals_tell_how_long_any_call_of_the_engine_has_gone_on() -> None:
    """A hang while utterances are admitted, or dropped, is a hang as well."""
    seen = dict[str, Vitals]()
    now = iter(range(1_000))

    class Watched(Script):
        def admit(self, utterances: Sequence[Utterance]) -> None:
            seen["admit"] = loop.vitals()
            super().admit(utterances)

        def drop(self, ids: Collection[str]) -> None:
            seen["drop"] = loop.vitals()
            super().drop(ids)

    def fail_once(held: list[Utterance]) -> list[Chunk]:
        seen["step"] = loop.vitals()
        if len(engine.batches) == 1:
            raise RuntimeError
        return speak_all(held)

    engine = Watched(fail_once)
    inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
    for event in (say("a"), say("b")):
        inbox.put(event)
    outlet = Outlet(lambda: inbox.put(Stop()), 2)
    policy = Policy(slots=8, limits=LIMITS)
    loop = HostLoop(
        engine, policy, Desk(engine.info, outlet), inbox, clock=lambda: float(next(now))
    )
    loop.run()
    assert {call: vitals.busy_s > 0 for call, vitals in seen.items()} == {
        "admit": True,
        "step": True,
        "drop": True,
    }
    assert loop.vitals().busy_s == 0


def test_vitals_tell_what_is_usual_once_enough_steps_like_it_are_known() -> None:
    usual_s: list[float] = []
    now = iter(n / 8 for n in range(10_000))

    def listen(held: list[Utterance]) -> list[Chunk]:
        usual_s.append(loop.vitals().usual_s)
        return speak_all(held)

    engine = Script(listen, slots=1)
    inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
    texts = ["Fine."] * (KNOWN_AFTER_STEPS + 1) + ["Longer than all before it.", "Fine."]
    for n, text in enumerate(texts):
        inbox.put(say(f"u{n}", text))
    outlet = Outlet(lambda: inbox.put(Stop()), len(texts))
    policy = Policy(slots=1, limits=LIMITS)
    loop = HostLoop(engine, policy, Desk(engine.info, outlet), inbox, clock=lambda: next(now))
    loop.run()
    assert [usual > 0 for usual in usual_s] == [*[False] * KNOWN_AFTER_STEPS, True, False, True]


def test_the_canary_is_spoken_by_every_language() -> None:
    heard = []

    def listen(held: list[Utterance]) -> list[Chunk]:
        heard.extend(held)
        return speak_all(held)

    engine = Script(listen)
    speak_canary(engine)
    assert [replace(u, id="") for u in heard] == [
        utterance(CANARY_TEXT, id="", voice="a", language="en", seed=0)
    ]


def test_an_engine_that_never_ends_the_canary_is_broken() -> None:
    with pytest.raises(BrokenEngineError):
        speak_canary(Script(lambda _held: []))
