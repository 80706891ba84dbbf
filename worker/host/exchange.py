"""Moves frames between many connections and one engine loop, in a thread of its own.

Knows no engine: it greets links, answers their pings, hands what they ask to the loop's inbox and
writes out what the loop sends. A connection that breaks the protocol, or does not read what it is
sent, is closed; the others do not notice.
"""

import contextlib
import logging
import queue
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict

from shared.voices import EngineInfo
from worker.host.connection import Connection
from worker.host.events import Drop, Event, Gone, Say, Stop
from worker.host.protocol import PROTOCOL_VERSION, Vitals, parse_utterance
from worker.host.wire import BadFrameError, Frame, encode

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 256
MAX_UNREAD_BYTES = 128 * 1024 * 1024
FLUSH_S = 5.0


class Exchange:
    """All connections of a host. `send` and `hang_up` may be called from any thread."""

    def __init__(
        self, listener: socket.socket, info: EngineInfo, inbox: queue.SimpleQueue[Event]
    ) -> None:
        self._listener = listener
        self._info = info.model_dump(mode="json")
        self._inbox = inbox
        self._vitals: Callable[[], Vitals] = _no_vitals
        self._selector = selectors.DefaultSelector()
        self._connections: dict[int, Connection] = {}
        self._writing = threading.Lock()  # over every write and every change of _connections
        self._next_number = 1
        self._to_attend: deque[int] = deque()
        self._waker, self._wakened = socket.socketpair()
        self._stop_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="exchange", daemon=True)

    def start(self, vitals: Callable[[], Vitals]) -> None:
        """Begin to accept connections; `vitals` answers their pings."""
        self._vitals = vitals
        for each in (self._listener, self._waker, self._wakened):
            each.settimeout(0)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wakened, selectors.EVENT_READ)
        self._thread.start()

    def close(self) -> None:
        """Accept nothing more, write out what is unsent for at most 5 s, then end."""
        self._stop_at = time.monotonic() + FLUSH_S
        self._wake()
        self._thread.join()

    @property
    def senders(self) -> int:
        """How many links are connected."""
        with self._writing:
            return sum(connection.greeted for connection in self._connections.values())

    def send(self, connection: int, header: Mapping[str, object], payload: bytes = b"") -> None:
        """Send a frame; it vanishes if the connection has ended.

        What the system takes at once is out when this returns, even if the process dies then.
        """
        data = encode(header, payload)
        with self._writing:
            known = self._connections.get(connection)
            done = known is None or known.write(data)
        if not done:
            self._attend(connection)

    def hang_up(self, connection: int) -> None:
        """Close a connection that asked for something impossible."""
        with self._writing:
            known = self._connections.get(connection)
            if known is not None:
                known.failed = True
        self._attend(connection)

    def _attend(self, connection: int) -> None:
        """Have the exchange's own thread look after a connection that cannot be written to."""
        self._to_attend.append(connection)
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # then it is awake anyway
            self._waker.send(b"\0")

    def _run(self) -> None:
        try:
            self._move()
        except Exception:
            log.exception("the exchange failed")
            self._inbox.put(Stop())  # a host that nobody can reach must not live on

    def _move(self) -> None:
        while not self._finished():
            timeout_s = None if self._stop_at is None else 0.05
            for key, mask in self._selector.select(timeout_s):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._wakened:
                    self._look_after()
                else:
                    self._serve(key.data, mask)
        for connection in list(self._connections.values()):
            self._end(connection)
        self._selector.close()

    def _finished(self) -> bool:
        if self._stop_at is None:
            return False
        unsent = any(c.unsent_bytes for c in self._connections.values() if not c.failed)
        return not unsent or time.monotonic() > self._stop_at

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except OSError as error:
            log.warning("cannot accept a connection: %s", error.strerror)
            time.sleep(0.05)  # out of file descriptors: do not spin
            return
        if len(self._connections) >= MAX_CONNECTIONS or self._stop_at is not None:
            accepted.close()
            return
        accepted.settimeout(0)
        connection = Connection(self._next_number, accepted)
        self._next_number += 1
        self._selector.register(accepted, selectors.EVENT_READ, connection)
        with self._writing:
            self._connections[connection.number] = connection

    def _look_after(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wakened.recv(4096)
        while self._to_attend:
            connection = self._connections.get(self._to_attend.popleft())
            if connection is not None:
                self._go_on_writing(connection)

    def _serve(self, connection: Connection, mask: int) -> None:
        if connection.number not in self._connections:
            return
        if mask & selectors.EVENT_WRITE:
            self._go_on_writing(connection)
        if not mask & selectors.EVENT_READ or connection.failed:
            return
        try:
            frames = connection.read()
            if frames is None:
                self._end(connection)
                return
            for frame in frames:
                self._obey(connection, frame)
        except BadFrameError as error:
            log.warning("closing connection %d: %s", connection.number, error)
            self._end(connection)

    def _go_on_writing(self, connection: Connection) -> None:
        """Write more, and see that the selector tells us when the rest can be written."""
        with self._writing:
            done = connection.flush()
        if connection.unsent_bytes > MAX_UNREAD_BYTES:
            log.warning("closing connection %d: it does not read", connection.number)
            connection.failed = True
        if connection.failed:
            self._end(connection)
        elif connection.watched == done:
            connection.watched = not done
            events = selectors.EVENT_READ | (0 if done else selectors.EVENT_WRITE)
            self._selector.modify(connection.socket, events, connection)

    def _obey(self, connection: Connection, frame: Frame) -> None:
        op = frame.op
        if op == "hello":
            self._greet(connection, frame.number("v"))
        elif not connection.greeted:
            raise BadFrameError("a link must say hello first")
        elif op == "say":
            alone = frame.header.get("alone", False) is True
            self._inbox.put(Say(connection.number, parse_utterance(frame), alone))
        elif op == "drop":
            self._inbox.put(Drop(connection.number, frame.text("id")))
        elif op == "ping":
            self.send(connection.number, {"op": "pong", **asdict(self._vitals())})
        else:
            raise BadFrameError("unknown operation")

    def _greet(self, connection: Connection, version: int) -> None:
        """Answer with our version in any case, so that a link of another one can say why."""
        self.send(connection.number, {"op": "hello", "v": PROTOCOL_VERSION, "info": self._info})
        if version != PROTOCOL_VERSION:
            raise BadFrameError(f"protocol version {version}, this host speaks {PROTOCOL_VERSION}")
        connection.greeted = True

    def _end(self, connection: Connection) -> None:
        with self._writing:
            if self._connections.pop(connection.number, None) is None:
                return
        self._selector.unregister(connection.socket)
        connection.socket.close()
        self._inbox.put(Gone(connection.number))


def _no_vitals() -> Vitals:
    return Vitals(steps=0, utterances=0, busy_s=0.0)
