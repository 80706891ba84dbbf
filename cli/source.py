"""The text to render, read from a file or standard input. Knows no farm and no settings."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from shared.errors import UsageError

STDIN = "-"
MAX_SOURCE_BYTES = 256 * 1024 * 1024  # far above what a farm takes; keeps /dev/zero out of memory
_CHUNK_BYTES = 1024 * 1024
_DOUBLE_BYTES = re.compile(rb"[\x81-\xfe]{4}")  # Chinese words come in runs, accents do not
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_MAX_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Source:
    """A text with the names to give it: `title` for people, `stem` for files."""

    text: str
    title: str
    stem: str

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of a character offset."""
        before = self.text[:offset].replace("\r\n", "\n").replace("\r", "\n")
        return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def read_source(name: str, *, stdin: BinaryIO | None = None) -> Source:
    """Read `name` (`-`: standard input) as UTF-8. UsageError says what is wrong, in one line."""
    if name == STDIN:
        data = _bounded(stdin or sys.stdin.buffer, "standard input")
        return Source(_decoded(data, "standard input"), title="standard input", stem="voxfarm")
    path = Path(name)
    try:
        with path.open("rb") as file:
            data = _bounded(file, name)
    except OSError as error:
        raise UsageError(_reason(name, error), code="unreadable-file") from None
    return Source(_decoded(data, name), title=_title(path.stem), stem=path.stem or "voxfarm")


def _title(stem: str) -> str:
    """Make a file's name fit for the wire: it may hold any bytes but NUL and slash."""
    text = stem.encode("utf-8", "replace").decode()
    return _CONTROLS.sub(" ", text).strip()[:_MAX_TITLE_CHARS] or "untitled"


def _bounded(file: BinaryIO, name: str) -> bytes:
    chunks = list[bytes]()
    size_bytes = 0
    while chunk := file.read(_CHUNK_BYTES):
        size_bytes += len(chunk)
        if size_bytes > MAX_SOURCE_BYTES:
            raise UsageError(
                f"{name} is larger than {MAX_SOURCE_BYTES // 1024**2} MiB", code="too-large"
            )
        chunks.append(chunk)
    return b"".join(chunks)


def _reason(name: str, error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return f"there is no file {name}"
        case IsADirectoryError():
            return f"{name} is a folder; name a text file in it"
        case PermissionError():
            return f"{name} may not be read by this user (see: ls -l {name})"
        case _:
            return f"{name} cannot be read: {error.strerror or error}"


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        guess = _other_encoding(data)
        target = "FILE" if name == "standard input" else name
        raise UsageError(
            f"{name} is not UTF-8: byte {error.start:,} is 0x{data[error.start]:02x}. "
            f"Convert it first, for example: iconv -f {guess} -t UTF-8 {target} > utf8.txt",
            code="not-utf-8",
            byte_offset=error.start,
        ) from None
    if not text.removeprefix("\ufeff").strip():
        raise UsageError(f"{name} is empty", code="empty-text")
    return text


def _other_encoding(data: bytes) -> str:
    """Guess for the advice alone: a byte-order mark, else double bytes, else Windows' Latin."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    return "GB18030" if _DOUBLE_BYTES.search(data) else "WINDOWS-1252"
