"""Retention on a real store: what goes, what stays, and what dead workers left behind."""

import threading
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, select, update

from shared import object_keys
from shared.errors import StoreError
from shared.farm import Farm, farm_of
from shared.jobs import JobState
from shared.ledger import jobs, objects, renderings, settling, steps
from shared.ledger import tables as t
from shared.ledger.renderings import Audio
from shared.ledger.segments import Claim
from shared.ledger.steps import StepClaim
from shared.settings import Settings
from tests.contract.ledger import shelf, story
from tests.integration.running_api import RunningApi, running_api
from tests.unit.api.engines import engine_info
from worker import retention, scheduler
from worker.planning import run_plan


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Nothing is kept for later, and nobody is kept waiting."""
    at_once = {"reuse_s": 0.0, "delete_grace_s": 0.0, "orphan_after_s": 0.0, "requests_per_s": 0}
    return settings.model_copy(update=at_once)


def speak(farm: Farm, job_id: str) -> list[str]:
    """Render what waits, two sentences an object, as the workers do. Returns the objects' keys."""
    claims = [story.must_claim(farm.database, message) for message in story.feed(farm.database)]
    pairs = [claims[n : n + 2] for n in range(0, len(claims), 2)]
    return [_store_and_commit(farm, job_id, pair) for pair in pairs]


def _store_and_commit(farm: Farm, job_id: str, pair: list[Claim]) -> str:
    key = object_keys.segment_audio("default", job_id, pair[0].index, pair[0].token, together=2)
    farm.store.put(key, b"12345678" * len(pair), content_type="audio/flac")
    rendered = [
        (c.index, c.token, Audio(key, 8 * n, 8, "00" * 32, 24_000, 24_000))
        for n, c in enumerate(pair)
    ]
    farm.database.transact(lambda conn: settling.commit(conn, job_id, rendered))
    return key


def stored(farm: Farm) -> list[str]:
    return sorted(farm.store.keys("t/"))


def rows(farm: Farm) -> list[str]:
    return sorted(
        farm.database.read(lambda conn: conn.execute(select(t.stored_object.c.key)).scalars().all())
    )


def test_an_expired_jobs_objects_leave_store_and_ledger_together(farm: Farm) -> None:
    job_id = story.planned_job(farm.database, per_part=4)
    keys = speak(farm, job_id)
    assert stored(farm) == keys == rows(farm)
    farm.database.transact(lambda conn: jobs.end(conn, job_id, JobState.FAILED))
    retention.retain(farm)
    assert stored(farm) == keys  # its retention is not over
    shelf.let_time_pass(farm.database, job_id)
    retention.retain(farm)
    assert shelf.state(farm.database, job_id) is JobState.EXPIRED
    assert stored(farm) == rows(farm) == []
    retention.retain(farm)  # a second round, or a second scheduler, finds nothing


def test_an_object_stays_while_a_sentence_in_it_is_another_jobs_too(farm: Farm) -> None:
    first = story.planned_job(farm.database, per_part=4)
    keys = speak(farm, first)
    shelf.reusing_job(farm.database, per_part=1)
    shelf.delete(farm.database, first)
    retention.retain(farm)
    assert stored(farm) == rows(farm) == keys[:1]


def test_what_dead_workers_left_goes_when_nothing_of_the_job_can_count(farm: Farm) -> None:
    job_id = story.planned_job(farm.database, per_part=2)
    keys = speak(farm, job_id)
    other = story.planned_job(farm.database, per_part=1)
    zombies = [
        object_keys.segment_audio("default", job_id, 1, 9, together=1),
        object_keys.deliverable("default", job_id, "S" * 26, 1, "audio.flac"),
    ]
    alive = object_keys.segment_audio("default", other, 0, 1, together=1)
    for key in (*zombies, alive):
        farm.store.put(key, b"late", content_type="audio/flac")
    prefix = object_keys.job_prefix("default", job_id)
    upload = farm.store.open_multipart(f"{prefix}out/x", content_type="audio/flac")
    upload.put_part(1, b"half")
    retention.retain(farm)
    assert stored(farm) == sorted([*keys, *zombies, alive])  # both jobs live
    farm.database.transact(lambda conn: jobs.end(conn, job_id, JobState.CANCELLED))
    retention.retain(farm)
    assert stored(farm) == sorted([*keys, alive])
    assert farm.store.abort_uploads(prefix) == 0
    farm.store.put(zombies[0], b"later still", content_type="audio/flac")
    shelf.delete(farm.database, job_id)
    retention.retain(farm)
    assert stored(farm) == [alive]


def test_a_store_that_is_away_delays_deletion_and_loses_no_row(
    farm: Farm, settings: Settings
) -> None:
    job_id = story.planned_job(farm.database, per_part=2)
    keys = speak(farm, job_id)
    shelf.delete(farm.database, job_id)
    with (
        farm_of(settings.model_copy(update={"s3_endpoint": "127.0.0.1:1"})) as cut_off,
        pytest.raises(StoreError),
    ):
        retention.delete_condemned(cut_off)
    assert stored(farm) == rows(farm) == keys
    later = shelf.reusing_job(farm.database, per_part=2)  # what is doomed is reused by nobody
    [seen] = farm.database.read(
        lambda conn: (
            conn.execute(select(t.job.c.segments_reused).where(t.job.c.id == later)).scalars().all()
        )
    )
    assert seen == 0
    # Whoever began it is taken for dead after a while; the next one sees it through.
    farm.database.transact(lambda conn: conn.execute(update(t.stored_object).values(doomed_at=1.0)))
    retention.delete_condemned(farm)
    assert stored(farm) == rows(farm) == []


def test_a_deletion_that_died_behind_the_store_is_finished(farm: Farm) -> None:
    job_id = story.planned_job(farm.database, per_part=2)
    keys = speak(farm, job_id)
    shelf.delete(farm.database, job_id)
    assert shelf.doomed(farm.database) == keys
    farm.store.delete(keys)
    farm.database.transact(lambda conn: conn.execute(update(t.stored_object).values(doomed_at=1.0)))
    retention.delete_condemned(farm)
    assert rows(farm) == []


def test_two_schedulers_at_once_end_retentions_and_leave_in_time(
    farm: Farm, settings: Settings
) -> None:
    ended = []
    for _ in range(6):
        ended.append(story.planned_job(farm.database, per_part=4))
        speak(farm, ended[-1])
    for job_id in ended:
        farm.database.transact(lambda conn, j=job_id: jobs.end(conn, j, JobState.FAILED))  # type: ignore[misc]
        shelf.let_time_pass(farm.database, job_id)
    stop = threading.Event()
    schedulers = [
        threading.Thread(target=scheduler.run, args=(settings, stop), kwargs={"sweep_every_s": 0.1})
        for _ in range(2)
    ]
    for thread in schedulers:
        thread.start()
    try:
        deadline = time.monotonic() + 60
        while stored(farm) or rows(farm):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        stop.set()
        for thread in schedulers:
            thread.join(30)
    assert {shelf.state(farm.database, job_id) for job_id in ended} == {JobState.EXPIRED}
    shelf.check_references(farm.database)


@pytest.fixture
def api(settings: Settings) -> Iterator[RunningApi]:
    with running_api(settings) as api:
        api.farm.store.ensure_bucket()
        api.publish(engine_info())
        yield api


def test_a_job_tells_how_long_it_is_kept_and_takes_times_from_an_hour_to_a_month(
    api: RunningApi,
) -> None:
    job = api.submit(retention_s=7_200).json()
    assert (job["retention_s"], job["expires_at"]) == (7_200, None)
    assert api.submit().json()["retention_s"] == 7 * 86_400
    assert job["reuse"] == {"segments": 0, "of": 0, "parts": 0}
    for wrong in (3_599, 31 * 86_400 + 1, 0, -1, 7_200.5, "1d", True):
        answer = api.submit(retention_s=wrong)
        assert answer.status_code == 422, wrong
    ended = api.client.post(f"/v1/jobs/{job['id']}/cancel").json()
    assert ended["expires_at"] > ended["ended_at"]


def test_deleting_over_http_ends_removes_and_can_be_repeated(api: RunningApi) -> None:
    job = api.submit(text="A secret. Another one.", title="Kept").json()
    path = f"/v1/jobs/{job['id']}"
    for _ in range(2):
        answer = api.client.delete(path)
        assert answer.status_code == 200
        assert answer.json()["state"] == "expired"
    seen = api.client.get(path).json()
    assert (seen["state"], seen["title"]) == ("expired", "Kept")
    gone = api.client.get(f"{path}/deliverables")
    assert (gone.status_code, gone.json()["code"]) == (410, "job-expired")
    assert api.client.get(f"{path}/segments").status_code == 200
    assert api.rows()["job_text"] == 0
    assert api.client.delete(f"/v1/jobs/{'0' * 26}").status_code == 404
    assert api.client.delete("/v1/jobs/nonsense").status_code == 404
    with api.client.stream("GET", f"{path}/events") as events:
        assert any("event: end" in line for line in events.iter_lines())


def claimed_when_sent(farm: Farm, job_id: str) -> StepClaim:
    """The job's plan step, which the API sends by itself."""
    step_id: str = farm.database.read(
        lambda conn: conn.execute(select(t.step.c.id).where(t.step.c.job_id == job_id)).scalar_one()
    )
    deadline = time.monotonic() + 30
    while True:
        claimed = farm.database.transact(lambda conn: steps.claim(conn, step_id, 1, lease_s=60))
        if claimed is not None:
            return claimed
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_quote_counts_what_is_there_for_this_tenant(api: RunningApi) -> None:
    body = {"text": "One is here. Two is here. Three is here."}

    def reused(**wishes: object) -> tuple[int, int]:
        answer = api.client.post("/v1/jobs/quote", json=body | wishes).json()
        return answer["segments"], answer["segments_reused"]

    assert reused() == (3, 0)
    job_id = api.submit(**body).json()["id"]
    run_plan(api.farm, claimed_when_sent(api.farm, job_id))

    def render(conn: Connection) -> None:
        keys = conn.execute(select(t.segment.c.content_key)).scalars()
        audio = Audio("somewhere", 0, 8, "00" * 32, 24_000, 24_000)
        objects.refer(conn, "default", job_id, {audio.object_key: 3})
        renderings.record(conn, "default", {(key, 0): audio for key in keys})

    api.farm.database.transact(render)
    assert reused() == (3, 3)
    assert reused(text="One is here. Four is new.") == (2, 1)
    assert reused(speed=1.1) == reused(seed=1) == reused(voice="oak") == (3, 0)
    assert reused(reuse=False) == (3, 0)
