"""One connection to an engine host, for one thread: it speaks one utterance after the other."""

import contextlib
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from shared.errors import HostLostError, SetupError, TransientError, UtteranceError
from shared.voices import EngineInfo
from worker.engines.base import Samples, Utterance
from worker.host.address import connect_to
from worker.host.protocol import PROTOCOL_VERSION, Vitals, unpack_samples, utterance_header
from worker.host.wire import BadFrameError, Frame, FrameReader, encode

CONNECT_S = 5.0
IDLE_S = 0.2  # how long to wait for a frame before the caller may think again
_RECV_BYTES = 256 * 1024


@dataclass(slots=True)
class _Wanted:
    """The utterance that is awaited, and what is known of it so far."""

    id: str
    begun: bool = False
    companions: int = 0
    chunks: list[Samples] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Watchers:
    """Who is called while an utterance is awaited: see HostLink.synthesize."""

    on_progress: Callable[[], None]
    on_idle: Callable[[], None]
    on_waiting: Callable[[], None]


class Line:
    """Not thread-safe. `broken` means that it must be closed and another one opened."""

    def __init__(self, path: Path, silence_s: float) -> None:
        """Connect and greet; TransientError when no host is there, SetupError for a stranger."""
        self.broken = False
        self._silence_s = silence_s
        self._reader = FrameReader()
        self._frames: deque[Frame] = deque()
        self._count = 0
        try:
            self._socket = connect_to(path, timeout_s=CONNECT_S)
        except OSError as error:
            self.broken = True
            raise TransientError(f"no engine host at {path}: {error.strerror}") from error
        try:
            self._send({"op": "hello", "v": PROTOCOL_VERSION})
            self.info = _greeting(self._receive(time.monotonic() + CONNECT_S))
        except BaseException:
            self.close()
            raise

    def __del__(self) -> None:
        self.close()  # the thread that owned it has ended

    def close(self) -> None:
        """Close the connection; the host drops what was asked on it."""
        self.broken = True
        with contextlib.suppress(AttributeError):  # it never got through
            self._socket.close()

    def usable(self) -> bool:
        """False when the host has hung up since the last call."""
        if self.broken:
            return False
        self._socket.settimeout(0)
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def ping(self) -> Vitals:
        """Ask what the host has done; TransientError when it does not answer."""
        self._send({"op": "ping"})
        deadline_s = time.monotonic() + self._silence_s
        while True:
            frame = self._receive(deadline_s)
            if frame.op == "pong":
                return Vitals(
                    steps=frame.number("steps"),
                    utterances=frame.number("utterances"),
                    busy_s=frame.real("busy_s"),
                    row_steps=frame.number("row_steps"),
                    at_most=frame.number("at_most"),
                    usual_s=frame.real("usual_s"),
                )

    def synthesize(self, utterance: Utterance, watchers: Watchers, *, alone: bool) -> Samples:
        """See HostLink.synthesize."""
        self._count += 1
        wanted = _Wanted(str(self._count))
        said = utterance_header(replace(utterance, id=wanted.id))
        try:
            self._send({"op": "say", "utterance": said, "alone": alone})
            return self._await_audio(wanted, watchers)
        except BaseException as error:
            if not self.broken:  # then the host may still be at work on it
                with contextlib.suppress(TransientError):
                    self._send({"op": "drop", "id": wanted.id})
            elif wanted.begun and isinstance(error, TransientError):
                raise HostLostError(str(error), companions=wanted.companions) from error
            raise

    def _await_audio(self, wanted: _Wanted, watchers: Watchers) -> Samples:
        while True:
            deadline_s = time.monotonic() + self._silence_s
            while not self._hear(min(deadline_s, time.monotonic() + IDLE_S)):
                if time.monotonic() >= deadline_s:
                    raise self._lost("the engine host shows no progress")
                watchers.on_idle()
                if not wanted.begun:
                    watchers.on_waiting()
            frame = self._frames.popleft()
            try:
                over = self._take(frame, wanted)
            except BadFrameError as error:
                raise self._lost(f"the engine host talks nonsense: {error}") from error
            if over:
                return (
                    wanted.chunks[0] if len(wanted.chunks) == 1 else np.concatenate(wanted.chunks)
                )
            watchers.on_progress()
            if not wanted.begun:
                watchers.on_waiting()

    @staticmethod
    def _take(frame: Frame, wanted: _Wanted) -> bool:
        """Apply a frame about the awaited utterance; True when its audio is complete."""
        if frame.op == "progress":
            wanted.companions = max(0, frame.number("held") - 1)
            return False
        if frame.header.get("id") != wanted.id:
            return False  # of an utterance that was given up
        match frame.op:
            case "started":
                wanted.begun = True
                wanted.companions = max(0, frame.number("held") - 1)
            case "restarted":
                wanted.chunks.clear()
            case "chunk":
                wanted.chunks.append(unpack_samples(frame.payload))
                return frame.header.get("final") is True
            case "error":
                raise UtteranceError(frame.text("message"))
            case "lost":
                raise TransientError(frame.text("reason"))
        return False

    def _send(self, header: Mapping[str, object]) -> None:
        try:
            data = encode(header)
        except (ValueError, TypeError) as error:
            raise UtteranceError(f"the utterance cannot be sent: {error}") from error
        try:
            self._socket.settimeout(self._silence_s)
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(f"the engine host is gone: {error}") from error

    def _receive(self, deadline_s: float) -> Frame:
        """The next frame; TransientError, and a broken line, when there is none in time."""
        if not self._hear(deadline_s):
            raise self._lost("the engine host shows no progress")
        return self._frames.popleft()

    def _hear(self, deadline_s: float) -> bool:
        """Wait until a frame is there; False when there is none in time."""
        while not self._frames:
            try:
                self._socket.settimeout(max(0.001, deadline_s - time.monotonic()))
                data = self._socket.recv(_RECV_BYTES)
                self._frames.extend(self._reader.feed(data))
            except TimeoutError:
                return False
            except (OSError, BadFrameError) as error:
                raise self._lost(f"the engine host is lost: {error}") from error
            if not data:
                raise self._lost("the engine host has ended")
        return True

    def _lost(self, reason: str) -> TransientError:
        self.broken = True
        return TransientError(reason)


def _greeting(frame: Frame) -> EngineInfo:
    version = frame.number("v")
    if version != PROTOCOL_VERSION:
        raise SetupError(
            f"the engine host speaks protocol {version}, this process {PROTOCOL_VERSION}: "
            "restart both from the same installation"
        )
    try:
        return EngineInfo.model_validate(frame.header.get("info"))
    except ValidationError as error:
        raise SetupError(
            "the engine host comes from another version of Voxfarm: restart it"
        ) from error
