"""When a local store that refuses writes is started anew."""

import time

from cli.store_watch import HOLD_OFF_S, PATIENCE, Refusals, StoreWatch


def noted(refusals: Refusals, tries: str, *, start_s: float = 0.0) -> list[bool]:
    """One letter a try: r refused, f refused with a full disk, w written."""
    return [
        refusals.note(refused=letter != "w", room=letter != "f", now_s=start_s + at)
        for at, letter in enumerate(tries)
    ]


def test_a_store_that_refuses_again_and_again_is_renewed_once() -> None:
    assert noted(Refusals(), "rr" + "r" * 20).count(True) == 1
    assert noted(Refusals(), "r" * PATIENCE) == [False] * (PATIENCE - 1) + [True]


def test_a_write_between_shows_that_it_works() -> None:
    assert not any(noted(Refusals(), "rrwrrwrrwrr"))


def test_a_full_disk_explains_every_refusal() -> None:
    assert not any(noted(Refusals(), "f" * 20))
    assert noted(Refusals(), "fffrrr")[-1]


def test_one_that_was_renewed_in_vain_gets_a_longer_time() -> None:
    refusals = Refusals()
    assert noted(refusals, "rrr")[-1]
    assert not any(noted(refusals, "rrrrrr", start_s=10))
    assert any(noted(refusals, "rrr", start_s=HOLD_OFF_S + 5))


def test_the_watch_tells_it_once_to_another_thread() -> None:
    watch = StoreWatch(refuses=lambda: True, room=lambda: True, clock=time.monotonic)
    watch.start()
    deadline_s = time.monotonic() + 60
    while not watch.is_stuck():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    assert not watch.is_stuck()
    watch.stop()
