"""Which faults a storm has, in which order: all of it from a seed. Pure; carries nothing out."""

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass

KINDS = (
    "engine host",
    "consumer",
    "node",
    "cpu worker",
    "deliver worker",
    "scheduler",
    "api",
    "valkey",
    "seaweedfs",
    "flower",
)
FROZEN = ("consumer", "engine host", "cpu worker", "deliver worker", "scheduler", "node")
TOLD_TO_STOP = (
    "node",
    "consumer",
    "engine host",
    "cpu worker",
    "deliver worker",
    "scheduler",
    "api",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault by name. `lasts_s` (least, most) is drawn from; (0, 0) happens and is over.

    `alone`: no other fault falls together with it. `needs` names what the ground must offer.
    """

    name: str
    lasts_s: tuple[float, float] = (0.0, 0.0)
    alone: bool = False
    needs: str = ""


def faults(*, lease_s: float, away_s: float) -> tuple[Fault, ...]:
    """Every fault there is. `away_s`: how long store, Redis and PostgreSQL are away, once each."""
    past_lease = (lease_s + 1, lease_s + 6)
    return (
        *(Fault(f"kill {kind}") for kind in KINDS),
        Fault("kill supervisor", alone=True),
        *(Fault(f"freeze {kind}", past_lease) for kind in FROZEN),
        *(Fault(f"terminate {kind}") for kind in TOLD_TO_STOP),
        Fault("flush redis"),
        Fault("empty restart of redis"),
        Fault("stop store", (away_s, away_s)),
        Fault("stop redis", (away_s, away_s)),
        Fault("stop database", (away_s, away_s), needs="postgresql"),
        Fault("send messages twice"),
        Fault("reorder messages"),
        Fault("restart database at once", (0.0, 3.0), needs="postgresql"),
        Fault("step database clock"),
        Fault("hold database lock", past_lease, needs="sqlite"),
        Fault("refuse webhooks", past_lease),
        Fault("half-open redis", needs="network"),
        Fault("half-open store", needs="network"),
        Fault("half-open database", needs="network and postgresql"),
        Fault("fill disk of store", past_lease, needs="mount"),
    )


@dataclass(frozen=True, slots=True)
class Stroke:
    """One fault at a moment: `after_s` into its squall, for `lasts_s`. `seed` picks the victim."""

    fault: str
    after_s: float
    lasts_s: float
    seed: int


@dataclass(frozen=True, slots=True)
class Squall:
    """Faults that fall together. When all are over, recovery is waited for, then `calm_s`."""

    strokes: tuple[Stroke, ...]
    calm_s: float


def storm(
    seed: int, among: Collection[Fault], *, offers: Collection[str], rounds: int = 1
) -> list[Squall]:
    """The squalls of a seed: every fault that the ground offers, `rounds` times, in random order.

    Two thirds of the squalls are one fault; others are two or three within a few seconds.
    """
    dice = random.Random(seed)
    possible = [f for f in among if all(need in offers for need in _needs(f))]
    squalls = []
    for _ in range(rounds):
        order = dice.sample(possible, len(possible))
        squalls += [Squall(tuple(group), dice.uniform(0.5, 2.0)) for group in _grouped(order, dice)]
    return squalls


def _needs(fault: Fault) -> list[str]:
    return [need for need in fault.needs.split(" and ") if need]


def _grouped(order: list[Fault], dice: random.Random) -> Iterator[list[Stroke]]:
    rest = list(order)
    while rest:
        size = dice.choices((1, 2, 3), (4, 1, 1))[0]
        group = [rest.pop()]
        while rest and len(group) < size and not group[0].alone and not rest[-1].alone:
            group.append(rest.pop())
        yield [
            Stroke(
                fault.name,
                after_s=0.0 if place == 0 else dice.uniform(0.0, 2.0),
                lasts_s=dice.uniform(*fault.lasts_s),
                seed=dice.randrange(1 << 30),
            )
            for place, fault in enumerate(group)
        ]
