"""How deep the queues are, by the kind of engine."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from shared.scheduling.depth import Fleet, Room, room, threads, window
from shared.tiers import Tier

SHARED = (Tier.STANDARD, Tier.BULK)
fleets = st.lists(
    st.builds(Fleet, nodes=st.integers(1, 50), slots=st.integers(1, 64), pads=st.booleans()),
    max_size=4,
)


def depth(tiers: Sequence[Tier], found: Sequence[Fleet], *, least: int = 1) -> int:
    return window(tiers, found, factor=2.5, padded_factor=6.0, settling=8, least=least)


def test_only_an_engine_that_pads_gets_a_choice() -> None:
    assert depth(SHARED, [Fleet(1, 8, pads=True)]) == 48
    assert depth(SHARED, [Fleet(1, 8, pads=False)]) == 20
    assert threads(8, rush=False, pads=True, settling=8) == 32
    assert threads(8, rush=False, pads=False, settling=8) == 18
    assert threads(1, rush=False, pads=False, settling=8) == 11


def test_rush_waits_behind_no_more_than_its_consumers_take() -> None:
    for pads in (True, False):
        assert depth((Tier.RUSH,), [Fleet(2, 8, pads)]) == 2 * threads(
            8, rush=True, pads=pads, settling=8
        )


def test_with_no_node_alive_the_least_window_is_kept() -> None:
    assert depth(SHARED, [], least=16) == 16


@given(fleets, st.sampled_from([SHARED, (Tier.RUSH,)]), st.integers(1, 40))
def test_a_window_is_never_less_than_the_consumers_take(
    found: list[Fleet], tiers: tuple[Tier, ...], least: int
) -> None:
    rush = tiers == (Tier.RUSH,)
    taken = sum(f.nodes * threads(f.slots, rush=rush, pads=f.pads, settling=8) for f in found)
    assert depth(tiers, found, least=least) >= max(taken, least)


def test_a_slot_has_enough_with_a_sentence_and_a_half_in_hand() -> None:
    two = [Fleet(2, 8, pads=False)]
    assert room(two, settling=8, max_batch=8) == Room(24, 2 * (16 + 18))
    assert room(two, settling=8, max_batch=4) == Room(12, 2 * (16 + 18))
    mixed = [Fleet(1, 8, pads=True), Fleet(3, 1, pads=False)]
    assert room(mixed, settling=8, max_batch=8) == Room(16.5, 16 + 32 + 3 * (3 + 11))
    assert room([], settling=8, max_batch=8) == Room(0, 0)


@given(fleets, st.integers(1, 64))
def test_consumers_can_hold_what_keeps_the_slots_busy(found: list[Fleet], settling: int) -> None:
    there = room(found, settling=settling, max_batch=64)
    assert there.enough <= there.most
