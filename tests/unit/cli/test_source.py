"""A text comes from a file or standard input, or one clear line says why it does not."""

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.source import Source, read_source
from shared.errors import UsageError


def refusal(name: str, stdin: bytes | None = None) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_source(name, stdin=io.BytesIO(stdin) if stdin is not None else None)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_file_gives_its_text_untouched_and_its_name(tmp_path: Path) -> None:
    path = tmp_path / "My book.v2.txt"
    path.write_bytes("\ufeffOne.\r\nTwo — 三。".encode())
    source = read_source(str(path))
    assert source == Source("\ufeffOne.\r\nTwo — 三。", title="My book.v2", stem="My book.v2")


def test_a_dash_reads_standard_input() -> None:
    assert read_source("-", stdin=io.BytesIO(b"Hello.")).text == "Hello."


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "there is no file" in str(refusal(str(tmp_path / "nothing.txt")))


def test_a_folder_is_no_text(tmp_path: Path) -> None:
    assert "is a folder" in str(refusal(str(tmp_path)))


def test_what_is_below_a_file_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert "cannot be read" in str(refusal(str(tmp_path / "a" / "b")))


@pytest.mark.parametrize("text", [b"", b" \n\t\r\n ", "\ufeff".encode()])
def test_nothing_to_read_is_said_so(text: bytes) -> None:
    assert "is empty" in str(refusal("-", text))


@pytest.mark.parametrize(
    ("text", "encoding", "offset"),
    [
        ("Grüße aus Köln", "windows-1252", 2),
        ("你好世界", "GB18030", 0),
        ("hello", "UTF-16", 0),
    ],
)
def test_another_encoding_gets_the_offset_and_the_command_that_converts_it(
    tmp_path: Path, text: str, encoding: str, offset: int
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode(encoding))
    error = refusal(str(path))
    assert error.fields["byte_offset"] == offset
    assert f"iconv -f {encoding.upper()} -t UTF-8 {path}" in str(error)


def test_an_endless_file_is_refused_before_it_fills_the_memory() -> None:
    assert "larger than 256 MiB" in str(refusal("/dev/zero"))


def test_a_file_name_of_any_bytes_gives_a_title_fit_for_the_wire(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9\n1.txt")  # noqa: PTH118 - bytes
    with open(path, "wb") as file:  # noqa: PTH123 - likewise
        file.write(b"Hello.")
    title = read_source(os.fsdecode(path)).title
    title.encode()
    assert title == "caf? 1"


@given(st.text(st.sampled_from("ab \n\r")), st.integers(0, 30))
def test_lines_and_columns_count_as_an_editor_does(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    line, column = Source(text, "t", "t").position(offset)
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert (line, column) == (len(before), len(before[-1]) + 1)
