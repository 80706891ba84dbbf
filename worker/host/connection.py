"""The host's side of one connection: what came in as frames, and what is still to be written."""

import socket
from collections import deque
from dataclasses import dataclass, field

from worker.host.wire import Frame, FrameReader

_RECV_BYTES = 256 * 1024


@dataclass(slots=True, eq=False)
class Connection:
    """Never blocks. `write` and `flush` want one caller at a time; `read` is the exchange's own."""

    number: int
    socket: socket.socket
    greeted: bool = False
    watched: bool = False  # the exchange waits for it to become writable
    failed: bool = False
    unsent_bytes: int = 0
    _unsent: deque[memoryview] = field(default_factory=deque)
    _reader: FrameReader = field(default_factory=lambda: FrameReader(max_payload_bytes=0))

    def read(self) -> list[Frame] | None:
        """Frames that have arrived; None when the link has hung up. May raise BadFrameError."""
        try:
            data = self.socket.recv(_RECV_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._reader.feed(data) if data else None

    def write(self, data: bytes) -> bool:
        """Write at once as much as the system takes; True when nothing is left over."""
        self._unsent.append(memoryview(data))
        self.unsent_bytes += len(data)
        return self.flush()

    def flush(self) -> bool:
        """Go on writing; True when nothing is left over. Sets `failed` when the link is gone."""
        try:
            while self._unsent:
                sent = self.socket.send(self._unsent[0])
                self.unsent_bytes -= sent
                if sent == len(self._unsent[0]):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = self._unsent[0][sent:]
        except BlockingIOError:
            return False
        except OSError:
            self.failed = True
            return False
        return True
