"""Key rings as text and as a file that only its user may read. Knows no setting and no default.

One line a key: epoch, secret (64 hexadecimal digits), fingerprint. The fingerprint finds a
damaged or mistyped secret before anything is marked with it.
"""

import hmac
import os
import secrets
import stat
from pathlib import Path

from shared.errors import SetupError
from shared.secret_file import keep_secret
from worker.watermark.keys import Keyring, MarkKey, new_keyring

_TITLE = "voxfarm-watermark-keys 1"
_WIDER_THAN_OWNER = 0o077
_FIELDS = 3
_LONGEST_FILE = 64_000  # bytes; far beyond the keys that a ring may hold


def format_keyring(keyring: Keyring) -> str:
    """The text of a key file."""
    lines = [f"{key.epoch} {key.secret.hex()} {key.fingerprint}" for key in keyring.keys]
    return "\n".join([_TITLE, *lines]) + "\n"


def parse_keyring(text: str, *, source: str) -> Keyring:
    """The keys of a key file's text, or of the same in one line with semicolons (an environment's).

    SetupError names `source` and the line, never what it says.
    """
    lines = [line.strip() for line in text.replace(";", "\n").splitlines()]
    if not lines or lines[0] != _TITLE:
        raise SetupError(f"{source} holds no watermark keys: its first line must be {_TITLE!r}")
    keys = [
        _parse_line(line, f"{source}, line {number}")
        for number, line in enumerate(lines[1:], 2)
        if line and not line.startswith("#")
    ]
    try:
        return Keyring(tuple(keys))
    except SetupError as error:
        raise SetupError(f"{source}: {error}") from None


def _parse_line(line: str, place: str) -> MarkKey:
    fields = line.split()
    if len(fields) != _FIELDS or not (fields[0].isascii() and fields[0].isdigit()):
        raise SetupError(f"{place}: a key is its epoch, 64 hexadecimal digits and its fingerprint")
    try:
        key = MarkKey(int(fields[0][:9]), bytes.fromhex(fields[1]))
    except ValueError:
        raise SetupError(f"{place}: the secret is not written in hexadecimal digits") from None
    except SetupError as error:
        raise SetupError(f"{place}: {error}") from None
    if not hmac.compare_digest(
        key.fingerprint, fields[2].lower().encode("ascii", "replace").decode()
    ):
        raise SetupError(
            f"{place}: the secret does not fit its fingerprint: it is damaged or mistyped"
        )
    return key


def read_key_file(path: Path) -> Keyring:
    """The keys in a file. SetupError: missing, unreadable, open to others, damaged."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise SetupError(
            f"there is no watermark key file at {path}: restore it from its backup; without it no "
            "earlier mark can be read"
        ) from None
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise SetupError(f"{path} is no file")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_mode & _WIDER_THAN_OWNER:
            mend = f"chmod 600 {path}"
            raise SetupError(f"{path} may be read or changed by others: {mend}", mend=mend)
        data = file.read(_LONGEST_FILE + 1)
    try:
        return parse_keyring(data[:_LONGEST_FILE].decode("ascii"), source=str(path))
    except UnicodeDecodeError:
        raise SetupError(f"{path} is no text of watermark keys") from None


def keep_key_file(path: Path) -> Keyring:
    """The keys in a file, which is made with a first key where it is missing. SetupError, OSError.

    Of racing processes one makes it, and all return the same.
    """
    if not path.exists():
        keep_secret(path, lambda: format_keyring(new_keyring()))
    return read_key_file(path)


def rotate_key_file(path: Path) -> Keyring:
    """Add a new epoch to the file, all or nothing. SetupError; OSError where it cannot be written.

    A second rotation at the same moment fails with SetupError instead of losing a key.
    """
    lock = path.with_name(f".{path.name}.rotating")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        mend = f"rm {lock}"
        raise SetupError(
            f"{path} is being rotated; if that was interrupted: {mend}", mend=mend
        ) from None
    try:
        rotated = read_key_file(path).rotated()
        _replace(path, format_keyring(rotated))
    finally:
        lock.unlink()
    return rotated


def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
