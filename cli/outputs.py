"""Where a job's files go on this machine, and when writing there is refused."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.replies import Deliverable, FileKind
from shared.errors import UsageError

_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]+')
MAX_NAME_BYTES = 200


@dataclass(frozen=True, slots=True)
class Outputs:
    """The user's wish. `out` None means: named after `stem`, in the current folder.

    `many`: the job makes several audio files, so that `out` is a folder.
    """

    out: Path | None
    stem: str
    many: bool
    force: bool

    def check_early(self, suffix: str) -> None:
        """Refuse before any work what would be refused at the end. `suffix`: like `.mp3`."""
        if self.many:
            self._check_folder()
        else:
            self._check_file(self._single(suffix))

    def targets(self, files: Sequence[Deliverable]) -> list[tuple[Deliverable, Path]]:
        """Pair each file with its path; makes the folder when one is needed."""
        audio = [file for file in files if file.kind == FileKind.AUDIO]
        if self.many or len(audio) != 1:
            self._check_folder()
            paths = _apart(self._folder(), [safe_name(file.name) for file in files])
            _make(self._folder())
        else:
            main = self._single(Path(audio[0].name).suffix)
            paths = [
                main
                if file.kind == FileKind.AUDIO
                else main.with_name(f"{main.stem}.{safe_name(file.name)}")
                for file in files
            ]
        for path in paths:
            self._check_file(path)
        return list(zip(files, paths, strict=True))

    def _folder(self) -> Path:
        return self.out or Path(safe_name(self.stem))

    def _single(self, suffix: str) -> Path:
        if self.out is None or self.out.is_dir():
            return (self.out or Path()) / (safe_name(self.stem) + suffix)
        return self.out

    def _check_folder(self) -> None:
        folder = self._folder()
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file; several files need a folder", code="bad-out")

    def _check_file(self, path: Path) -> None:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", code="bad-out")
        if path.exists() and not self.force:
            raise UsageError(f"{path} exists; pass --force to overwrite it", code="exists")
        if not path.parent.is_dir():
            raise UsageError(f"there is no folder {path.parent}", code="bad-out")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise UsageError(f"the folder {path.parent} may not be written to", code="bad-out")


def safe_name(name: str) -> str:
    """Make a file name that stays in its folder, whatever the farm or a title called it."""
    cleaned = _UNSAFE.sub("_", name).strip(" ").lstrip(".") or "voxfarm"
    stem, dot, suffix = cleaned.rpartition(".")
    if not dot:
        stem, suffix = cleaned, ""
    tail = dot + suffix
    while len(os.fsencode(stem + tail)) > MAX_NAME_BYTES and stem:
        stem = stem[:-1]
    return (stem + tail) or "voxfarm"


def _apart(folder: Path, names: Sequence[str]) -> list[Path]:
    """Paths in `folder`, no two alike even where case does not count."""
    taken = set[str]()
    paths = list[Path]()
    for index, name in enumerate(names, start=1):
        free = name if name.casefold() not in taken else f"{index:04d}-{name}"
        taken.add(free.casefold())
        paths.append(folder / free)
    return paths


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make the folder {folder}: {error.strerror or error}", code="bad-out"
        ) from None
