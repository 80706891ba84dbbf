"""A short storm, seeded, on SQLite; and what is pure of every storm: plan, books, report."""

import json
from functools import partial

import pytest

from tests.chaos.storm.book import book
from tests.chaos.storm.plan import faults, storm
from tests.chaos.storm.report import NEVER_S, bars, summary, table
from tests.chaos.storm.run import weather
from tests.chaos.storm.sizes import OF_THE_SHORT_STORM, SHORT, short_storm, whole_storm

SEED = 4


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_a_short_storm_costs_neither_a_sentence_nor_a_sample() -> None:
    found = weather(SEED, "sqlite", SHORT, partial(short_storm, SEED))
    assert found["findings"] == []
    assert found["faults"] == len(OF_THE_SHORT_STORM)
    assert found["segments"] >= SHORT.segments  # type: ignore[operator]
    assert found["poisoned_jobs"]
    assert found["reused_segments"]
    assert found["requests"] > found["events"] >= found["jobs"]  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(10))
def test_a_seed_always_gives_the_same_storm_of_all_that_the_ground_offers(seed: int) -> None:
    offers = {"sqlite", "mount"}
    squalls = whole_storm(seed, offers)
    assert squalls == whole_storm(seed, offers)
    every = faults(lease_s=5, away_s=60)
    fallen = sorted(stroke.fault for squall in squalls for stroke in squall.strokes)
    assert fallen == sorted(f.name for f in every if f.needs in {"", "sqlite", "mount"})
    alone = {f.name for f in every if f.alone}
    for squall in squalls:
        assert len(squall.strokes) == 1 or not alone & {s.fault for s in squall.strokes}


@pytest.mark.parametrize("seed", range(10))
def test_each_store_is_away_for_a_minute_once_in_a_storm(seed: int) -> None:
    strokes = [s for squall in whole_storm(seed, {"postgresql"}) for s in squall.strokes]
    away = {"stop store", "stop redis", "stop database"}
    assert sorted(s.fault for s in strokes if s.lasts_s >= 60) == sorted(away)


def test_other_seeds_give_other_storms() -> None:
    every = faults(lease_s=5, away_s=60)
    assert len({str(storm(seed, every, offers=())) for seed in range(10)}) == 10


@pytest.mark.parametrize("seed", [3, 4])
def test_no_two_books_of_a_storm_share_a_sentence_but_by_repetition(seed: int) -> None:
    all_books = [book(seed, number, sentences=60) for number in range(12)]
    repeated = [n for n, made in enumerate(all_books) if made.repeats]
    assert repeated == ([] if seed % 2 else [2, 5, 8, 11])
    for n in repeated:
        assert all_books[n].spoken() == all_books[n - 2].spoken()
    books = [made for made in all_books if not made.repeats]
    said = [s for made in books for sentences in made.chapters for s in sentences]
    assert len(said) == len(set(said))
    poisons = [made.poison for made in books if made.poison is not None]
    assert len(poisons) == (3 if seed % 2 else 2)
    assert all(any(poison in s for s in said) for poison in poisons)


def test_the_report_counts_what_was_not_recovered_from_and_names_what_was_not_run() -> None:
    def run(seed: int, *whole_s: float | None) -> dict[str, object]:
        recoveries = [{"faults": ["kill api"], "again_s": 1.0, "whole_s": s} for s in whole_s]
        findings = ["a sentence is missing"] if seed else []
        return {
            "seed": seed,
            "database": "sqlite",
            "segments": 2_000 + seed,
            "findings": findings,
            "recoveries": recoveries,
        }

    runs = [run(0, 2.0, 3.0), run(2, None)]
    wanted = {"sqlite": 3, "postgresql": 1}
    found = summary(runs, lease_s=5, wanted=wanted)
    assert found["not_run"] == {"sqlite": [1], "postgresql": [0]}
    assert found["again_s_by_fault"] == {
        "kill api": {"times": 3, "median": 1.0, "p95": 1.0, "worst": 1.0}
    }
    whole = found["whole_s_by_fault"]["kill api"]
    assert whole == {"times": 3, "median": 3.0, "p95": NEVER_S, "worst": NEVER_S}
    heading, _rule, line = table(found).splitlines()
    assert heading.split() == [
        "fault",
        "times",
        "again",
        "p50",
        "p95",
        "worst",
        "whole",
        "p50",
        "p95",
        "worst",
    ]
    assert line.split() == ["kill", "api", "3", "1.0", "1.0", "1.0", "3.0", "never", "never"]
    met = {bar.name: bar.ok for bar in bars(runs, lease_s=5, wanted=wanted, segments=2_000)}
    assert met == {
        "findings": False,
        "recovery_p95_s": True,
        "nothing_forgotten_p95_s": False,
        "segments_of_the_smallest_storm": True,
        "seeds_sqlite": False,
        "seeds_postgresql": False,
    }
    json.dumps(found, allow_nan=False)
