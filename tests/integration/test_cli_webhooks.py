"""`voxfarm webhooks` against a real API."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from cli.client import FarmClient
from cli.main import build_app
from cli.webhook_client import Webhooks
from shared.webhooks import DeliveryState
from tests.contract.ledger import hooks
from tests.integration.running_api import RunningApi, running_api, without_servers
from tests.unit.api.engines import engine_info

ADDRESS = "https://hooks.example/voxfarm"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[RunningApi]:
    with running_api(without_servers(tmp_path)) as api:
        api.publish(engine_info())
        yield api


def run(api: RunningApi, *words: str) -> Result:
    return CliRunner().invoke(build_app(), ["webhooks", *words, "--url", api.url])


def as_json(api: RunningApi, *words: str) -> object:
    result = run(api, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_webhook_is_added_listed_changed_and_removed(api: RunningApi) -> None:
    assert run(api, "list").stdout == "no webhooks\n"
    added = as_json(api, "add", ADDRESS, "--event", "job.failed")
    assert isinstance(added, dict)
    assert (added["url"], added["events"]) == (ADDRESS, ["job.failed"])
    [secret] = added["secrets"]
    shown = run(api, "secret", added["id"])
    assert shown.stdout.strip() == secret["secret"]
    rotated = run(api, "rotate", added["id"])
    assert rotated.stdout.split()[1] == secret["secret"]
    again = run(api, "rotate", added["id"])
    assert (again.exit_code, again.stdout) == (2, "")
    assert ADDRESS in run(api, "list").stdout
    assert "is disabled" in run(api, "disable", added["id"]).stdout
    assert "disabled" in run(api, "list").stdout
    assert "is enabled" in run(api, "enable", added["id"]).stdout
    assert run(api, "remove", added["id"]).exit_code == 0
    assert run(api, "secret", added["id"]).exit_code == 2


def test_a_refused_address_is_a_usage_error(api: RunningApi) -> None:
    for address in ("http://hooks.example/", "https://127.0.0.1/", "nonsense"):
        refused = run(api, "add", address)
        assert (refused.exit_code, refused.stdout) == (2, "")


def test_deliveries_are_listed_shown_and_replayed(api: RunningApi) -> None:
    added = as_json(api, "add", ADDRESS)
    assert isinstance(added, dict)
    assert run(api, "deliveries", added["id"]).stdout == "no deliveries\n"
    job = api.submit().json()
    api.client.post(job["links"]["cancel"])
    claimed = hooks.must_claim(api.farm.database)
    failed = hooks.Verdict(DeliveryState.FAILED)
    hooks.settle(api.farm.database, claimed, hooks.BAD, failed)
    assert job["id"] in run(api, "deliveries", added["id"], "--state", "failed").stdout
    log = run(api, "log", added["id"], claimed.id).stdout
    assert "is failed" in log
    assert "500" in log
    assert "1 deliveries are sent again" in run(api, "replay", added["id"]).stdout
    assert "is pending" in run(api, "replay", added["id"], claimed.id).stdout


def test_a_test_event_that_nobody_takes_in_time_is_exit_code_1(api: RunningApi) -> None:
    added = as_json(api, "add", ADDRESS)
    assert isinstance(added, dict)
    tried = run(api, "test", added["id"], "--wait", "0")
    assert tried.exit_code == 1
    assert "webhook.test is pending" in tried.stdout


def test_the_client_pages_through_everything(api: RunningApi) -> None:
    for n in range(3):
        hooks.register(api.farm.database, f"https://h{n}.example/")
    with FarmClient(api.url) as farm:
        webhooks = Webhooks(farm)
        assert len(list(webhooks.all())) == 3
        assert webhooks.get(next(webhooks.all()).id).enabled
