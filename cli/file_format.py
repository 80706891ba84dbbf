"""Which format a file's name promises, and whether that can be kept. Knows no farm and no job."""

from pathlib import Path

from shared.errors import UsageError
from shared.jobs import AudioFormat

DEFAULT_FORMAT = AudioFormat.MP3


def promised_format(path: Path | None) -> AudioFormat | None:
    """Return the format that the suffix of `path` names, in any case; None when it names none.

    A folder that exists promises nothing: files in it are named by us.
    """
    if path is None or path.is_dir():
        return None
    try:
        return AudioFormat(path.suffix.removeprefix(".").lower())
    except ValueError:
        return None


def chosen_format(path: Path | None, asked: AudioFormat | None) -> AudioFormat:
    """Return what to make: what was asked for, else what the name promises, else MP3.

    UsageError when the two contradict each other.
    """
    if asked is None:
        return promised_format(path) or DEFAULT_FORMAT
    keep_promise(path, asked.value, instead="leave --format out, or name the file otherwise")
    return asked


def keep_promise(path: Path | None, format_: str, *, instead: str) -> None:
    """UsageError when `path` promises another format than `format_`; `instead` says what to do.

    `format_` is a word, since a newer farm may know formats that we do not.
    """
    promised = promised_format(path)
    if promised is not None and promised.value != format_:
        raise UsageError(
            f"{path} would be named {promised.value} and hold {format_}: {instead}",
            code="format-mismatch",
            named=promised.value,
            format=format_,
        )


def unkept_name(path: Path | None, format_: AudioFormat) -> str | None:
    """Say what a file holds whose suffix names no format that we make; None when all is clear."""
    if path is None or path.is_dir() or not path.suffix or promised_format(path) is not None:
        return None
    return f"{path} will hold {format_.value}: its suffix names no format that can be made"
