"""Files go where the user said, never outside, and never over others without being told to."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.outputs import MAX_NAME_BYTES, Outputs, safe_name
from cli.replies import Deliverable
from shared.errors import UsageError


def deliverable(name: str, kind: str = "audio") -> Deliverable:
    return Deliverable(
        name=name, kind=kind, content_type="x/y", bytes=1, sha256="0" * 64, url="http://x/"
    )


ONE = [deliverable("A title.mp3"), deliverable("manifest.json", "manifest")]
TWO = [deliverable("01.mp3"), deliverable("02.mp3"), deliverable("manifest.json", "manifest")]


def names(outputs: Outputs, files: list[Deliverable]) -> list[str]:
    return [str(path) for _, path in outputs.targets(files)]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_file_is_named_after_the_text_with_its_manifest_beside_it() -> None:
    outputs = Outputs(None, stem="my book.v2", many=False, force=False)
    assert names(outputs, ONE) == ["my book.v2.mp3", "my book.v2.manifest.json"]


def test_out_names_the_file(here: Path) -> None:
    outputs = Outputs(here / "x.mp3", stem="book", many=False, force=False)
    assert names(outputs, ONE) == [str(here / "x.mp3"), str(here / "x.manifest.json")]


def test_out_may_be_a_folder_that_is_there(here: Path) -> None:
    outputs = Outputs(here, stem="book", many=False, force=False)
    outputs.check_early(".mp3")
    assert names(outputs, ONE)[0] == str(here / "book.mp3")


def test_chapters_go_into_a_folder_that_is_made(here: Path) -> None:
    outputs = Outputs(None, stem="vol. 1", many=True, force=False)
    outputs.check_early(".mp3")
    assert names(outputs, TWO) == [
        f"vol. 1/{name}" for name in ("01.mp3", "02.mp3", "manifest.json")
    ]
    assert (here / "vol. 1").is_dir()


def test_a_farm_that_made_more_files_than_expected_gets_a_folder() -> None:
    assert names(Outputs(None, stem="book", many=False, force=False), TWO)[0] == "book/01.mp3"


def test_names_that_differ_only_in_case_do_not_fall_together() -> None:
    files = [deliverable("A.mp3"), deliverable("a.mp3"), deliverable("a/.mp3")]
    paths = names(Outputs(None, stem="b", many=True, force=False), files)
    assert len({path.casefold() for path in paths}) == 3


@pytest.mark.parametrize("many", [True, False])
def test_nothing_is_overwritten_unasked(here: Path, *, many: bool) -> None:
    out = here / "old"
    taken = out / "01.mp3" if many else out
    taken.parent.mkdir(exist_ok=True)
    taken.write_text("precious")
    with pytest.raises(UsageError, match="--force"):
        Outputs(out, stem="b", many=many, force=False).targets(TWO if many else ONE)
    assert Outputs(out, stem="b", many=many, force=True).targets(TWO if many else ONE)


def test_what_would_be_refused_at_the_end_is_refused_at_the_start(here: Path) -> None:
    (here / "book.mp3").write_text("precious")
    with pytest.raises(UsageError, match="exists"):
        Outputs(None, stem="book", many=False, force=False).check_early(".mp3")
    with pytest.raises(UsageError, match="no folder"):
        Outputs(here / "no" / "x.mp3", stem="book", many=False, force=False).check_early(".mp3")
    with pytest.raises(UsageError, match="is a file"):
        Outputs(here / "book.mp3", stem="book", many=True, force=True).check_early(".mp3")


@given(st.text())
def test_any_name_becomes_one_that_stays_in_its_folder(name: str) -> None:
    safe = safe_name(name)
    assert safe not in {"", ".", ".."}
    assert not safe.startswith(".")
    assert len(os.fsencode(safe)) <= MAX_NAME_BYTES
    assert Path("folder", safe).parent == Path("folder")
    assert "\0" not in safe
    assert "\\" not in safe
