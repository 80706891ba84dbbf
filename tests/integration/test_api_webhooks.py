"""Webhooks through the API: register, name in a job, secrets, deliveries, refusals."""

import base64
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from shared.ledger import delivery_log, handing_out
from shared.webhooks import DeliveryState
from tests.contract.ledger import hooks
from tests.integration.running_api import RunningApi, running_api, without_servers
from tests.unit.api.engines import engine_info

URL = "https://hooks.example/voxfarm?token=canary"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[RunningApi]:
    with running_api(without_servers(tmp_path)) as api:
        api.publish(engine_info())
        yield api


def register(api: RunningApi, **changes: object) -> httpx.Response:
    return api.client.post("/v1/webhooks", json={"url": URL} | changes)


def end_one(api: RunningApi, **body: object) -> str:
    job = api.submit(**body).json()
    api.client.post(job["links"]["cancel"])
    return str(job["id"])


def test_a_webhook_is_registered_looked_at_listed_and_forgotten(api: RunningApi) -> None:
    answer = register(api)
    assert answer.status_code == 201
    hook = answer.json()
    assert answer.headers["location"] == f"/v1/webhooks/{hook['id']}"
    assert hook["events"] == ["job.completed", "job.partial", "job.failed", "job.cancelled"]
    assert (hook["every_job"], hook["enabled"], hook["standing"]) == (True, True, "new")
    again = register(api, events=["job.progress"])
    assert (again.status_code, again.json()["id"]) == (200, hook["id"])
    assert again.json()["events"] == ["job.progress"]
    other = register(api, url="https://other.example/").json()
    page = api.client.get("/v1/webhooks", params={"limit": 1}).json()
    assert [one["id"] for one in page["data"]] == [other["id"]]
    rest = api.client.get("/v1/webhooks", params={"cursor": page["next_cursor"]}).json()
    assert [one["id"] for one in rest["data"]] == [hook["id"]]
    address = f"/v1/webhooks/{hook['id']}"
    assert api.client.get(address).json()["url"] == URL
    assert api.client.delete(address).status_code == 204
    assert api.client.get(address).json()["code"] == "webhook-not-found"
    assert api.client.delete(address).status_code == 404


def test_a_job_names_a_webhook_and_says_so(api: RunningApi) -> None:
    job = api.submit(webhook={"url": URL, "events": ["job.cancelled"]}).json()
    assert job["webhook"]["events"] == ["job.cancelled"]
    hook = api.client.get(f"/v1/webhooks/{job['webhook']['id']}").json()
    assert (hook["url"], hook["every_job"], hook["events"]) == (URL, False, [])
    api.client.post(job["links"]["cancel"])
    path = f"/v1/webhooks/{hook['id']}/deliveries"
    [delivery] = api.client.get(path).json()["data"]
    assert (delivery["event"], delivery["job_id"]) == ("job.cancelled", job["id"])
    assert (delivery["state"], delivery["attempts"]) == ("pending", 0)
    assert api.submit().json()["webhook"] is None


def test_the_same_submit_with_another_webhook_is_another_request(api: RunningApi) -> None:
    def submit(url: str) -> httpx.Response:
        body = {"text": "Hello.", "webhook": {"url": url}}
        return api.client.post("/v1/jobs", json=body, headers={"Idempotency-Key": "one"})

    first = submit(URL)
    assert submit(URL).json()["id"] == first.json()["id"]
    assert submit("https://other.example/").json()["code"] == "idempotency-key-reused"


@pytest.mark.parametrize(
    ("webhook", "code"),
    [
        ({"url": "http://hooks.example/"}, "bad-webhook-url"),
        ({"url": "https://canary:canary@hooks.example/"}, "bad-webhook-url"),
        ({"url": "ftp://hooks.example/"}, "bad-webhook-url"),
        ({"url": "https://127.0.0.1/canary"}, "bad-webhook-url"),
        ({"url": "https://[::ffff:10.0.0.1]/canary"}, "bad-webhook-url"),
        ({"url": "https://169.254.169.254/canary"}, "bad-webhook-url"),
        ({"url": "https://localhost/canary"}, "bad-webhook-url"),
        ({"url": "https://hooks.example:25/canary"}, "bad-webhook-url"),
        ({"url": ""}, "invalid-field"),
        ({"url": 7}, "invalid-field"),
        ({}, "invalid-field"),
        ({"url": URL, "events": []}, "invalid-field"),
        ({"url": URL, "events": ["webhook.test"]}, "invalid-field"),
        ({"url": URL, "events": ["job.failed", "job.failed"]}, "invalid-field"),
        ({"url": URL, "secret": "canary"}, "unknown-field"),
        (URL, "invalid-field"),
    ],
)
def test_what_is_no_webhook_is_refused_at_both_doors_and_not_repeated(
    api: RunningApi, webhook: object, code: str
) -> None:
    for answer in (api.submit(webhook=webhook), api.client.post("/v1/webhooks", json=webhook)):
        assert (answer.status_code, answer.json()["code"]) == (422, code)
        assert "canary" not in answer.text
    assert api.rows()["job"] == 0
    assert api.client.get("/v1/webhooks").json()["data"] == []


def test_a_secret_is_read_by_its_owner_changed_with_an_overlap_and_logged_by_nobody(
    api: RunningApi, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"/v1/webhooks/{register(api).json()['id']}"
    with caplog.at_level(logging.DEBUG):
        first = api.client.get(f"{address}/secret")
        changed = api.client.post(f"{address}/rotate", params={"overlap_s": 600})
    assert first.headers["cache-control"] == changed.headers["cache-control"] == "no-store"
    [before] = first.json()["secrets"]
    assert len(base64.b64decode(before["secret"].removeprefix("whsec_"))) == 32
    now, former = changed.json()["secrets"]
    assert former["secret"] == before["secret"] != now["secret"]
    assert (now["until"], former["until"] is not None) == (None, True)
    again = api.client.post(f"{address}/rotate")
    assert (again.status_code, again.json()["code"]) == (409, "rotation-under-way")
    [only] = api.client.post(f"{address}/rotate", params={"overlap_s": 0}).json()["secrets"]
    assert only["secret"] not in {now["secret"], former["secret"]}
    assert api.client.post(f"{address}/rotate", params={"overlap_s": -1}).status_code == 422
    for one in (before, now, only):
        assert one["secret"] not in caplog.text
        assert one["secret"].removeprefix("whsec_") not in caplog.text
    stored = Path(api.farm.settings.data_dir / "voxfarm.db").read_bytes()
    assert before["secret"].removeprefix("whsec_").encode() not in stored


def test_deliveries_are_logged_replayed_and_tried_out(api: RunningApi) -> None:
    hook_id = register(api).json()["id"]
    end_one(api)
    database, address = api.farm.database, f"/v1/webhooks/{hook_id}"
    claimed = hooks.must_claim(database)
    hooks.settle(database, claimed, hooks.BAD, hooks.Verdict(DeliveryState.FAILED))
    log = api.client.get(f"{address}/deliveries/{claimed.id}").json()
    assert (log["delivery"]["state"], log["delivery"]["status"]) == ("failed", 500)
    [attempt] = log["attempts"]
    assert (attempt["number"], attempt["status"], attempt["duration_s"]) == (1, 500, 0.1)
    failed = api.client.get(f"{address}/deliveries", params={"state": "failed"}).json()["data"]
    assert [one["id"] for one in failed] == [claimed.id]
    assert api.client.get(f"{address}/deliveries", params={"state": "odd"}).status_code == 422
    replayed = api.client.post(f"{address}/deliveries/{claimed.id}/replay")
    assert (replayed.status_code, replayed.json()["state"]) == (200, "pending")
    assert replayed.json()["event_id"] == claimed.event_id
    assert api.client.post(f"{address}/replay").json() == {"replayed": 0}
    hooks.settle(
        database, hooks.must_claim(database), hooks.BAD, hooks.Verdict(DeliveryState.FAILED)
    )
    later = {"since": "2099-01-01T00:00:00Z"}
    assert api.client.post(f"{address}/replay", params=later).json() == {"replayed": 0}
    assert api.client.post(f"{address}/replay").json() == {"replayed": 1}
    tried = api.client.post(f"{address}/test")
    assert (tried.status_code, tried.json()["event"]) == (202, "webhook.test")


def test_a_disabled_webhook_is_a_conflict_until_it_is_enabled(api: RunningApi) -> None:
    hook_id = register(api).json()["id"]
    address = f"/v1/webhooks/{hook_id}"
    assert api.client.post(f"{address}/disable").json()["disabled_reason"] == "asked for"
    for answer in (
        api.submit(webhook={"url": URL}),
        api.client.post(f"{address}/test"),
        api.client.post(f"{address}/replay"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "webhook-disabled")
    body = {"text": "Hello.", "webhook": {"url": URL}}
    quoted = api.client.post("/v1/jobs/quote", json=body).json()["admissible"]
    assert (quoted["ok"], quoted["code"]) == (False, "webhook-disabled")
    assert quoted["retry_after_s"] is None  # time alone does not help
    assert api.rows()["job"] == 0
    assert api.client.post(f"{address}/enable").json()["enabled"] is True
    assert api.client.post("/v1/jobs/quote", json=body).json()["admissible"]["ok"]
    assert api.submit(webhook={"url": URL}).status_code == 201
    assert api.farm.database.read(handing_out.is_anything_due) is False


def test_nothing_of_another_webhook_or_of_nobody_is_found(api: RunningApi) -> None:
    mine, other = (register(api, url=f"https://{n}.example/").json()["id"] for n in "ab")
    end_one(api)
    [delivery] = api.farm.database.read(lambda conn: delivery_log.page(conn, mine, limit=9))
    for path in (
        f"/v1/webhooks/{other}/deliveries/{delivery.id}",
        f"/v1/webhooks/{mine}/deliveries/{'0' * 26}",
        f"/v1/webhooks/{mine}/deliveries/x",
    ):
        assert api.client.get(path).json()["code"] == "delivery-not-found"
    for path in ("/v1/webhooks/x", f"/v1/webhooks/{'0' * 26}/secret"):
        assert api.client.get(path).json()["code"] == "webhook-not-found"
    for action in ("enable", "disable", "test", "replay", "rotate"):
        assert api.client.post(f"/v1/webhooks/{'0' * 26}/{action}").status_code == 404
