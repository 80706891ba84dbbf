"""Keys of the watermark: what they promise, what they refuse, and that they are never shown."""

import re
from pathlib import Path

import pytest

from shared.errors import SetupError
from worker.watermark.key_file import (
    format_keyring,
    keep_key_file,
    parse_keyring,
    read_key_file,
    rotate_key_file,
)
from worker.watermark.keys import Keyring, MarkKey, new_keyring
from worker.watermark.trace import payload, trace_id_in, trace_of, trace_with

SECRET = bytes(range(32))
OTHER = bytes(range(1, 33))


def shows(text: str, secret: bytes) -> bool:
    return secret.hex() in text.lower() or repr(secret) in text


def test_the_same_deliverable_always_has_the_same_trace() -> None:
    key = MarkKey(1, SECRET)
    first = trace_of(key, "job", "audio.mp3")
    assert first == trace_of(MarkKey(7, SECRET), "job", "audio.mp3")  # whatever the epoch's number
    assert first == trace_with(key, first.trace_id)
    others = [
        trace_of(key, "job", "audio.wav"),
        trace_of(key, "jobaudio", ".mp3"),
        trace_of(MarkKey(1, OTHER), "job", "audio.mp3"),
    ]
    assert len({first.trace_id, *(other.trace_id for other in others)}) == 4
    assert len({first.start_block, *(other.start_block for other in others)}) == 4


def test_only_the_key_can_make_a_tag() -> None:
    key, trace_id = MarkKey(1, SECRET), "0123456789abcdef"
    bits = payload(key, trace_id)
    assert trace_id_in(key, bits) == trace_id
    assert trace_id_in(MarkKey(1, OTHER), bits) is None
    for place in range(len(bits)):
        bits[place] ^= 1
        assert trace_id_in(key, bits) is None
        bits[place] ^= 1


def test_a_rotation_marks_with_the_new_key_and_keeps_the_old() -> None:
    ring = Keyring((MarkKey(1, SECRET),))
    rotated = ring.rotated()
    assert rotated.newest.epoch == 2
    assert rotated.of_epoch(1).secret == SECRET
    with pytest.raises(SetupError, match="key 3 is missing"):
        rotated.of_epoch(3)


@pytest.mark.parametrize(
    "keys",
    [
        (),
        (MarkKey(2, SECRET), MarkKey(1, OTHER)),
        (MarkKey(1, SECRET), MarkKey(1, OTHER)),
        (MarkKey(1, SECRET), MarkKey(2, SECRET)),
        tuple(MarkKey(n, bytes([n, 0] * 16)) for n in range(1, 66)),
    ],
)
def test_a_ring_that_makes_no_sense_is_refused(keys: tuple[MarkKey, ...]) -> None:
    with pytest.raises(SetupError):
        Keyring(keys)


@pytest.mark.parametrize("secret", [b"", SECRET[:31], SECRET + b"x", bytes(32)])
def test_a_secret_that_is_none_is_refused(secret: bytes) -> None:
    with pytest.raises(SetupError):
        MarkKey(1, secret)


def test_no_text_about_a_key_shows_it() -> None:
    ring = Keyring((MarkKey(1, SECRET),)).rotated(OTHER)
    for text in (
        repr(ring),
        str(ring),
        repr(ring.newest),
        f"{ring.newest}",
        ring.newest.fingerprint,
    ):
        assert not shows(text, SECRET)
        assert not shows(text, OTHER)
    with pytest.raises(SetupError) as caught:
        ring.rotated(OTHER)
    assert not shows(str(caught.value), OTHER)


def test_a_key_file_is_made_once_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "watermark-keys"
    ring = keep_key_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert keep_key_file(path) == ring == read_key_file(path)
    rotated = rotate_key_file(path)
    assert rotated.keys[0] == ring.newest
    assert read_key_file(path) == rotated
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_rotation_waits_for_no_other_and_loses_no_key(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    ring = keep_key_file(path)
    lock = tmp_path / ".keys.rotating"
    lock.touch()
    with pytest.raises(SetupError, match=re.escape(f"rm {lock}")):
        rotate_key_file(path)
    assert read_key_file(path) == ring


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_open_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys"
    keep_key_file(path)
    path.chmod(mode)
    with pytest.raises(SetupError, match="chmod 600") as caught:
        read_key_file(path)
    assert caught.value.mend == f"chmod 600 {path}"


def test_a_missing_file_and_a_folder_say_so(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no watermark key file at"):
        read_key_file(tmp_path / "nothing")
    with pytest.raises(SetupError, match="is no file"):
        read_key_file(tmp_path)


GOOD = format_keyring(Keyring((MarkKey(1, SECRET),)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "first line"),
        ("something else\n", "first line"),
        (GOOD.splitlines()[0], "no watermark key"),
        (GOOD.replace("00010203", "00010204"), "line 2: the secret does not fit"),
        (GOOD.replace("1 0001", "1 xx01"), "line 2: the secret is not written"),
        (GOOD.replace("000102", "", 1), "line 2: watermark key 1 has 29 bytes"),
        (GOOD + GOOD.splitlines()[1], "epochs of their own"),
        (GOOD.replace("1 0001", "-1 0001"), "line 2: a key is"),
        (GOOD.replace("1 0001", "² 0001"), "line 2: a key is"),
        (GOOD.rsplit(" ", 1)[0], "line 2: a key is"),
        (GOOD.rstrip()[:-1] + "é", "line 2: the secret does not fit"),
    ],
)
def test_damaged_text_is_refused_by_its_line_and_not_repeated(text: str, complaint: str) -> None:
    with pytest.raises(SetupError, match=complaint) as caught:
        parse_keyring(text, source="the file")
    assert "0405060708090a0b" not in str(caught.value)


def test_binary_rubbish_is_no_key_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.touch(0o600)
    path.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(SetupError, match="no text"):
        read_key_file(path)


def test_text_and_ring_are_the_same_thing() -> None:
    ring = new_keyring().rotated().rotated()
    assert parse_keyring(format_keyring(ring) + "\n# a remark\n", source="x") == ring
    assert parse_keyring(format_keyring(ring).replace("\n", "; "), source="x") == ring
