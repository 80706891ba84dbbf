"""The simulator does what a farm does: nothing lost, devices as fast as they are, promises told."""

import json
import subprocess
import sys
from math import inf
from pathlib import Path

import pytest

from benchmarks.simulation.arms import ARMS, OURS, SHIPPED
from benchmarks.simulation.device import (
    CAPACITY_XRT,
    DEVICE,
    FULL_BATCH_S,
    OTHER_DEVICES,
    SLOTS,
    Device,
)
from benchmarks.simulation.fairness import compare
from benchmarks.simulation.farm import Farm
from benchmarks.simulation.scenarios import late_bulk_share, newcomer
from benchmarks.simulation.trace import Size, expand, make_job, trace_names
from benchmarks.simulation.work import Sent
from shared.scheduling.pools import SHARED_POOL
from shared.tiers import Tier

ROOT = Path(__file__).parents[3]
MINUTES = Size(gpus=1, load=0.95, duration_s=120.0, seed=0)


def farm(arm: str = OURS, gpus: int = 1) -> Farm:
    chosen = ARMS[arm]
    return Farm(chosen.dispatch(), chosen.layout(gpus), chosen.policy())


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("trace", trace_names())
def test_every_sentence_is_rendered_once_whatever_the_policy(arm: str, trace: str) -> None:
    jobs = expand(trace, MINUTES)
    rendered: list[tuple[str, int]] = []

    def note(sent: Sent, _now_s: float) -> None:
        rendered.append((sent.job.id, sent.place))

    running = farm(arm, gpus=2)
    running.on_done = note
    running.run(jobs)
    assert sorted(rendered) == [(job.id, n) for job in jobs for n in range(len(job.segments))]
    assert all(job.last_done_s < inf for job in jobs)


@pytest.mark.parametrize("arm", ARMS)
def test_a_saturated_device_does_full_batches_at_its_own_pace(arm: str) -> None:
    running = farm(arm)
    job = make_job("book", "A", Tier.BULK, [90] * 8_000, arrives_s=0.0)
    running.run([job])
    ideal_s = 8_000 / SLOTS * FULL_BATCH_S
    assert ideal_s <= job.last_done_s <= 1.02 * ideal_s


def test_a_lone_rush_sentence_takes_a_batch_of_one() -> None:
    job = make_job("note", "A", Tier.RUSH, [90], arrives_s=3.0)
    farm().run([job])
    assert job.first_done_s - job.arrives_s == pytest.approx(DEVICE.batch_s(1))
    assert job.kept


@pytest.mark.parametrize("trace", trace_names())
@pytest.mark.parametrize("load", [0.7, 1.2])
def test_a_trace_brings_the_load_it_is_asked_for_and_the_same_one_again(
    trace: str, load: float
) -> None:
    size = Size(gpus=2, load=load, duration_s=1_800.0, seed=3)
    jobs, again = expand(trace, size), expand(trace, size)
    audio_s = sum(segment.audio_s for job in jobs for segment in job.segments)
    assert audio_s / (2 * CAPACITY_XRT * 1_800.0) == pytest.approx(load, rel=0.1)
    assert [job.segments for job in jobs] == [job.segments for job in again]
    assert [job.arrives_s for job in jobs] == sorted(job.arrives_s for job in jobs)


def test_segments_are_due_in_their_order() -> None:
    for job in expand("books", MINUTES):
        due = [segment.due_at for segment in job.segments]
        assert due == sorted(due)
        assert due[-1] <= job.due_s


def test_a_newcomer_is_held_up_by_a_flood_under_fifo_and_not_under_ours() -> None:
    ours, fifo = (
        newcomer(arm.dispatch, arm.layout(1), arm.policy(), Tier.STANDARD, 1)
        for arm in (ARMS[OURS], ARMS["fifo"])
    )
    assert ours.of_limit <= 1 < fifo.of_limit


@pytest.mark.parametrize("device", [DEVICE, *OTHER_DEVICES.values()])
@pytest.mark.parametrize("name", [OURS, SHIPPED])
def test_late_bulk_keeps_its_floor_in_a_rush_flood_whatever_the_device(
    name: str, device: Device
) -> None:
    arm = ARMS[name]
    share = late_bulk_share(
        arm.dispatch, arm.layout(1, device), arm.policy(device), seed=0, minutes=2.0
    )
    assert SHARED_POOL.late_bulk_share <= share <= 1.2 * SHARED_POOL.late_bulk_share


def test_start_time_turns_share_more_evenly_than_round_robin() -> None:
    compared = compare(seed=1)
    ours, rival = compared["start_time"], compared["deficit_round_robin"]
    assert ours.worst_drift_s < rival.worst_drift_s
    assert ours.newcomer_waits_s < rival.newcomer_waits_s


@pytest.mark.slow
def test_the_quick_benchmark_prints_one_object_and_reaches_its_bars() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.simulate", "--quick", "--json", "-"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    report = json.loads(ran.stdout)
    assert [bar["name"] for bar in report["bars"] if not bar["ok"]] == []
    assert ran.returncode == 0
    assert {cell["trace"] for cell in report["cells"]} == {"flood", "news"}
