import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.servers.valkey import ValkeyServer
from shared.ledger import jobs
from tests.integration.running_api import RunningApi, running_api, without_servers
from tests.unit.api.engines import engine_info


@pytest.fixture(params=["sqlite", "postgresql"])
def api(
    request: pytest.FixtureRequest, valkey: ValkeyServer, tmp_path: Path
) -> Iterator[RunningApi]:
    postgres = request.param == "postgresql"
    database_url = request.getfixturevalue("postgres_database") if postgres else ""
    settings = without_servers(tmp_path, database_url=database_url, redis_url=valkey.url)
    with running_api(settings) as api:
        api.publish(engine_info())
        yield api


def test_a_submitted_job_can_be_found_again(api: RunningApi) -> None:
    answer = api.submit(title="Greeting", metadata={"order": "1"}, tier="rush", seed=7)
    assert answer.status_code == 201
    job = answer.json()
    assert answer.headers["location"] == job["links"]["self"] == f"/v1/jobs/{job['id']}"
    assert api.client.get(answer.headers["location"]).json() == job
    assert (job["object"], job["state"], job["paused"]) == ("job", "accepted", False)
    assert (job["engine"], job["voice"], job["language"]) == ("hibari", "heart", "en")
    assert (job["tier"], job["format"], job["sample_rate_hz"]) == ("rush", "mp3", 44_100)
    assert (job["title"], job["metadata"], job["seed"]) == ("Greeting", {"order": "1"}, 7)
    assert job["characters"] == len("Hello, world.")
    assert job["progress"]["fraction"] == 0
    assert job["error"] is None
    assert job["started_at"] is None
    age = datetime.now(UTC) - datetime.fromisoformat(job["created_at"])
    assert abs(age) < timedelta(minutes=1)
    assert job["due_at"] > job["created_at"]
    assert job["created_at"].endswith("Z")
    for link in ("events", "segments", "deliverables"):
        assert api.client.get(job["links"]["segments"]).status_code == 200, link


def test_text_and_chapters_reach_the_ledger_unchanged(api: RunningApi) -> None:
    text = "Tab\there, \u00e9\u00e0\u00fc, \U0001f600 and\r\nNEL\x85 end.\n\n  Last.  "
    plain = api.submit(text=text).json()["id"]
    chapters = [{"title": "I", "text": "One. "}, {"title": "", "text": "Two."}]
    split = api.client.post("/v1/jobs", json={"chapters": chapters}).json()["id"]
    database = api.farm.database
    assert database.read(lambda conn: jobs.read_text(conn, plain)) == (text, [])
    assert database.read(lambda conn: jobs.read_text(conn, split)) == (
        "One. Two.",
        [("I", 0, 5), ("", 5, 9)],
    )


def test_metadata_comes_back_exactly(api: RunningApi) -> None:
    metadata = {"k\u00e9y \U0001f511": "line\nbreak \x00 \x7f \U0001f600", "empty": ""}
    job = api.submit(metadata=metadata).json()
    assert job["metadata"] == metadata
    assert api.client.get("/v1/jobs").json()["data"][0]["metadata"] == metadata


def test_the_same_key_and_wish_give_the_same_job(api: RunningApi) -> None:
    key = {"Idempotency-Key": "order-4711"}
    first = api.client.post("/v1/jobs", json={"text": "One.", "seed": 1}, headers=key)
    again = api.client.post(
        "/v1/jobs",
        content=b'{ "seed":1,  "tier": "standard", "text": "One." }',
        headers=key | {"Content-Type": "application/json; charset=utf-8"},
    )
    assert (first.status_code, again.status_code) == (201, 200)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert again.json()["id"] == first.json()["id"]
    assert api.rows()["job"] == 1


def test_the_same_key_with_another_wish_is_a_conflict(api: RunningApi) -> None:
    key = {"Idempotency-Key": "order-4711"}
    first = api.client.post("/v1/jobs", json={"text": "One."}, headers=key).json()
    other = api.client.post("/v1/jobs", json={"text": "Two."}, headers=key)
    assert other.status_code == 409
    assert other.json()["code"] == "idempotency-key-reused"
    assert other.json()["job_id"] == first["id"]
    assert api.rows()["job"] == 1


def test_a_replay_is_answered_even_when_the_engine_has_lost_its_voice(api: RunningApi) -> None:
    key, wish = {"Idempotency-Key": "k"}, {"text": "One.", "voice": "oak"}
    first = api.client.post("/v1/jobs", json=wish, headers=key)
    voices = engine_info().model_dump()["voices"][:1]
    api.publish(engine_info(voices=voices))
    assert api.client.post("/v1/jobs", json=wish).status_code == 422
    again = api.client.post("/v1/jobs", json=wish, headers=key)
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])


def test_fifty_submits_at_once_with_one_key_make_one_job(api: RunningApi) -> None:
    together = threading.Barrier(50)

    def one(_: int) -> httpx.Response:
        together.wait()
        with httpx.Client(base_url=api.url, timeout=30, trust_env=False) as client:
            return client.post("/v1/jobs", json={"text": "One."}, headers={"Idempotency-Key": "k"})

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(one, range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    rows = api.rows()
    assert (rows["job"], rows["job_text"], rows["step"]) == (1, 1, 1)


@pytest.mark.parametrize("key", ["", "k" * 256, "with space", "caf\u00e9".encode()])
def test_an_odd_idempotency_key_is_refused(api: RunningApi, key: Any) -> None:
    answer = api.client.post("/v1/jobs", json={"text": "One."}, headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-parameter")
    assert api.rows()["job"] == 0


def test_jobs_are_listed_newest_first_page_by_page(api: RunningApi) -> None:
    ids = [api.submit(title=str(i)).json()["id"] for i in range(5)]
    seen, cursor = [], None
    for _ in range(3):
        params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = api.client.get("/v1/jobs", params=params).json()
        assert page["object"] == "list"
        seen += [job["id"] for job in page["data"]]
        cursor = page["next_cursor"]
    assert cursor is None
    assert seen == sorted(ids, reverse=True)


def test_lists_are_filtered_by_state_tier_and_time(api: RunningApi) -> None:
    rush = api.submit(tier="rush").json()
    bulk = api.submit(tier="bulk").json()
    api.client.post(bulk["links"]["cancel"])

    def listed(**params: object) -> list[str]:
        answer = api.client.get("/v1/jobs", params=params)  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
        return [job["id"] for job in answer.json()["data"]]

    assert listed(tier="rush") == [rush["id"]]
    assert listed(state="cancelled") == [bulk["id"]]
    assert set(listed(state=["cancelled", "accepted"])) == {rush["id"], bulk["id"]}
    assert listed(state="failed") == []
    assert set(listed(created_from=rush["created_at"])) == {rush["id"], bulk["id"]}
    assert listed(created_to=rush["created_at"]) == []
    assert listed(created_from="2100-01-01T00:00:00+01:00") == []


def test_another_tenants_job_is_not_found(api: RunningApi) -> None:
    job = api.submit().json()
    api.farm.database.transact(
        lambda conn: conn.exec_driver_sql("UPDATE job SET tenant = 'somebody else'")
    )
    assert api.client.get("/v1/jobs").json()["data"] == []
    for method, link in (("GET", "self"), ("GET", "events"), ("GET", "segments")):
        assert api.client.request(method, job["links"][link]).status_code == 404
    assert api.client.post(job["links"]["cancel"]).status_code == 404
    assert api.client.get(job["links"]["deliverables"]).status_code == 404


def test_cancelling_ends_a_job_once_and_may_be_repeated(api: RunningApi) -> None:
    job = api.submit().json()
    first = api.client.post(job["links"]["cancel"])
    again = api.client.post(job["links"]["cancel"])
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json()["state"] == again.json()["state"] == "cancelled"
    assert first.json()["ended_at"] is not None
    assert first.json() == again.json()
    assert api.rows()["outbox"] == 1


def test_a_submitted_job_is_sent_to_be_planned_at_once(api: RunningApi) -> None:
    before = api.farm.broker.held("plan")
    api.submit()
    deadline = time.monotonic() + 10
    while api.farm.broker.held("plan") == before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_job_is_accepted_while_redis_is_away(tmp_path: Path) -> None:
    with running_api(without_servers(tmp_path)) as api:
        api.publish(engine_info())
        assert api.submit().status_code == 201
        assert api.rows()["step"] == 1


def test_the_documented_examples_are_accepted(api: RunningApi) -> None:
    submit = api.client.get("/openapi.json").json()["paths"]["/v1/jobs"]["post"]
    examples = submit["requestBody"]["content"]["application/json"]["examples"]
    assert set(examples) == {"text", "chapters"}
    for example in examples.values():
        assert api.client.post("/v1/jobs", json=example["value"]).status_code == 201
