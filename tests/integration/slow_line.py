"""A slow line to a real server: what is sent to it takes its time, what it says does not."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PIECE_BYTES = 65_536


@contextmanager
def slow_line(to_port: int, *, bytes_per_s: float, latency_s: float) -> Iterator[int]:
    """Yields the loopback port that leads to a server over such a line."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                here, _ = listener.accept()
                threading.Thread(target=connect, args=(here,), daemon=True).start()

    def connect(here: socket.socket) -> None:
        with here, socket.create_connection(("127.0.0.1", to_port)) as there:
            answers = threading.Thread(target=carry, args=(there, here, False), daemon=True)
            answers.start()
            carry(here, there, slow=True)
            answers.join()

    def carry(source: socket.socket, sink: socket.socket, slow: bool) -> None:  # noqa: FBT001
        with suppress(OSError):
            while data := source.recv(PIECE_BYTES):
                if slow:
                    time.sleep(latency_s + len(data) / bytes_per_s)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
