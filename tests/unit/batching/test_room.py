"""How many fit the device: halved when memory runs out, tried again when much has gone well."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.batching.room import GROWS_AFTER_BATCHES, Room, halves


@pytest.mark.parametrize(("count", "parts"), [(2, (1, 1)), (3, (2, 1)), (5, (3, 2)), (8, (4, 4))])
def test_halves_are_no_larger_than_what_is_tried_next(count: int, parts: tuple[int, int]) -> None:
    assert halves(count) == parts
    assert Room.of(8).ran_out(count).at_most == parts[0]


@given(st.integers(2, 64), st.integers(1, 64), st.integers(200, 2_000))
def test_it_uses_what_there_is_and_fails_ever_more_seldom(
    slots: int, fits: int, batches: int
) -> None:
    """given a device that holds `fits` / then it is never far below, and failures grow rare."""
    room, failed = Room.of(slots), 0
    for _ in range(batches):
        held = room.at_most
        if held > fits:
            room, failed = room.ran_out(held), failed + 1
        else:
            room = room.went_well(held, over=held)
        assert 1 <= room.at_most <= slots
    assert failed <= 7 + 2 * (batches // GROWS_AFTER_BATCHES).bit_length()
    if fits >= slots:
        assert room.at_most == slots
        assert failed == 0


@given(st.integers(2, 64), st.data())
def test_after_a_shortage_that_is_over_all_slots_are_used_again(
    slots: int, data: st.DataObject
) -> None:
    room = Room.of(slots)
    for _ in range(data.draw(st.integers(1, 5))):
        room = room.ran_out(max(2, room.at_most))
    for _ in range(GROWS_AFTER_BATCHES * 2**6 * 7):
        room = room.went_well(room.at_most, over=room.at_most)
    assert room.at_most == slots
    assert room.failures == {} or room.spoken < slots * GROWS_AFTER_BATCHES


def test_batches_that_are_not_full_prove_nothing() -> None:
    room = Room.of(8).ran_out(8)
    for _ in range(10 * GROWS_AFTER_BATCHES):
        room = room.went_well(3, over=3)
    assert room == Room.of(8).ran_out(8)


def test_a_room_without_room_is_refused() -> None:
    for at_most in (0, 9):
        with pytest.raises(ValueError, match="at_most"):
            Room(8, at_most)
