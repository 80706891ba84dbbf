"""Part keys: equal where the same bytes would do, and nowhere else."""

from collections.abc import Iterable

from worker.assembly.part_key import part_key

CLIPS = (("aa", 0.3), (None, 0.7), ("bb", 1.5))


def key(clips: Iterable[tuple[str | None, float]] = CLIPS, **changes: object) -> str:
    made: dict[str, object] = {"format_": "mp3", "in_rate_hz": 24_000, "out_rate_hz": 44_100}
    return part_key(clips, **(made | changes))  # type: ignore[arg-type]


def test_the_same_audio_in_the_same_order_has_the_same_key() -> None:
    assert key() == key(list(CLIPS))


def test_everything_that_is_heard_or_seen_in_the_file_changes_it() -> None:
    keys = [
        key(),
        key(CLIPS[:2]),
        key(CLIPS[::-1]),
        key([*CLIPS, (None, 0.0)]),
        key([("ab", 0.3), *CLIPS[1:]]),
        key([("aa", 0.31), *CLIPS[1:]]),
        key([(None, 0.3), *CLIPS[1:]]),
        key(format_="wav"),
        key(in_rate_hz=22_050),
        key(out_rate_hz=48_000),
        key(mark="one job's own"),
    ]
    assert len(set(keys)) == len(keys)
