"""No tenant learns what another has had rendered: not by what it is told, nor by what it waits for.

On a whole farm with keys of two tenants; what they could tell by the clock, they would tell by
sentences that nobody had to speak for them.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from benchmarks.farm_process import Watched, running_farm
from shared.ledger import tables as t
from shared.ledger.database import Database, open_database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
DEADLINE_S = 120.0
SENTENCES = 6
NOBODYS = "01AAAAAAAAAAAAAAAAAAAAAAAA"
ENVIRONMENT = {"VOXFARM_ENGINE_OPTIONS": json.dumps({"tone": {"delay_s": 0.5}})}
LIVE = {"accepted", "planning", "rendering", "assembling"}


@dataclass(frozen=True)
class Tenants:
    """Two tenants' clients, and the ledger that only an operator sees."""

    a: httpx.Client
    b: httpx.Client
    database: Database


@pytest.fixture(scope="module")
def tenants() -> Iterator[Tenants]:
    with running_farm(engine="tone", nodes=1, environment=ENVIRONMENT) as farm, ExitStack() as all_:
        clients = [all_.enter_context(client_of(farm, tenant)) for tenant in ("a", "b")]
        url = f"sqlite:///{farm.data_dir / 'voxfarm.db'}"
        database = all_.enter_context(open_database(url))
        yield Tenants(clients[0], clients[1], database)


@contextmanager
def client_of(farm: Watched, tenant: str) -> Iterator[httpx.Client]:
    """A client with a new key of a tenant, once the API takes it."""
    argv = ["keys", "create", "--tenant", tenant, "--json", "--data", str(farm.data_dir)]
    made = subprocess.run(
        [sys.executable, "-m", "cli", *argv], capture_output=True, text=True, check=True
    )
    headers = {"Authorization": f"Bearer {json.loads(made.stdout)['key']}"}
    with httpx.Client(base_url=farm.url, headers=headers, timeout=30) as client:
        deadline_s = time.monotonic() + DEADLINE_S
        while client.get("/v1/jobs").status_code != httpx.codes.OK:
            assert time.monotonic() < deadline_s, "the key is not taken"
            time.sleep(0.2)
        yield client


def body(name: str) -> dict[str, object]:
    text = "\n\n".join(f"This is sentence {n} of {name}." for n in range(SENTENCES))
    return {"text": text, "engine": "tone", "format": "flac"}


def submit(client: httpx.Client, name: str) -> str:
    return str(client.post("/v1/jobs", json=body(name)).raise_for_status().json()["id"])


def quoted(client: httpx.Client, name: str) -> int:
    quote = client.post("/v1/jobs/quote", json=body(name)).raise_for_status().json()
    return int(quote["segments_reused"])


def finish(client: httpx.Client, job_id: str) -> dict[str, Any]:
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        job: dict[str, Any] = client.get(f"/v1/jobs/{job_id}").raise_for_status().json()
        if job["state"] not in LIVE:
            assert job["state"] == "completed", job
            return job
        assert time.monotonic() < deadline_s, job
        time.sleep(0.1)


def claims(tenants: Tenants, job_id: str) -> tuple[int, int]:
    """(sentences that an engine spoke for this very job, those planned to wait for another's)."""
    c = t.segment.c

    def read(which: object) -> int:
        query = select(func.count()).where(c.job_id == job_id, which)  # type: ignore[arg-type]
        return tenants.database.read(lambda conn: int(conn.execute(query).scalar_one()))

    return read(c.claimed_at.is_not(None)), read(c.follows)


def test_what_another_tenant_has_rendered_is_spoken_anew_and_quoted_as_new(
    tenants: Tenants,
) -> None:
    first = submit(tenants.a, "a secret")
    finish(tenants.a, first)
    assert (quoted(tenants.a, "a secret"), quoted(tenants.b, "a secret")) == (SENTENCES, 0)
    theirs = submit(tenants.b, "a secret")
    assert finish(tenants.b, theirs)["reuse"] == {"segments": 0, "of": SENTENCES, "parts": 0}
    assert claims(tenants, theirs) == (SENTENCES, 0)
    again = submit(tenants.a, "a secret")
    assert finish(tenants.a, again)["reuse"] == {
        "segments": SENTENCES,
        "of": SENTENCES,
        "parts": 1,
    }
    assert claims(tenants, again) == (0, 0)


def test_what_is_being_rendered_for_another_tenant_is_not_waited_for(tenants: Tenants) -> None:
    first = submit(tenants.a, "a secret under way")
    deadline_s = time.monotonic() + DEADLINE_S
    while claims(tenants, first)[0] == 0:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    theirs = submit(tenants.b, "a secret under way")
    assert quoted(tenants.b, "a secret under way") == 0
    assert finish(tenants.b, theirs)["reuse"] == {"segments": 0, "of": SENTENCES, "parts": 0}
    assert claims(tenants, theirs) == (SENTENCES, 0)
    finish(tenants.a, first)


def test_what_another_tenant_deleted_stays_its_secret_too(tenants: Tenants) -> None:
    first = submit(tenants.a, "a deleted secret")
    finish(tenants.a, first)
    tenants.a.delete(f"/v1/jobs/{first}").raise_for_status()
    assert quoted(tenants.b, "a deleted secret") == 0
    theirs = submit(tenants.b, "a deleted secret")
    assert finish(tenants.b, theirs)["reuse"]["segments"] == 0
    for rest in ("", "/deliverables"):
        answers = [tenants.b.get(f"/v1/jobs/{id_}{rest}") for id_ in (first, NOBODYS)]
        told = {(answer.status_code, answer.json()["code"]) for answer in answers}
        assert told == {(404, "job-not-found")}
