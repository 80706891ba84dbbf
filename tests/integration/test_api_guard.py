"""What a web page could make a browser send to a loopback API, and what it gets."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from api.auth import refuse_open_bind
from shared.errors import SetupError
from shared.settings import Settings
from tests.integration.running_api import RunningApi, running_api, without_servers
from tests.unit.api.engines import engine_info


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    with running_api(without_servers(tmp_path_factory.mktemp("farm"))) as api:
        api.publish(engine_info())
        yield api


def get(api: RunningApi, host: str) -> httpx.Response:
    return api.client.get("/v1/jobs", headers={"Host": host})


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.9.9.9:1", "[::1]:8080", "x.localhost"]
)
def test_names_of_this_machine_are_served(api: RunningApi, host: str) -> None:
    assert get(api, host).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:8080",
        "10.0.0.1",
        "[2001:db8::1]",
        "[::1",
        "user@evil.example",
        "",
    ],
)
def test_any_other_name_is_not(api: RunningApi, host: str) -> None:
    answer = get(api, host)
    assert (answer.status_code, answer.json()["code"]) == (421, "host-not-allowed")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_foreign_page_changes_nothing(api: RunningApi, headers: dict[str, str]) -> None:
    answer = api.client.post("/v1/jobs", json={"text": "a"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "cross-site-request")
    assert api.rows()["job"] == 0


def test_no_answer_lets_a_foreign_page_read_it(api: RunningApi) -> None:
    answer = api.client.get("/v1/jobs", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_a_page_of_our_own_may_submit(api: RunningApi) -> None:
    own = {"Origin": api.url, "Sec-Fetch-Site": "same-origin"}
    assert api.client.post("/v1/jobs", json={"text": "a"}, headers=own).status_code == 201


def test_behind_a_proxy_that_authenticates_any_name_is_served(tmp_path: Path) -> None:
    with running_api(without_servers(tmp_path, allow_unauthenticated=True)) as api:
        assert get(api, "farm.example").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "farm.example", ""])  # noqa: S104
def test_an_open_address_wants_keys_unless_the_operator_insists(host: str) -> None:
    with pytest.raises(SetupError, match="VOXFARM_ALLOW_UNAUTHENTICATED"):
        refuse_open_bind(Settings(api_host=host), keys_exist=False)
    refuse_open_bind(Settings(api_host=host), keys_exist=True)
    refuse_open_bind(Settings(api_host=host, allow_unauthenticated=True), keys_exist=False)
