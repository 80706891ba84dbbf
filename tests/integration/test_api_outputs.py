"""Segments, files, voices and engines as clients see them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Connection

from cli.servers.valkey import ValkeyServer
from shared.ledger import tables as t
from shared.settings import Settings
from tests.integration.running_api import RunningApi, running_api, without_servers
from tests.unit.api.engines import engine_info


@pytest.fixture
def api(valkey: ValkeyServer, s3_settings: Settings, tmp_path: Path) -> Iterator[RunningApi]:
    settings = s3_settings.model_copy(update={"data_dir": tmp_path, "redis_url": valkey.url})
    with running_api(settings) as api:
        api.farm.store.ensure_bucket()
        api.publish(engine_info(), engine_info("tone", testing=True))
        yield api


def write_segments(api: RunningApi, job_id: str, count: int) -> None:
    def write(conn: Connection) -> None:
        conn.execute(
            t.segment.insert(),
            [
                {
                    "job_id": job_id,
                    "index": i,
                    "part": i // 3,
                    "kind": "speech",
                    "start": 10 * i,
                    "end": 10 * i + 10,
                    "text": "canary",
                    "pause_after_s": 0.3,
                    "tier": "standard",
                    "chars": 6,
                    "due_at": 0.0,
                    "state": "done" if i == 0 else "pending",
                    "samples": 48_000 if i == 0 else 0,
                    "rate_hz": 24_000 if i == 0 else 0,
                    "object_key": "somewhere/secret" if i == 0 else None,
                }
                for i in range(count)
            ],
        )

    api.farm.database.transact(write)


def write_files(api: RunningApi, job_id: str) -> str:
    """Record a chapter's audio and a manifest; returns the audio's object key."""
    key = f"t/default/jobs/{job_id}/out/1/chapter-1.mp3"

    def write(conn: Connection) -> None:
        conn.execute(
            t.part.insert().values(
                job_id=job_id,
                index=0,
                title="Chapter I",
                start=0,
                end=5,
                segments_total=1,
                remaining=0,
                chars_total=5,
            )
        )
        shared = {"job_id": job_id, "sha256": "ab" * 32, "created_at": 0.0}
        audio = {
            "part": 0,
            "kind": "audio",
            "name": "chapter-1.mp3",
            "format": "mp3",
            "content_type": "audio/mpeg",
            "object_key": key,
            "size_bytes": 3_000_000_000,
            "samples": 88_200,
            "rate_hz": 44_100,
        }
        manifest = {
            "part": t.WHOLE_JOB,
            "kind": "manifest",
            "name": "manifest.json",
            "format": "json",
            "content_type": "application/json",
            "object_key": f"t/default/jobs/{job_id}/out/2/manifest.json",
            "size_bytes": 12,
            "samples": 0,
            "rate_hz": 0,
        }
        conn.execute(t.deliverable.insert(), [shared | audio, shared | manifest])

    api.farm.database.transact(write)
    return key


def test_segments_are_paged_in_the_order_of_the_text(api: RunningApi) -> None:
    job = api.submit().json()
    write_segments(api, job["id"], 7)
    indexes, cursor = [], None
    for _ in range(4):
        params = {"limit": "2"} | ({"cursor": cursor} if cursor is not None else {})
        page = api.client.get(job["links"]["segments"], params=params).json()
        indexes += [segment["index"] for segment in page["data"]]
        cursor = page["next_cursor"]
    assert cursor is None
    assert indexes == list(range(7))


def test_a_segment_tells_its_place_and_its_length_but_not_its_text(api: RunningApi) -> None:
    job = api.submit().json()
    write_segments(api, job["id"], 7)
    answer = api.client.get(job["links"]["segments"])
    first, second = answer.json()["data"][:2]
    assert (first["start"], first["end"], first["duration_s"]) == (0, 10, 2.0)
    assert (second["state"], second["duration_s"]) == ("pending", None)
    assert "canary" not in answer.text
    assert "secret" not in answer.text
    part = api.client.get(job["links"]["segments"], params={"part": 1}).json()["data"]
    assert [segment["index"] for segment in part] == [3, 4, 5]


def test_a_job_without_files_has_an_empty_list_of_them(api: RunningApi) -> None:
    job = api.submit().json()
    answer = api.client.get(job["links"]["deliverables"])
    assert answer.json() == {"job_id": job["id"], "files": []}


def test_files_come_with_urls_that_need_no_credentials(api: RunningApi) -> None:
    job = api.submit().json()
    key = write_files(api, job["id"])
    api.farm.store.put(key, b"audio", content_type="application/octet-stream")
    audio, manifest = api.client.get(job["links"]["deliverables"]).json()["files"]
    assert (audio["name"], audio["kind"], audio["part"]) == ("chapter-1.mp3", "audio", 0)
    assert (audio["title"], audio["bytes"]) == ("Chapter I", 3_000_000_000)
    assert (audio["samples"], audio["sample_rate_hz"], audio["duration_s"]) == (88_200, 44_100, 2.0)
    assert audio["sha256"] == "ab" * 32
    assert (manifest["kind"], manifest["part"], manifest["duration_s"]) == ("manifest", None, None)
    fetched = httpx.get(audio["url"], trust_env=False)
    assert fetched.content == b"audio"
    assert fetched.headers["content-type"] == "audio/mpeg"
    assert "chapter-1.mp3" in fetched.headers["content-disposition"]
    assert httpx.get(audio["url"].replace("chapter-1", "other"), trust_env=False).status_code == 403


def test_urls_name_the_stores_public_address_and_tell_when_they_end(tmp_path: Path) -> None:
    settings = without_servers(tmp_path, s3_public_endpoint="files.example:9000", presign_s=600)
    with running_api(settings) as api:
        api.publish(engine_info())
        job = api.submit().json()
        write_files(api, job["id"])
        audio = api.client.get(job["links"]["deliverables"]).json()["files"][0]
    url = httpx.URL(audio["url"])
    assert (url.host, url.port) == ("files.example", 9_000)
    assert url.params["X-Amz-Expires"] == "600"
    left_s = (datetime.fromisoformat(audio["url_expires_at"]) - datetime.now(UTC)).total_seconds()
    assert 500 < left_s <= 600


def test_voices_and_engines_are_listed_without_the_testing_ones(api: RunningApi) -> None:
    voices = api.client.get("/v1/voices").json()["voices"]
    assert [(v["engine"], v["id"], v["default"]) for v in voices] == [
        ("hibari", "heart", True),
        ("hibari", "oak", False),
    ]
    assert voices[0]["licence"] == "CC0"
    [engine] = api.client.get("/v1/engines").json()["engines"]
    assert (engine["name"], engine["live"], engine["nodes"]) == ("hibari", True, 1)
    assert engine["languages"] == ["en"]


def test_an_engine_whose_nodes_have_gone_is_known_but_not_live(api: RunningApi) -> None:
    api.farm.database.transact(
        lambda conn: conn.exec_driver_sql("UPDATE node SET heartbeat_at = heartbeat_at - 60")
    )
    [engine] = api.client.get("/v1/engines").json()["engines"]
    assert (engine["live"], engine["nodes"]) == (False, 0)
    assert api.submit().status_code == 201
