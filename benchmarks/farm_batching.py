"""Our arm of the batching comparison: the whole farm under the common load, on the same device.

The device's journal says when which sentences were done; the ledger, when they were sent to their
queue. So the waits are those from queue to the host's last chunk, as for the rivals.
"""

import json
import os
import signal
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.farm_process import Watched, running_farm
from benchmarks.load import BASE_S, MAX_BATCH, PER_ITEM_S, Batch, Load, summary, waits

WARM_SENTENCES = 24
WAIT_S = 90.0
KILL_SENTENCES = 120
ENDED = {"completed", "partial", "failed", "cancelled"}
KILLED = ("consumer", "engine host")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A batch of the device's journal."""

    ended_at: float
    texts: Sequence[str]

    def batch(self) -> Batch:
        """It as the common load counts it."""
        rush = sum(text.startswith("Rush") for text in self.texts)
        return Batch(self.ended_at, rush, len(self.texts) - rush)


class Client:
    """The farm's API, its ledger and its device's journal."""

    def __init__(self, farm: Watched, journal: Path) -> None:
        self.farm = farm
        self._journal = journal
        self._http = httpx.Client(base_url=farm.url, timeout=60)

    def submit(self, text: str, tier: str) -> str:
        """Submit a text; its job id."""
        body = {"text": text, "tier": tier, "engine": "simulated", "format": "flac", "reuse": False}
        return str(self._http.post("/v1/jobs", json=body).raise_for_status().json()["id"])

    def cancel(self, job_id: str) -> None:
        """Stop a job."""
        self._http.post(f"/v1/jobs/{job_id}/cancel").raise_for_status()

    def wait_ended(self, job_ids: Sequence[str]) -> None:
        """Wait until jobs have ended, however."""
        deadline_s = time.monotonic() + WAIT_S
        for job_id in job_ids:
            while self._http.get(f"/v1/jobs/{job_id}").json()["state"] not in ENDED:
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"job {job_id} did not end")
                time.sleep(0.1)

    def spoken(self) -> list[Spoken]:
        """All batches of the device, in order."""
        if not self._journal.exists():
            return []
        whole = self._journal.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
        lines = [json.loads(line) for line in whole]
        return [Spoken(line["ended_at"], line["texts"]) for line in lines]

    def wait_spoken(self, count: int) -> None:
        """Wait until the device has spoken so many sentences."""
        deadline_s = time.monotonic() + WAIT_S
        while sum(len(batch.texts) for batch in self.spoken()) < count:
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"fewer than {count} sentences were spoken")
            time.sleep(0.05)

    def ledger(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        """Ask the ledger."""
        with sqlite3.connect(f"file:{self.farm.data_dir / 'voxfarm.db'}?mode=ro", uri=True) as db:
            return db.execute(query, values).fetchall()


def measure(load: Load) -> dict[str, object]:
    """All figures of ours."""
    with tempfile.TemporaryDirectory(prefix="voxfarm-bench-") as folder:
        journal = Path(folder) / "journal.jsonl"
        device = {
            "base_s": BASE_S,
            "per_item_s": PER_ITEM_S,
            "slots": MAX_BATCH,
            "journal": str(journal),
        }
        environment = {"VOXFARM_ENGINE_OPTIONS": json.dumps({"simulated": device})}
        data_dir = Path(folder) / "data"
        with running_farm(
            engine="simulated", nodes=1, environment=environment, data_dir=data_dir
        ) as farm:
            client = Client(farm, journal)
            figures = _saturate(client, load)
            lost = sum(_kill(client) for _ in range(load.kills))
    return {**figures, "kills": load.kills, "lost_sentences": lost}


def _saturate(client: Client, load: Load) -> dict[str, object]:
    book = client.submit(_text("Bulk", load.bulk), "bulk")
    client.wait_spoken(WARM_SENTENCES)
    before, began_s, began_at = client.farm.cpu_s(), time.monotonic(), time.time()
    rush = dict[str, str]()
    for number, at_s in enumerate(load.rush_times_s()):
        time.sleep(max(0.0, began_s + at_s - time.monotonic()))
        text = f"Rush sentence number {number} is spoken at once."
        rush[client.submit(text, "rush")] = text
    time.sleep(max(0.0, began_s + load.seconds - time.monotonic()))
    after, ended_at = client.farm.cpu_s(), time.time()
    client.cancel(book)
    client.wait_ended(list(rush))
    spoken = client.spoken()
    seen = [batch for batch in spoken if began_at < batch.ended_at <= ended_at]
    sentences = sum(len(batch.texts) for batch in seen)
    cpu_ms = {
        kind: round(1000 * (after[kind] - before.get(kind, 0.0)) / sentences, 2)
        for kind in sorted(after)
    }
    return {
        **summary([batch.batch() for batch in seen]),
        **_rush_waits(client, rush, spoken),
        "cpu_ms_per_sentence": cpu_ms,
        "all_in_ms": round(sum(cpu_ms.values()), 2),
    }


def _rush_waits(client: Client, rush: dict[str, str], spoken: Sequence[Spoken]) -> dict[str, float]:
    over_at = {text: batch.ended_at for batch in spoken for text in batch.texts}
    to_chunk, to_stored, to_file = list[float](), list[float](), list[float]()
    for job_id, text in rush.items():
        [(sent_at, stored_at, created_at, ended_at)] = client.ledger(
            "SELECT s.dispatched_at, s.done_at, j.created_at, j.ended_at FROM segment s"
            " JOIN job j ON j.id = s.job_id WHERE j.id = ? AND s.kind = 'speech'",
            job_id,
        )
        to_chunk.append(over_at[text] - sent_at)
        to_stored.append(stored_at - created_at)
        to_file.append(ended_at - created_at)
    return {
        **waits("rush_batches", to_chunk),
        **waits("rush_submit_to_segment_s", to_stored, unit_s=1.0),
        **waits("rush_submit_to_file_s", to_file, unit_s=1.0),
        "rush_never_spoken": 0,
    }


def _kill(client: Client) -> int:
    """Kill consumers and engine host in the middle of a job; how many of its sentences are lost."""
    spoken = sum(len(batch.texts) for batch in client.spoken())
    job = client.submit(_text("Bulk", KILL_SENTENCES), "bulk")
    client.wait_spoken(spoken + KILL_SENTENCES // 3)
    for kind in KILLED:
        for process in client.farm.processes(kind):
            os.kill(process.pid, signal.SIGKILL)
    client.wait_ended([job])
    [(done,)] = client.ledger(
        "SELECT count(*) FROM segment WHERE job_id = ? AND kind = 'speech' AND state = 'done'", job
    )
    return KILL_SENTENCES - int(done)


def _text(word: str, count: int) -> str:
    return "\n\n".join(f"{word} sentence number {n} of a long and even text." for n in range(count))
