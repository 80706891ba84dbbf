"""What the frames between host and link say. Version 1; knows neither socket nor engine.

    link -> host                          host -> link
    hello {v}                             hello {v, info}: EngineInfo, once warmed up
    say {id, utterance, alone}            started {id, held}: it is on the device now
    drop {id}                             progress {held}: the device has advanced
    ping {}                               chunk {id, final} + float32 samples
                                          error {id, message}: this utterance's own fault
                                          lost {id, reason}: it is not its fault: ask again
                                          restarted {id}: forget its chunks, it begins anew
                                          pong {steps, utterances, busy_s, row_steps,
                                                at_most, usual_s}

A link says hello first. Ids are the link's own and need be unique on their connection only.
`held` counts the utterances on the device, so a link knows whether its own was there alone.
"""

from dataclasses import asdict, dataclass

import numpy as np

from shared.errors import UtteranceError
from shared.voices import EngineInfo
from worker.engines.base import Samples, Utterance
from worker.host.wire import BadFrameError, Frame

PROTOCOL_VERSION = 1
_SAMPLE = np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class Vitals:
    """What a host has done since it started, and what it is at.

    `busy_s` is how long it has been in one call of its engine, or 0; `usual_s` the longest that a
    step like that one has taken, 0 while nobody knows. `row_steps` sums the utterances held over
    all steps: by `steps` it gives the mean batch. `at_most` is how many it takes at once at
    present: all slots, or fewer for want of memory.
    """

    steps: int
    utterances: int
    busy_s: float
    row_steps: int = 0
    at_most: int = 0
    usual_s: float = 0.0


def utterance_header(utterance: Utterance) -> dict[str, object]:
    """An utterance as JSON."""
    return {**asdict(utterance), "params": dict(utterance.params)}


def parse_utterance(frame: Frame) -> Utterance:
    """The utterance of a `say` frame; BadFrameError when its fields are not what they must be."""
    said = Frame(frame.mapping("utterance"))
    return Utterance(
        id=said.text("id"),
        text=said.text("text"),
        voice=said.text("voice"),
        language=said.text("language"),
        speed=said.real("speed"),
        seed=said.number("seed"),
        tier=said.text("tier"),
        due_at=said.real("due_at"),
        params=said.mapping("params"),
    )


def check_utterance(utterance: Utterance, info: EngineInfo) -> None:
    """Raise UtteranceError for what this engine cannot be asked to say."""
    if not any(c.isalnum() for c in utterance.text):
        raise UtteranceError("there is nothing to speak in this text")
    if len(utterance.text) > info.max_chars:
        raise UtteranceError(f"longer than the engine's {info.max_chars} characters")
    if any("\ud800" <= c <= "\udfff" for c in utterance.text):
        raise UtteranceError("the text holds half a surrogate pair")
    if info.voice_named(utterance.voice) is None:
        raise UtteranceError(f"the engine {info.name} has no voice {utterance.voice!r}")
    if utterance.language not in info.languages:
        raise UtteranceError(f"the engine {info.name} does not speak {utterance.language!r}")
    if utterance.speed <= 0:
        raise UtteranceError("speed must be a positive number")
    if utterance.seed < 0:
        raise UtteranceError("a seed must not be negative")


def pack_samples(samples: Samples) -> bytes:
    """Float32 mono as little-endian bytes."""
    return np.ascontiguousarray(samples, _SAMPLE).tobytes()


def unpack_samples(payload: bytes) -> Samples:
    """The reverse of `pack_samples`; BadFrameError for half a sample."""
    if len(payload) % _SAMPLE.itemsize:
        raise BadFrameError("audio ends within a sample")
    return np.frombuffer(payload, _SAMPLE).astype(np.float32, copy=False)
