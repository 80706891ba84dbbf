"""Lets sentences that end at about the same time be stored and committed together.

An object and a transaction for each sentence cost more than their bytes and rows: a store works for
the request, SQL for the commit. Knows no ledger and no store: what is done with a company of
sentences is passed in.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from shared.errors import VoxfarmError

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True)
class _Company(Generic[Item, Result]):
    """Items that leave together. The thread that began it carries it out, for all of them."""

    items: list[Item] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)


class Companions(Generic[Item, Result]):
    """Gathers items of the same kind for a short while. Thread-safe.

    `carry_out` takes 1 to `most` items of one kind and returns a result for each, in order. One of
    the waiting threads calls it. An error of ours (a store is away) is raised in all of them. Any
    other may be one item's fault, so each is then carried out alone, and hears of its own only.
    A company sets out when it is full, when its first member has waited for `wait_s`, or when no
    other member is on its way: nobody waits for what will not come.
    """

    def __init__(
        self, carry_out: Callable[[Sequence[Item]], Sequence[Result]], *, most: int, wait_s: float
    ) -> None:
        self._carry_out = carry_out
        self._most = most
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._on_their_way: Counter[str] = Counter()
        self._gathering: dict[str, _Company[Item, Result]] = {}

    @contextmanager
    def on_the_way(self, kind: str) -> Iterator[Callable[..., Result]]:
        """Announce an item of this kind: others may wait for it until the block ends.

        Yields `arrive(item, *, patient=True)`, to be called once at most: it joins a company and
        returns the item's result. The impatient wait for nobody, and whoever waits goes with them.
        """
        with self._changed:
            self._on_their_way[kind] += 1
        arrived = False

        def arrive(item: Item, *, patient: bool = True) -> Result:
            nonlocal arrived
            arrived = True
            return self._join(kind, item, patient=patient)

        try:
            yield arrive
        finally:
            if not arrived:
                with self._changed:
                    self._strike_off(kind)

    def _join(self, kind: str, item: Item, *, patient: bool) -> Result:
        with self._changed:
            self._strike_off(kind)
            company = self._gathering.get(kind)
            leads = company is None
            if company is None:
                company = self._gathering[kind] = _Company()
            place = len(company.items)
            company.items.append(item)
            if len(company.items) >= self._most or not patient:
                self._close(kind, company)
            elif leads:
                self._changed.wait_for(lambda: self._sets_out(kind, company), self._wait_s)
                self._close(kind, company)
        if leads:
            self._lead(company)
        else:
            company.done.wait()
        if company.error is None:
            return company.results[place]
        if len(company.items) == 1 or isinstance(company.error, VoxfarmError):
            raise company.error
        return self._carry_out([item])[0]

    def _strike_off(self, kind: str) -> None:
        self._on_their_way[kind] -= 1
        if not self._on_their_way[kind]:
            del self._on_their_way[kind]
            self._changed.notify_all()

    def _sets_out(self, kind: str, company: _Company[Item, Result]) -> bool:
        return self._gathering.get(kind) is not company or kind not in self._on_their_way

    def _close(self, kind: str, company: _Company[Item, Result]) -> None:
        if self._gathering.get(kind) is company:
            del self._gathering[kind]
            self._changed.notify_all()

    def _lead(self, company: _Company[Item, Result]) -> None:
        try:
            company.results = list(self._carry_out(company.items))
        except BaseException as error:  # noqa: BLE001 - every waiting thread must hear
            company.error = error
        finally:
            company.done.set()
