"""Tiers, quotes and pauses over a real server, on both databases."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.planned import FOUR_CHAPTERS
from cli.servers.valkey import ValkeyServer
from tests.contract.ledger import story
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
        api.publish(engine_info(chars_per_audio_s=10.0))
        yield api


def quote(api: RunningApi, **body: object) -> dict[str, Any]:
    answer = api.client.post("/v1/jobs/quote", json={"text": "Hello, world."} | body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def tiers(api: RunningApi) -> dict[str, dict[str, Any]]:
    time.sleep(1.1)  # an answer is remembered for a second
    return {tier["tier"]: tier for tier in api.client.get("/v1/tiers").json()["tiers"]}


def seconds_from_now(moment: str) -> float:
    return (datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds()


def test_an_idle_farm_promises_its_targets_and_no_wait(api: RunningApi) -> None:
    found = tiers(api)
    assert list(found) == ["rush", "standard", "bulk"]
    assert found["rush"]["target"] == {
        "first_audio_s": 2.0,
        "per_1000_chars_s": 10.0,
        "floor_s": 15.0,
    }
    for tier in found.values():
        assert tier["backlog"]["segments_waiting"] == tier["backlog"]["audio_s"] == 0
        assert tier["backlog"]["oldest_age_s"] is None
        assert tier["predicted_wait_s"] == 0.0
        assert tier["met_last_hour"] == {"jobs": 0, "met": 0, "share": None}
        assert tier["first_audio_last_day"] == {"jobs": 0, "met": 0, "share": None}


def test_a_backlog_is_told_in_audio_and_its_wait_once_a_rate_is_seen(api: RunningApi) -> None:
    api.submit(text="Ten chars!" * 10)
    standard = tiers(api)["standard"]
    assert standard["backlog"]["audio_s"] == pytest.approx(10.0)
    assert standard["backlog"]["jobs_unplanned"] == 1
    assert 0 < standard["backlog"]["oldest_age_s"] < 60
    assert standard["predicted_wait_s"] is None
    database = api.farm.database
    story.planned_job(database, per_part=40)
    story.speak(database, limit=30)
    api.publish(engine_info(chars_per_audio_s=10.0))  # as nodes do every few seconds
    busy = tiers(api)
    assert busy["standard"]["first_audio_last_hour"] == {"jobs": 1, "met": 1, "share": 1.0}
    assert busy["standard"]["met_last_hour"] == {"jobs": 0, "met": 0, "share": None}
    figures = api.client.get("/metrics").text
    labels = '{promise="first_audio",tier="standard",window="hour"}'
    assert f"voxfarm_promises_due{labels} 1.0" in figures
    assert f"voxfarm_promises_met{labels} 1.0" in figures
    assert busy["standard"]["backlog"]["segments_waiting"] == 10
    assert 0 < busy["standard"]["predicted_wait_s"] <= busy["bulk"]["predicted_wait_s"]
    assert busy["rush"]["predicted_wait_s"] == 0.0


def test_a_quote_tells_what_a_job_would_be_and_writes_nothing(api: RunningApi) -> None:
    found = quote(
        api, text="Twenty characters it. Привет. End.", on_unspeakable="skip", tier="rush"
    )
    assert (found["object"], found["tier"], found["engine"]) == ("quote", "rush", "hibari")
    assert (found["characters"], found["segments"], found["segments_skipped"]) == (34, 2, 1)
    assert [skip["reason"] for skip in found["skips"]] == ["unspeakable: Cyrillic"]
    assert found["audio_s"] == pytest.approx((21 + 4) / 10 + 0.3 + 1.5 + 0.1)
    assert found["wait_s"] is None  # nothing was ever rendered here
    assert seconds_from_now(found["due_at"]) == pytest.approx(15, abs=5)
    assert set(api.rows().values()) == {0}


def test_a_quote_is_what_planning_makes_of_the_same_body(api: RunningApi) -> None:
    text = FOUR_CHAPTERS.read_text()
    found = quote(api, text=text, split_chapters=True)
    assert (found["parts"], found["characters"]) == (4, len(text))
    fast = quote(api, text=text, split_chapters=True, speed=2.0)
    assert fast["audio_s"] < 0.6 * found["audio_s"]
    given = quote(api, text=None, chapters=[{"text": "One. "}, {"text": "Two."}])
    assert (given["parts"], given["segments"]) == (2, 2)


def test_a_quote_knows_what_waits(api: RunningApi) -> None:
    database = api.farm.database
    story.planned_job(database, per_part=60)
    story.speak(database, limit=30)
    api.publish(engine_info(chars_per_audio_s=10.0))  # as nodes do every few seconds
    found = quote(api)
    assert 0 < found["wait_s"] < found["completion_s"]


def test_a_quote_for_chinese_does_not_go_by_the_english_that_was_spoken_last(
    api: RunningApi,
) -> None:
    by_script = {"chars_per_audio_s": 10.0, "ideographs_per_audio_s": 1.0}
    story.planned_job(api.farm.database, per_part=60)
    story.speak(api.farm.database, limit=30)
    api.publish(engine_info(languages=("en", "zh"), **by_script))
    english = quote(api, text="Twenty characters it." * 100)
    chinese = quote(api, text="山谷里的邮局今天不开门山谷里的邮局今天不" * 100)
    assert (english["characters"], chinese["characters"]) == (2100, 2000)

    def own_s(found: dict[str, Any]) -> float:
        return float(found["completion_s"]) - float(found["wait_s"])

    assert own_s(chinese) > 2 * own_s(english)


def test_a_job_is_paused_resumed_and_cancelled(api: RunningApi) -> None:
    job = api.submit().json()
    assert job["progress"]["queue_position"] == 0
    paused = api.client.post(job["links"]["pause"])
    assert (paused.status_code, paused.json()["paused"]) == (200, True)
    assert paused.json()["progress"]["queue_position"] is None
    assert api.client.post(job["links"]["pause"]).json()["paused"]
    assert tiers(api)["standard"]["backlog"]["jobs_unplanned"] == 0
    resumed = api.client.post(job["links"]["resume"]).json()
    assert not resumed["paused"]
    assert resumed["due_at"] > job["due_at"]
    api.client.post(job["links"]["cancel"])
    refused = api.client.post(job["links"]["pause"])
    assert (refused.status_code, refused.json()["code"]) == (409, "not-pausable")
    assert refused.json()["state"] == "cancelled"
    assert api.client.post(job["links"]["resume"]).json()["state"] == "cancelled"
