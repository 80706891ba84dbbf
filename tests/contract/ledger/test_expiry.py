"""A job's retention, its deletion, and what becomes of its audio: on both databases."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import Connection, func, select, update

from shared.errors import ConflictError
from shared.forgetting import forget
from shared.jobs import JobState
from shared.ledger import expiry, jobs, objects, retrying, segment_records, settling
from shared.ledger import tables as t
from shared.ledger.database import Database
from tests.contract.ledger import shelf, story


def record(database: Database, job_id: str) -> jobs.JobRecord:
    return database.read(lambda conn: jobs.get(conn, shelf.TENANT, job_id))


def left_of(database: Database, job_id: str) -> dict[str, int]:
    """How many rows still hold text of a job, or point to its audio."""

    def count(conn: Connection) -> dict[str, int]:
        s, p = t.segment.c, t.part.c
        queries = {
            "text": select(func.count()).where(t.job_text.c.job_id == job_id),
            "segment texts": select(func.count()).where(s.job_id == job_id, s.text != ""),
            "part titles": select(func.count()).where(p.job_id == job_id, p.title != ""),
            "audio": select(func.count()).where(s.job_id == job_id, s.object_key.is_not(None)),
            "files": select(func.count()).where(t.deliverable.c.job_id == job_id),
        }
        return {name: conn.execute(query).scalar_one() for name, query in queries.items()}

    return database.read(count)


NOTHING = {"text": 0, "segment texts": 0, "part titles": 0, "audio": 0, "files": 0}


def test_an_ended_job_says_when_it_expires_and_a_live_one_does_not(database: Database) -> None:
    alive = story.planned_job(database)
    assert record(database, alive).expires_at is None
    job_id = story.submit(database, retention_s=7_200)
    database.transact(lambda conn: jobs.end(conn, job_id, JobState.FAILED))
    seen = record(database, job_id)
    assert seen.ended_at is not None
    assert seen.expires_at == pytest.approx(seen.ended_at + 7_200, abs=0.1)


def test_only_jobs_whose_time_is_over_are_due_and_expire_once(database: Database) -> None:
    shelf.completed_job(database)
    over = shelf.completed_job(database)
    story.planned_job(database)
    assert database.read(lambda conn: expiry.due(conn, 10)) == []
    shelf.let_time_pass(database, over)
    assert database.read(lambda conn: expiry.due(conn, 10)) == [over]

    def expire(_: int) -> bool:
        return database.transact(lambda conn: expiry.expire(conn, over, reuse_s=0))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(expire, range(8))) == 1
    assert database.read(lambda conn: expiry.due(conn, 10)) == []


def test_an_expired_job_keeps_its_record_and_neither_text_nor_audio(database: Database) -> None:
    job_id = shelf.completed_job(database, parts=2, per_part=3)
    before = record(database, job_id)
    shelf.expire(database, job_id)
    after = record(database, job_id)
    assert after.state is JobState.EXPIRED
    assert left_of(database, job_id) == NOTHING
    assert (after.progress.segments_done, after.progress.audio_s) == (6, before.progress.audio_s)
    assert after.ended_at == before.ended_at
    rows = database.read(lambda conn: segment_records.page(conn, job_id, limit=10))
    assert [(r.start, r.end, r.samples) for r in rows] == [
        (n * 10, n * 10 + 10, 24_000) for n in range(6)
    ]
    assert database.read(lambda conn: expiry.unfinished(conn, 10)) == []
    shelf.check_references(database)


def test_audio_of_an_expired_job_is_reused_within_the_time_for_that(database: Database) -> None:
    job_id = shelf.completed_job(database)
    shelf.expire(database, job_id, reuse_s=3_600)
    assert shelf.doomed(database) == []
    again = shelf.reusing_job(database)
    assert record(database, again).segments_reused == 3
    shelf.check_references(database)


def test_without_such_a_time_it_goes_with_the_last_job_that_holds_it(database: Database) -> None:
    first = shelf.completed_job(database)
    second = shelf.reusing_job(database)
    shelf.expire(database, first, reuse_s=0)
    gone = shelf.doomed(database)
    assert gone == [f"out/{first}/-1", f"out/{first}/0"]  # its files; the audio is the other's too
    shelf.finish(database, second)
    shelf.expire(database, second, reuse_s=0)
    assert len(shelf.doomed(database)) == 3 + 2


def test_deleting_takes_the_audio_at_once_after_the_grace(database: Database) -> None:
    job_id = shelf.completed_job(database)
    shelf.delete(database, job_id)
    assert record(database, job_id).state is JobState.EXPIRED
    assert left_of(database, job_id) == NOTHING
    assert shelf.doomed(database, grace_s=600) == []
    assert len(shelf.doomed(database)) == 3 + 2


def test_deleting_an_expired_job_takes_what_was_kept_for_reuse(database: Database) -> None:
    job_id = shelf.completed_job(database)
    shelf.expire(database, job_id, reuse_s=3_600)
    assert shelf.doomed(database) == []
    shelf.delete(database, job_id)
    shelf.delete(database, job_id)  # twice is no harm
    assert len(shelf.doomed(database)) == 3 + 2


def test_a_live_job_is_cancelled_first_and_its_claims_come_to_nothing(database: Database) -> None:
    job_id = story.planned_job(database)
    claims = [story.must_claim(database, message) for message in story.feed(database)]
    assert story.commit(database, claims[0]).won
    shelf.delete(database, job_id)
    assert record(database, job_id).state is JobState.EXPIRED
    assert not story.commit(database, claims[1]).won
    assert left_of(database, job_id) == NOTHING
    kinds = database.read(lambda conn: conn.execute(select(t.outbox.c.type)).scalars().all())
    assert kinds == ["job.cancelled"]
    shelf.check_references(database)


def test_a_deletion_that_dies_half_way_is_finished_by_whoever_comes(database: Database) -> None:
    job_id = shelf.completed_job(database, per_part=5)
    database.transact(lambda conn: expiry.delete_now(conn, shelf.TENANT, job_id))
    after = database.transact(
        lambda conn: expiry.forget_some(conn, job_id, after=-1, reuse_s=3_600, limit=2)
    )
    assert after == 1
    shelf.check_references(database)
    assert database.read(lambda conn: expiry.unfinished(conn, 10)) == [job_id]
    with ThreadPoolExecutor(3) as pool:  # schedulers
        list(pool.map(lambda _: forget(database, job_id, reuse_s=3_600), range(3)))
    assert database.read(lambda conn: expiry.unfinished(conn, 10)) == []
    assert left_of(database, job_id) == NOTHING
    assert len(shelf.doomed(database)) == 5 + 2  # the owner's wish counted for all of it
    shelf.check_references(database)


def test_a_deletion_left_between_store_and_ledger_is_found_and_claims_nothing(
    database: Database,
) -> None:
    job_id = shelf.rendered_job(database, per_part=2)
    shelf.delete(database, job_id)
    keys = shelf.doomed(database)
    assert shelf.doomed(database) == []  # nobody else takes them up at once
    assert database.read(lambda conn: objects.left_doomed(conn, after_s=60, limit=9)) == []
    database.transact(lambda conn: conn.execute(update(t.stored_object).values(doomed_at=1.0)))
    left = database.read(lambda conn: objects.left_doomed(conn, after_s=60, limit=9))
    assert sorted(left) == keys
    database.transact(lambda conn: objects.forget(conn, left))
    counts = [
        database.read(lambda conn, x=x: conn.execute(select(func.count()).select_from(x)).scalar())  # type: ignore[misc]
        for x in (t.stored_object, t.rendering)
    ]
    assert counts == [0, 0]


def test_jobs_are_swept_once_nothing_of_them_can_count_any_more(database: Database) -> None:
    def unswept() -> list[str]:
        found = database.read(lambda conn: expiry.unswept(conn, after_s=0, limit=10))
        return [job_id for _tenant, job_id, _since in found]

    job_id = shelf.completed_job(database)
    failed = story.submit(database)
    database.transact(lambda conn: jobs.end(conn, failed, JobState.FAILED))
    story.planned_job(database)
    assert unswept() == [job_id]  # a failed one may be retried
    assert database.read(lambda conn: expiry.unswept(conn, after_s=60, limit=10)) == []
    [(tenant, _, since)] = database.read(lambda conn: expiry.unswept(conn, after_s=0, limit=10))
    assert tenant == shelf.TENANT
    shelf.expire(database, job_id)
    database.transact(lambda conn: expiry.swept(conn, job_id, since))
    assert unswept() == [job_id]  # it has moved on since: it is swept again
    shelf.expire(database, failed)
    assert set(unswept()) == {job_id, failed}


def test_a_job_tried_again_drops_what_it_replaces_and_does_not_expire_meanwhile(
    database: Database,
) -> None:
    job_id = story.planned_job(database, parts=2, per_part=2)
    for message in story.feed(database):
        claimed = story.must_claim(database, message)
        if message.index == 0:
            database.transact(
                lambda conn, c=claimed: settling.quarantine(conn, c.job_id, 0, c.token, "no")  # type: ignore[misc]
            )
        else:
            story.commit(database, claimed)
    shelf.finish(database, job_id)
    shelf.let_time_pass(database, job_id)
    database.transact(lambda conn: retrying.retry(conn, shelf.TENANT, job_id))
    assert record(database, job_id).expires_at is None
    assert database.read(lambda conn: expiry.due(conn, 10)) == []
    assert not database.transact(lambda conn: expiry.expire(conn, job_id, reuse_s=0))
    shelf.check_references(database)
    assert shelf.doomed(database) == [f"out/{job_id}/-1", f"out/{job_id}/0"]
    shelf.delete(database, job_id)
    assert left_of(database, job_id) == NOTHING
    shelf.check_references(database)


def test_a_deletion_counts_also_when_the_job_is_tried_again_that_moment(
    database: Database,
) -> None:
    for _ in range(4):
        job_id = shelf.rendered_job(database, per_part=2)
        database.transact(lambda conn, j=job_id: jobs.end(conn, j, JobState.FAILED))  # type: ignore[misc]
        with ThreadPoolExecutor(2) as pool:
            going = pool.submit(shelf.delete, database, job_id)
            pool.submit(_retry, database, job_id).result()
            going.result()
        assert record(database, job_id).state is JobState.EXPIRED
        assert left_of(database, job_id) == NOTHING
        shelf.check_references(database)


def _retry(database: Database, job_id: str) -> None:
    with suppress(ConflictError):
        database.transact(lambda conn: retrying.retry(conn, shelf.TENANT, job_id))


def test_what_its_owner_deleted_is_not_kept_for_reuse_when_the_last_to_hold_it_expires(
    database: Database,
) -> None:
    first = shelf.completed_job(database)
    second = shelf.reusing_job(database)
    shelf.finish(database, second)
    shelf.delete(database, first)
    shelf.expire(database, second)
    shelf.delete(database, second)
    left = database.read(
        lambda conn: conn.execute(select(func.count()).select_from(t.stored_object)).scalar_one()
    )
    assert left > 0
    assert len(shelf.doomed(database)) == left


def test_what_is_kept_for_a_job_can_be_told_until_it_ends(database: Database) -> None:
    job_id = shelf.completed_job(database)
    rows = database.read(lambda conn: segment_records.page(conn, job_id, limit=100))
    keys = {str(row.object_key) for row in rows}
    nowhere = {f"nowhere/{n}" for n in range(1_500)}  # more than are asked for at once
    kept = database.read(lambda conn: objects.keeping(conn, keys | nowhere))
    assert kept == dict.fromkeys(keys, objects.Keeping(1, ends=False))
    assert database.read(lambda conn: jobs.text_length(conn, job_id)) is not None
    database.transact(lambda conn: expiry.delete_now(conn, shelf.TENANT, job_id))
    forget(database, job_id, reuse_s=0.0)
    kept = database.read(lambda conn: objects.keeping(conn, keys))
    assert kept == dict.fromkeys(keys, objects.Keeping(0, ends=True))
    assert database.read(lambda conn: jobs.text_length(conn, job_id)) is None
