"""Fairness through a whole farm: a tenant's first job beside another's flood, and late bulk in one.

Times are the ledger's: from accepted to the finished file, planning and assembly included.
"""

import json
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.farm_process import Watched, running_farm
from benchmarks.load import BASE_S, FULL_BATCH_S, MAX_BATCH, PER_ITEM_S
from benchmarks.tenants import Tenant, ask_ledger
from shared.settings import DEFAULT_TIERS
from shared.tiers import Tier

FLOOD_JOBS, FLOOD_SENTENCES = 1_000, 3
SENDERS = 4
ALONE_TRIES = 5
MANY = 100
# (sentences, seconds from the moment the flood is in): some meet its planning, some its rendering.
NEWCOMERS = ((1, 0.0), (1, 3.0), (1, 6.13), (1, 9.29), (MANY, 12.41), (1, 25.58))
WITHIN_S = 300.0
RUSH_SENTENCES = 40  # of a job of the rush flood: more jobs would flood planning, not devices
RUSH_LOAD = 1.1
SETTLE_S = 15.0  # until windows are full of what the share is judged by


@dataclass(frozen=True, slots=True)
class Times:
    """Of jobs: from accepted to the first claim, to the last sentence, and to the file; seconds."""

    claimed_s: float
    spoken_s: float
    file_s: float


def flood(tier: Tier, *, engine: str = "simulated") -> dict[str, object]:
    """Tenant B's times alone and beside a thousand jobs of tenant A's, of the same tier."""
    with _farm(engine) as farm:
        a, b = Tenant(farm, "a", engine), Tenant(farm, "b", engine)
        _one(b, 1, tier)  # warm-up
        alone = {1: [_one(b, 1, tier) for _ in range(ALONE_TRIES)], MANY: [_one(b, MANY, tier)]}
        began_s = time.monotonic()
        with ThreadPoolExecutor(SENDERS) as pool:
            text = _sentences("Flood", FLOOD_SENTENCES)
            list(pool.map(lambda _: a.submit(text, tier), range(FLOOD_JOBS)))
        flooded_s = time.monotonic() - began_s
        sent = list[tuple[int, str]]()
        for count, at_s in NEWCOMERS:
            time.sleep(max(0.0, began_s + flooded_s + at_s - time.monotonic()))
            sent.append((count, b.submit(_sentences("Newcomer", count), tier)))
        beside: dict[int, list[Times]] = {1: [], MANY: []}
        for count, job_id in sent:
            b.wait_ended(job_id, within_s=WITHIN_S)
            beside[count].append(_times(b, job_id))
        left = ask_ledger(farm, "SELECT count(*) FROM job WHERE ended_at IS NULL")[0][0]
    return {
        "flood_submitted_in_s": round(flooded_s, 1),
        "flood_jobs_left_at_the_end": left,
        **{f"of_{count}": _against(alone[count], beside[count]) for count in (1, MANY)},
    }


def _against(alone: list[Times], beside: list[Times]) -> dict[str, object]:
    """Both, and the time as a part of what is allowed: three times alone and two batches."""
    alone_s = median(one.file_s for one in alone)
    limit_s = 3 * alone_s + 2 * FULL_BATCH_S
    took_s = [one.file_s for one in beside]
    return {
        "alone_s": round(alone_s, 2),
        "beside_s": [round(s, 2) for s in took_s],
        "beside_claimed_s": [round(one.claimed_s, 2) for one in beside],
        "beside_spoken_s": [round(one.spoken_s, 2) for one in beside],
        "of_limit": round(mean(took_s) / limit_s, 3),
        "worst_of_limit": round(max(took_s) / limit_s, 3),
    }


def late_bulk(minutes: float, *, engine: str = "simulated") -> dict[str, object]:
    """Past-due bulk's share of the audio made while rush floods the farm at 110 %."""
    due_at_once = {"first_audio_s": 0.001, "per_1000_chars_s": 0.001, "floor_s": 0.001}
    tiers = {tier.value: settings.model_dump() for tier, settings in DEFAULT_TIERS.items()}
    tiers[Tier.BULK.value] |= due_at_once
    per_s = RUSH_LOAD * MAX_BATCH / FULL_BATCH_S / RUSH_SENTENCES
    with _farm(engine, {"VOXFARM_TIERS": json.dumps(tiers)}) as farm:
        rush, bulk = Tenant(farm, "news", engine), Tenant(farm, "books", engine)
        _one(rush, 1, Tier.RUSH)
        more_than_it_gets = int(minutes * 60 * MAX_BATCH / FULL_BATCH_S / 2)
        bulk.submit(_sentences("Bulk", more_than_it_gets), Tier.BULK)
        began_s, began_at, sent = time.monotonic(), time.time(), 0
        with ThreadPoolExecutor(SENDERS) as pool:
            text = _sentences("Rush", RUSH_SENTENCES)
            for at_s in _moments(per_s, minutes * 60):
                time.sleep(max(0.0, began_s + at_s - time.monotonic()))
                pool.submit(rush.submit, text, Tier.RUSH)
                sent += 1
        until_at = time.time()
        made = dict(
            ask_ledger(
                farm,
                "SELECT tier, sum(1.0 * samples / rate_hz) FROM segment"
                " WHERE state = 'done' AND kind = 'speech' AND done_at BETWEEN ? AND ?"
                " GROUP BY tier",
                (began_at + SETTLE_S, until_at),
            )
        )
    audio_s = sum(made.values())
    return {
        "minutes": minutes,
        "rush_jobs": sent,
        "audio_s": {tier: round(s, 1) for tier, s in made.items()},
        "bulk_share": round(made.get(Tier.BULK.value, 0.0) / audio_s, 4),
    }


@contextmanager
def _farm(engine: str, environment: dict[str, str] | None = None) -> Iterator[Watched]:
    options = {"simulated": {"base_s": BASE_S, "per_item_s": PER_ITEM_S, "slots": MAX_BATCH}}
    settings = {
        "VOXFARM_ENGINE_OPTIONS": json.dumps(options),
        "VOXFARM_REFUSE_WHEN_FULL": "false",
        "VOXFARM_REQUESTS_PER_S": "0",
    }
    with running_farm(
        engine=engine, nodes=1, environment={**settings, **(environment or {})}
    ) as farm:
        yield farm


def _one(tenant: Tenant, sentences: int, tier: Tier) -> Times:
    """Send a job and wait for its end."""
    job_id = tenant.submit(_sentences("Newcomer", sentences), tier)
    tenant.wait_ended(job_id, within_s=WITHIN_S, poll_s=0.1)
    return _times(tenant, job_id)


def _times(tenant: Tenant, job_id: str) -> Times:
    [(claimed_s, spoken_s, file_s)] = ask_ledger(
        tenant.farm,
        "SELECT min(s.claimed_at) - j.created_at, max(s.done_at) - j.created_at,"
        " j.ended_at - j.created_at FROM segment s JOIN job j ON j.id = s.job_id"
        " WHERE j.id = ? AND s.kind = 'speech'",
        (job_id,),
    )
    return Times(claimed_s, spoken_s, file_s)


def _moments(per_s: float, until_s: float) -> Iterator[float]:
    chance, at_s = random.Random(1), 0.0
    while (at_s := at_s + chance.expovariate(per_s)) < until_s:
        yield at_s


def _sentences(word: str, count: int) -> str:
    return "\n\n".join(f"{word} sentence number {n} of a long and even text." for n in range(count))
