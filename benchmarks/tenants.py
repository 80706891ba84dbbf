"""Tenants of a farm under measurement: a key for each, their jobs, and the ledger beside them.

Knows no bar. The farm must be embedded, on SQLite: the ledger is read beside it.
"""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from benchmarks.farm_process import Watched

ENDED = frozenset({"completed", "partial", "failed", "cancelled"})


@dataclass(slots=True)
class Tenant:
    """A tenant with an API key of its own. `engine` is asked for with every job."""

    farm: Watched
    name: str
    engine: str
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        key = _make_key(self.farm, self.name)
        headers = {"Authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=self.farm.url, timeout=60, headers=headers)

    def body(self, text: str, tier: str) -> dict[str, object]:
        """A job's request."""
        wishes = {"tier": tier, "engine": self.engine, "format": "flac", "reuse": False}
        return {"text": text} | wishes

    def submit(self, text: str, tier: str) -> str:
        """Submit a job; its id."""
        reply = self.http.post("/v1/jobs", json=self.body(text, tier)).raise_for_status()
        return str(reply.json()["id"])

    def quote(self, text: str, tier: str) -> dict[str, Any]:
        """What the farm says of a job before anything is spent."""
        reply = self.http.post("/v1/jobs/quote", json=self.body(text, tier)).raise_for_status()
        return dict(reply.json())

    def job(self, job_id: str) -> dict[str, Any]:
        """A job as its tenant sees it."""
        return dict(self.http.get(f"/v1/jobs/{job_id}").raise_for_status().json())

    def cancel(self, job_id: str) -> None:
        """Stop a job; one that has ended is left alone."""
        if self.job(job_id)["state"] not in ENDED:
            self.http.post(f"/v1/jobs/{job_id}/cancel").raise_for_status()

    def wait_ended(self, job_id: str, *, within_s: float, poll_s: float = 0.25) -> dict[str, Any]:
        """The job at its end; raises TimeoutError, and RuntimeError when it is not completed."""
        deadline_s = time.monotonic() + within_s
        while (job := self.job(job_id))["state"] not in ENDED:
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"job {job_id} did not end within {within_s:.0f} s")
            time.sleep(poll_s)
        if job["state"] != "completed":
            raise RuntimeError(f"job {job_id} ended as {job['state']}: {job['error']}")
        return job


def ask_ledger(farm: Watched, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Rows of the farm's own ledger."""
    with sqlite3.connect(f"file:{farm.data_dir / 'voxfarm.db'}?mode=ro", uri=True) as ledger:
        return ledger.execute(query, tuple(values)).fetchall()


def _make_key(farm: Watched, tenant: str) -> str:
    command = [sys.executable, "-m", "cli", "keys", "create", "--json", "--tenant", tenant]
    made = subprocess.run(
        [*command, "--data", str(farm.data_dir)], check=False, capture_output=True, text=True
    )
    if made.returncode != 0:
        raise RuntimeError(f"no key for {tenant}: {made.stderr.strip()}")
    return str(json.loads(made.stdout)["key"])
