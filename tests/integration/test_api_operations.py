"""What operators ask of the API, and how it behaves when a part of the farm is away."""

import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.readiness import FRESH_S
from cli.servers.valkey import ValkeyServer
from shared.ledger import nodes
from shared.settings import Settings
from tests.integration.running_api import RunningApi, running_api, without_servers
from tests.unit.api.engines import engine_info

CANARY = "The canary sings at midnight."


@pytest.fixture
def api(tmp_path: Path) -> Iterator[RunningApi]:
    with running_api(without_servers(tmp_path)) as api:
        api.publish(engine_info())
        yield api


def metric(exposition: str, name: str, **labels: str) -> float:
    for line in exposition.splitlines():
        if line.startswith(name) and all(f'{k}="{v}"' in line for k, v in labels.items()):
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"no {name} with {labels} in\n{exposition}")


def test_metrics_count_requests_by_route_and_tell_the_backlog(api: RunningApi) -> None:
    for tier in ("rush", "rush", "bulk"):
        api.submit(text=CANARY, title=CANARY, tier=tier)
    job = api.submit().json()
    api.client.get(job["links"]["self"])
    api.client.post(job["links"]["cancel"])
    api.submit(colour="red")
    api.client.get(f"/nowhere/{CANARY}")
    api.client.request("BREW", "/v1/jobs")
    answer = api.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    text = answer.text
    requests = "voxfarm_api_requests_total"
    assert metric(text, requests, method="POST", route="/v1/jobs", status="201") == 4
    assert metric(text, requests, method="POST", route="/v1/jobs", status="422") == 1
    assert metric(text, requests, method="GET", route="/v1/jobs/{job_id}", status="200") == 1
    assert metric(text, requests, route="unmatched", status="404") == 1
    assert metric(text, requests, method="other") == 1
    assert metric(text, "voxfarm_api_response_seconds_count", route="/v1/jobs", method="POST") == 5
    assert metric(text, "voxfarm_jobs", state="accepted") == 3
    assert metric(text, "voxfarm_jobs", state="cancelled") == 1
    assert metric(text, "voxfarm_steps_open", kind="plan") == 3
    assert metric(text, "voxfarm_ledger_up") == 1
    assert "canary" not in text
    assert job["id"] not in text


def test_a_whole_farm_is_ready_until_a_part_of_it_goes(
    valkey: ValkeyServer, s3_settings: Settings, tmp_path: Path
) -> None:
    settings = s3_settings.model_copy(update={"data_dir": tmp_path, "redis_url": valkey.url})
    with running_api(settings) as api:
        assert set(failing(api)) == {"store", "nodes"}  # there is no bucket, and no node
        api.farm.store.ensure_bucket()
        api.publish(engine_info())
        time.sleep(FRESH_S)
        answer = api.client.get("/readyz")
        assert (answer.status_code, answer.json()["status"]) == (200, "ready")
        assert set(answer.json()["checks"]) == {"ledger", "broker", "store", "nodes"}
        api.farm.database.transact(lambda conn: nodes.withdraw(conn, "node-hibari"))
        time.sleep(FRESH_S)
        assert failing(api) == ["nodes"]


def failing(api: RunningApi) -> list[str]:
    answer = api.client.get("/readyz")
    assert answer.status_code == 503
    return [name for name, check in answer.json()["checks"].items() if not check["ok"]]


def test_a_farm_with_parts_missing_is_alive_but_not_ready(tmp_path: Path) -> None:
    with running_api(without_servers(tmp_path)) as api:
        assert api.client.get("/livez").json() == {"status": "alive"}
        answer = api.client.get("/readyz")
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        oks = {name: check["ok"] for name, check in problem["checks"].items()}
        assert oks == {"ledger": True, "broker": False, "store": False, "nodes": False}
        for name in ("broker", "store", "nodes"):
            assert name in problem["detail"]


def test_a_ledger_without_its_schema_is_not_ready(tmp_path: Path) -> None:
    with running_api(without_servers(tmp_path), migrated=False) as api:
        checks = api.client.get("/readyz").json()["checks"]
        assert not checks["ledger"]["ok"]
        assert not checks["nodes"]["ok"]
        assert api.client.get("/livez").status_code == 200


def test_with_the_database_away_requests_are_told_to_come_again(tmp_path: Path) -> None:
    away = without_servers(tmp_path, database_url="postgresql://x:secret@127.0.0.1:1/x")
    with running_api(away, migrated=False) as api:
        answer = api.submit()
        assert (answer.status_code, answer.json()["code"]) == (503, "ledger-away")
        assert int(answer.headers["retry-after"]) > 0
        assert "secret" not in answer.text
        metrics = api.client.get("/metrics").text
        assert metric(metrics, "voxfarm_ledger_up") == 0
        checks = api.client.get("/readyz").json()["checks"]
        assert not checks["ledger"]["ok"]
        assert "secret" not in json.dumps(checks)


def test_an_error_nobody_foresaw_is_logged_under_an_id_without_the_text(
    api: RunningApi, caplog: pytest.LogCaptureFixture
) -> None:
    api.farm.database.transact(lambda conn: conn.exec_driver_sql("DROP TABLE job_text"))
    with caplog.at_level(logging.DEBUG):
        answer = api.submit(text=CANARY)
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["code"] == "internal-error"
    assert re.fullmatch(r"[0-9a-f]{32}", problem["error_id"])
    assert problem["error_id"] in caplog.text
    assert "OperationalError" in caplog.text
    assert "jobs.py" in caplog.text
    assert "canary" not in caplog.text
    assert "Traceback" not in answer.text
    assert "job_text" not in answer.text
    assert api.client.get("/livez").status_code == 200
    assert api.farm.database.read(
        lambda conn: conn.exec_driver_sql("SELECT count(*) FROM job").scalar_one() == 0
    )


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_the_api_describes_itself_completely(api: RunningApi) -> None:
    document = api.client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in schemas
    known = {tag["name"] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert set(operation["tags"]) <= known, where
            assert operation["summary"], where
            assert operation["description"], where
            for status, response in operation["responses"].items():
                if status >= "400":
                    assert list(response["content"]) == ["application/problem+json"], where
    submit = document["paths"]["/v1/jobs"]["post"]
    assert submit["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "/Submission"
    )
    assert {"201", "200", "400", "409", "413", "415", "422", "503"} <= set(submit["responses"])
    assert [parameter["name"] for parameter in submit["parameters"]] == ["Idempotency-Key"]
    assert schemas["Submission"]["additionalProperties"] is False
    assert "HTTPValidationError" not in schemas
