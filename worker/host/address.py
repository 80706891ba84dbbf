"""Opens the unix socket between host and link, at both ends. Knows nothing of what is said."""

import contextlib
import os
import socket
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from shared.errors import SetupError

# sizeof(sockaddr_un.sun_path) less its closing NUL
MAX_PATH_BYTES = 107 if sys.platform == "linux" else 103
_BACKLOG = 128


def check_path(path: Path) -> None:
    """Raise SetupError when the system cannot have a socket at this path: it is too long."""
    length = len(os.fsencode(path))
    if length > MAX_PATH_BYTES:
        raise SetupError(
            f"the socket path {path} has {length} bytes, but {MAX_PATH_BYTES} are the most a unix "
            "socket may have: choose a shorter data folder"
        )


@dataclass(frozen=True, slots=True)
class Doorway:
    """A listening socket and the file it lies at."""

    path: Path
    listener: socket.socket
    inode: int

    def close(self) -> None:
        """Stop listening; delete the file unless a successor's lies there already."""
        self.listener.close()
        with contextlib.suppress(OSError):
            if self.path.stat().st_ino == self.inode:
                self.path.unlink()


def listen_on(path: Path) -> Doorway:
    """A listening socket only this user can open (0600). A dead host's socket file is replaced.

    Raises SetupError when the path is too long, not writable, or a living host serves there.
    """
    check_path(path)
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o177)  # so the file is never open to others, not even for a moment
    try:
        listener.bind(os.fspath(path))
    except OSError as error:
        listener.close()
        raise SetupError(f"cannot make the socket {path}: {error.strerror}") from error
    finally:
        os.umask(umask)
    listener.listen(_BACKLOG)
    return Doorway(path, listener, path.stat().st_ino)


def connect_to(path: Path, *, timeout_s: float) -> socket.socket:
    """A connection to the host at `path`; OSError when there is none."""
    check_path(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(os.fspath(path))
    except OSError:
        connection.close()
        raise
    return connection


def _clear(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(mode):
        raise SetupError(f"{path} is in the way of a socket: remove it")
    try:
        connect_to(path, timeout_s=1).close()
    except ConnectionRefusedError:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise SetupError(f"cannot look at the socket {path}: {error}") from error
    else:
        raise SetupError(f"another engine host serves at {path}")
