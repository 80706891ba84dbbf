"""Figures and bars of all trials so far. Knows no audio."""

import math
import statistics
from collections.abc import Mapping
from typing import Any

from scipy.stats import kstest, norm

from benchmarks.report import Bar, at_least, at_most
from benchmarks.watermark import cells, counts
from benchmarks.watermark.journal import Record
from benchmarks.watermark.trials import PLACES, key_hours
from worker.watermark.detect import FALSE_RATE

Trials = Mapping[str, list[Record]]


def unmeasured(name: str, target: float) -> Bar:
    """A bar that this run says nothing of."""
    return Bar(name, None, target, ok=False)


def told(trials: Trials) -> dict[str, Any]:
    """The tables."""
    return {
        "ids": {
            cell.name: _rates(trials[cell.name]) for cell in cells.CELLS if trials.get(cell.name)
        },
        "high_band": {
            attack: _rates(trials[f"high {attack}"])
            for attack in (*cells.HIGH_KEPT, *cells.HIGH_LOST)
            if trials.get(f"high {attack}")
        },
        "unmarked": _unmarked(trials.get("unmarked", [])),
        "wrong_key": {
            "pairs": sum(record["pairs"] for record in trials.get("wrong key", [])),
            "present": sum(record["present"] for record in trials.get("wrong key", [])),
        },
        "two_copies": _rates(trials.get("two copies", [])),
        "averaging": _rates(trials.get("averaging", [])),
    }


def bars(trials: Trials, costs: Mapping[str, Any], quality: Mapping[str, Any]) -> list[Bar]:
    """Every bar, measured or not."""
    made = [
        _errors(cell.name, trials, cell.errors_allowed, cell.trials)
        for cell in cells.CELLS
        if cell.errors_allowed is not None
    ]
    made += [_errors(f"high {attack}", trials, 1, cells.HIGH_TRIALS) for attack in cells.HIGH_KEPT]
    # Opus now and then keeps the band at 24 kbit/s too: read rightly, that is no fault.
    lost = [r for attack in cells.HIGH_LOST for r in trials.get(f"high {attack}", [])]
    falsely = [{"falsely": record["present"] and not record["ok"]} for record in lost]
    made.append(_count("high band present where it does not live", falsely, "falsely"))
    ids = [r for cell in cells.CELLS for r in trials.get(cell.name, [])]
    made.append(_count("wrong ids", ids, "wrong"))
    unmarked = trials.get("unmarked", [])
    made.append(at_least("unmarked key-hours", key_hours(unmarked), 300))
    made.append(_count("unmarked: present", unmarked, "present"))
    made.append(_count("unmarked: ids", unmarked, "id"))
    if unmarked:
        made.append(at_least("unmarked: p of a Gaussian tail", _tail_p(unmarked), 0.01))
    else:
        made.append(unmeasured("unmarked: p of a Gaussian tail", 0.01))
    made.append(at_most("computed false-positive rate of an excerpt", FALSE_RATE, 1e-8))
    wrong = trials.get("wrong key", [])
    made.append(at_least("wrong key: pairs", sum(r["pairs"] for r in wrong), 10_000))
    made.append(_count("wrong key: present", wrong, "present"))
    made.append(_count("two copies: wrong ids", trials.get("two copies", []), "wrong"))
    averaged = trials.get("averaging", [])
    share = statistics.mean(r["ok"] for r in averaged) if averaged else None
    made.append(_least("self-averaging: traceable share", share, 0.95))
    made += [
        _least("PESQ-WB mean", quality.get("pesq_mean"), 4.45),
        _least("PESQ-WB min", quality.get("pesq_min"), 4.3),
        _most("DNSMOS change", _size(quality.get("dnsmos_change")), 0.05),
        _least("embedding, x real time", _slowest(costs), 500),
        _most("embedding a day, MB", costs.get("memory", {}).get("end_mb"), 150),
        _most("15 s at the marked speed, s", costs.get("detecting_s", {}).get("marked"), 0.5),
        _most("15 s at all speeds, s", costs.get("detecting_s", {}).get("wide"), 10),
        unmeasured("presence beside Perth's", 1.0),
        unmeasured("the farm's efficiency with marks and verification", 0.55),
    ]
    return made


def _rates(records: list[Record]) -> dict[str, Any]:
    if not records:
        return {"trials": 0}
    errors = sum(not record["ok"] for record in records)
    figures = {
        "trials": len(records),
        "errors": errors,
        "errors_at_most_95": round(counts.at_most(errors, len(records)), 5),
        "wrong": sum(record["wrong"] for record in records),
        "present": sum(record["present"] for record in records),
        "z_median": round(statistics.median(record["z"] for record in records), 1),
        "z_min": round(min(record["z"] for record in records), 1),
    }
    if "cpu_s" in records[0]:
        figures["cpu_s_median"] = round(statistics.median(r["cpu_s"] for r in records), 3)
    return figures


def _unmarked(records: list[Record]) -> dict[str, Any]:
    if not records:
        return {"key_hours": 0.0}
    return {
        "key_hours": round(key_hours(records), 2),
        "wide_searches": sum(record["wide"] for record in records),
        "present": sum(record["present"] for record in records),
        "ids": sum(record["id"] for record in records),
        "z_max": max(record["z"] for record in records),
        "threshold_min": min(record["threshold"] for record in records),
        "places": len(records) * PLACES,
        "place_z_max": max(record["place_z"] for record in records),
        "place_z_max_expected": round(float(norm.isf(1 / (len(records) * PLACES))), 3),
        "tail_p": round(_tail_p(records), 4),
    }


def _tail_p(records: list[Record]) -> float:
    """How well the best of a million places fits the best of as many Gaussian numbers (KS test)."""
    uniform = [math.exp(-PLACES * float(norm.sf(record["place_z"]))) for record in records]
    return float(kstest(uniform, "uniform").pvalue)


def _errors(name: str, trials: Trials, allowed: int, wanted: int) -> Bar:
    records, target = trials.get(name, []), allowed / wanted
    if not records:
        return unmeasured(f"{name}: errors", target)
    rate = sum(not record["ok"] for record in records) / len(records)
    return Bar(f"{name}: errors", rate, target, ok=len(records) >= wanted and rate <= target)


def _count(name: str, records: list[Record], field: str) -> Bar:
    if not records:
        return unmeasured(name, 0)
    return at_most(name, sum(record[field] for record in records), 0)


def _least(name: str, value: float | None, target: float) -> Bar:
    return unmeasured(name, target) if value is None else at_least(name, value, target)


def _most(name: str, value: float | None, target: float) -> Bar:
    return unmeasured(name, target) if value is None else at_most(name, value, target)


def _size(value: float | None) -> float | None:
    return None if value is None else abs(value)


def _slowest(costs: Mapping[str, Any]) -> float | None:
    figures = costs.get("embedding_x_real_time")
    return min(figures.values()) if figures else None
