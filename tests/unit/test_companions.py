"""Who leaves together, who waits for whom, and that nobody is left behind."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import StoreError
from worker.companions import Companions

FOREVER_S = 30.0  # longer than any test should take


class Journal:
    """Remembers which items left together; a result names its item."""

    def __init__(self) -> None:
        self.companies: list[list[str]] = []

    def carry_out(self, items: Sequence[str]) -> list[str]:
        self.companies.append(sorted(items))
        return [f"done {item}" for item in items]


def send(
    companions: Companions[str, str], items: Sequence[str], kind: Callable[[str], str]
) -> list[str]:
    """All items, each from a thread of its own, all announced before the first arrives."""
    ready = threading.Barrier(len(items))

    def go(item: str) -> str:
        with companions.on_the_way(kind(item)) as arrive:
            ready.wait(FOREVER_S)
            return arrive(item)

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(go, items))


def test_a_full_company_leaves_at_once() -> None:
    journal = Journal()
    companions = Companions(journal.carry_out, most=3, wait_s=FOREVER_S)
    assert send(companions, ["a", "b", "c"], lambda _: "job") == ["done a", "done b", "done c"]
    assert journal.companies == [["a", "b", "c"]]


def test_nobody_waits_for_what_will_not_come() -> None:
    journal = Journal()
    companions = Companions(journal.carry_out, most=8, wait_s=FOREVER_S)
    assert sorted(send(companions, ["a", "b"], lambda _: "job")) == ["done a", "done b"]
    assert journal.companies == [["a", "b"]]


def test_one_that_gave_up_on_the_way_is_not_waited_for() -> None:
    journal = Journal()
    companions = Companions(journal.carry_out, most=8, wait_s=FOREVER_S)
    with ThreadPoolExecutor(1) as pool, companions.on_the_way("job") as arrive:
        lost = companions.on_the_way("job")
        lost.__enter__()
        waiting = pool.submit(arrive, "a")
        assert not waiting.done()
        lost.__exit__(None, None, None)
        assert waiting.result(FOREVER_S) == "done a"


def test_a_patient_item_leaves_when_its_time_is_over() -> None:
    journal = Journal()
    companions = Companions(journal.carry_out, most=8, wait_s=0.01)
    with companions.on_the_way("job"), companions.on_the_way("job") as arrive:
        assert arrive("a") == "done a"


def test_an_impatient_item_takes_along_who_waits() -> None:
    journal = Journal()
    companions = Companions(journal.carry_out, most=8, wait_s=FOREVER_S)
    with ThreadPoolExecutor(1) as pool, ExitStack() as announced:
        arrivals = [announced.enter_context(companions.on_the_way("job")) for _ in range(3)]
        waiting = pool.submit(arrivals[0], "patient")
        while not companions._gathering:
            assert not waiting.done()
        assert arrivals[1]("rush", patient=False) == "done rush"
        assert waiting.result(FOREVER_S) == "done patient"
    assert journal.companies == [["patient", "rush"]]


def told_by(carry_out: Callable[[Sequence[str]], list[str]], items: Sequence[str]) -> list[str]:
    """What each of some items that leave together is told: its result, or its error's words."""
    companions = Companions(carry_out, most=len(items), wait_s=FOREVER_S)
    ready = threading.Barrier(len(items))

    def go(item: str) -> str:
        with companions.on_the_way("job") as arrive:
            ready.wait(FOREVER_S)
            try:
                return arrive(item)
            except (StoreError, ValueError) as error:
                return str(error)

    with ThreadPoolExecutor(len(items)) as pool:
        told = list(pool.map(go, items))
    with companions.on_the_way("job") as arrive:
        assert arrive("afterwards") == "afterwards"  # nothing is left of it
    return told


def test_a_store_that_is_away_is_away_for_all_and_is_asked_once() -> None:
    asked = []

    def away(items: Sequence[str]) -> list[str]:
        asked.append(len(items))
        if "afterwards" not in items:
            raise StoreError("away")
        return list(items)

    assert told_by(away, ["a", "b", "c"]) == ["away"] * 3
    assert asked == [3, 1]


def test_one_that_makes_its_company_fail_costs_nobody_else_anything() -> None:
    def odd(items: Sequence[str]) -> list[str]:
        if "odd" in items:
            raise ValueError(f"odd among {len(items)}")
        return list(items)

    assert told_by(odd, ["a", "odd", "c"]) == ["a", "odd among 1", "c"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=24), st.integers(1, 8))
def test_every_item_is_carried_out_once_with_its_own_kind(kinds: list[int], most: int) -> None:
    journal = Journal()
    companions = Companions(journal.carry_out, most=most, wait_s=0.002)
    items = [f"{kind}.{place}" for place, kind in enumerate(kinds)]
    results = send(companions, items, lambda item: item[0])
    assert results == [f"done {item}" for item in items]
    assert sorted(i for company in journal.companies for i in company) == sorted(items)
    for company in journal.companies:
        assert len(company) <= most
        assert len({item[0] for item in company}) == 1
    assert companions._gathering == {}
