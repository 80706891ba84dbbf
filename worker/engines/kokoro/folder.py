"""Where Kokoro's files lie, and whether they are whole. Knows names and checksums, no network.

The folder holds `model.onnx`, `voices/NAME.bin` and `SHA256SUMS` over them, as `sha256sum` writes
it: `voxfarm voices install kokoro` makes it so, and so can whoever brings another export.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.errors import SetupError
from worker.engines.files import CHECKSUMS, voices_folder

MODEL = "model.onnx"
_MEND = "voxfarm voices install kokoro"
_LINE = re.compile(r"(?P<sha256>[0-9a-f]{64}) [ *](?P<name>\S.*)")
_VOICE = re.compile(r"voices/(?P<voice>[a-z]{2}_[a-z]+)\.bin")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Checked files. `revision` names their contents: 8 hexadecimal digits over all checksums."""

    model: Path
    voices: Mapping[str, Path]
    revision: str


def find_files(folder: str | os.PathLike[str] | None) -> ModelFiles:
    """Check the folder, or the one where `voxfarm voices install` puts such files.

    SetupError, with the command that mends it, when something is missing or damaged.
    """
    place = voices_folder() / "kokoro" if folder is None else Path(folder).expanduser()
    mend = _MEND if folder is None else f"{_MEND} --to {place}"
    try:
        listed = (place / CHECKSUMS).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"Kokoro's files are not at {place}: {mend}", mend=mend) from error
    sums = {
        found["name"]: found["sha256"]
        for found in map(_LINE.fullmatch, listed.split("\n"))
        if found
    }
    voices = {found["voice"]: place / name for name in sums if (found := _VOICE.fullmatch(name))}
    if MODEL not in sums or not voices:
        raise SetupError(
            f"{place / CHECKSUMS} lists no {MODEL} or no voices/NAME.bin: {mend}", mend=mend
        )
    wanted = {MODEL: sums[MODEL]} | {f"voices/{v}.bin": sums[f"voices/{v}.bin"] for v in voices}
    for name, sha256 in wanted.items():
        if _sha256(place / name, mend) != sha256:
            raise SetupError(f"{place / name} is damaged: its checksum is wrong; {mend}", mend=mend)
    revision = hashlib.sha256(repr(sorted(wanted.items())).encode()).hexdigest()[:8]
    return ModelFiles(place / MODEL, voices, revision)


def _sha256(path: Path, mend: str) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SetupError(f"{path} cannot be read ({error.strerror}): {mend}", mend=mend) from error
