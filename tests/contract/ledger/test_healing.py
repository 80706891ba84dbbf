"""Audio that the store has lost is spoken again, and nothing else: on SQLite and on PostgreSQL."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import select, update

from shared.jobs import JobState
from shared.ledger import (
    deliverables,
    healing,
    jobs,
    pausing,
    renderings,
    retrying,
    segment_records,
    settling,
    steps,
)
from shared.ledger import tables as t
from shared.ledger.database import Database
from shared.ledger.healing import Healing
from shared.ledger.segment_records import SegmentRecord
from shared.ledger.segments import Claim
from shared.ledger.steps import StepClaim
from shared.segments import SegmentState
from shared.steps import StepKind
from tests.contract.ledger import shelf, story

MOST = 3


def segments_of(database: Database, job_id: str) -> list[SegmentRecord]:
    return database.read(lambda conn: segment_records.page(conn, job_id, limit=10_000))


def look(database: Database, job_id: str) -> jobs.JobRecord:
    return database.read(lambda conn: jobs.get(conn, shelf.TENANT, job_id))


def lose(database: Database, claimed: StepClaim, indexes: Collection[int]) -> Healing:
    """The assembly finds that these segments' audio cannot be had."""
    lost = [row for row in segments_of(database, claimed.job_id) if row.index in indexes]
    return database.transact(lambda conn: healing.reopen(conn, claimed, lost, most_losses=MOST))


def assembling(database: Database, job_id: str, part: int = 0) -> StepClaim:
    return story.claim_step(database, job_id, StepKind.ASSEMBLE, part=part)


def render(database: Database) -> list[Claim]:
    claims = [story.must_claim(database, message) for message in story.feed(database)]
    for claimed in claims:
        assert story.commit(database, claimed).won
    return claims


def test_only_what_is_lost_is_spoken_again_and_the_job_goes_on_to_its_end(
    database: Database,
) -> None:
    job_id = shelf.rendered_job(database, parts=2, per_part=3)
    before = segments_of(database, job_id)
    whole = look(database, job_id)
    assert whole.state is JobState.ASSEMBLING
    step = assembling(database, job_id, part=1)
    assert lose(database, step, [3, 5]) is Healing.REOPENED
    seen = look(database, job_id)
    assert (seen.state, seen.rendered_at, seen.progress.segments_done) == (
        JobState.RENDERING,
        None,
        4,
    )
    assert (seen.progress.audio_s, seen.progress.fraction < 1.0) == (4.0, True)
    assert story.count(database, job_id) == story.Counted(remaining=2, open_rows=2)
    shelf.check_references(database)
    assert story.claim_any_step(database, job_id) is not None  # the other part's
    claims = render(database)
    assert sorted(c.index for c in claims) == [3, 5]
    after = segments_of(database, job_id)
    for old, new in zip(before, after, strict=True):
        again = old.index in {3, 5}
        assert (new.token > old.token + 1) == again
        assert (new.object_key != old.object_key) == again
        assert (new.state, new.error) == (SegmentState.DONE, None)
    seen = look(database, job_id)
    assert (seen.state, seen.progress.audio_s) == (JobState.ASSEMBLING, 6.0)
    assert seen.rendered_at is not None


def test_the_part_is_assembled_when_its_lost_segments_are_in_and_not_before(
    database: Database,
) -> None:
    job_id = shelf.rendered_job(database, per_part=3)
    lose(database, assembling(database, job_id), [1])
    assert story.claim_any_step(database, job_id) is None
    [message] = story.feed(database)
    outcome = story.commit(database, story.must_claim(database, message))
    assert outcome.step_id is not None
    shelf.finish(database, job_id)
    done = look(database, job_id)
    assert (done.state, done.progress.segments_quarantined) == (JobState.COMPLETED, 0)
    shelf.check_references(database)


def test_parts_that_still_render_or_are_assembled_are_left_alone(database: Database) -> None:
    job_id = story.planned_job(database, parts=2, per_part=2)
    messages = story.feed(database)
    for message in messages[:2]:
        story.commit(database, story.must_claim(database, message))
    assert lose(database, assembling(database, job_id), [0, 1]) is Healing.REOPENED
    assert look(database, job_id).state is JobState.RENDERING
    for message in messages[2:]:
        story.commit(database, story.must_claim(database, message))
    assert look(database, job_id).state is JobState.RENDERING
    render(database)
    assert look(database, job_id).state is JobState.ASSEMBLING
    shelf.finish(database, job_id)
    assert look(database, job_id).state is JobState.COMPLETED


def test_no_token_from_before_commits_to_what_was_lost(database: Database) -> None:
    story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    first = story.must_claim(database, message)
    story.commit(database, first)
    lose(database, assembling(database, first.job_id), [0])
    assert not story.commit(database, first).won  # a zombie's, or one whose answer was lost
    assert story.claim(database, message) is None  # the old message, delivered again
    [second] = render(database)
    assert second.token > first.token
    shelf.check_references(database)


def test_a_message_delivered_again_and_a_zombies_assembly_change_nothing(
    database: Database,
) -> None:
    job_id = shelf.rendered_job(database, per_part=2)
    zombie = assembling(database, job_id)
    database.transact(
        lambda conn: conn.execute(
            update(t.step).where(t.step.c.id == zombie.id).values(lease_until=0.0)
        )
    )
    number = database.read(
        lambda conn: conn.execute(
            select(t.step.c.dispatch_no).where(t.step.c.id == zombie.id)
        ).scalar_one()
    )

    def again() -> StepClaim | None:
        return database.transact(lambda conn: steps.claim(conn, zombie.id, number, lease_s=30))

    heir = again()
    assert heir is not None
    assert lose(database, zombie, [0]) is Healing.NOT_OURS
    assert lose(database, heir, [0]) is Healing.REOPENED
    assert lose(database, heir, [1]) is Healing.NOT_OURS  # the answer was lost, and it asks again
    assert again() is None
    for late in (zombie, heir):
        file = shelf.file(job_id, 0)
        assert not database.transact(
            lambda conn, c=late, f=file: deliverables.commit_part(conn, c, f)  # type: ignore[misc]
        ).won
    assert [s.state for s in segments_of(database, job_id)] == ["pending", "done"]
    shelf.check_references(database)


def test_two_that_find_it_at_once_reopen_it_once(database: Database) -> None:
    for _ in range(4):
        job_id = shelf.rendered_job(database, per_part=3)
        step = assembling(database, job_id)
        start = Barrier(3)

        def find(_: int, step: StepClaim = step, start: Barrier = start) -> Healing:
            start.wait()
            return lose(database, step, [0, 2])

        with ThreadPoolExecutor(3) as pool:
            outcomes = sorted(outcome.value for outcome in pool.map(find, range(3)))
        assert outcomes == ["not ours", "not ours", "reopened"]
        assert story.count(database, job_id) == story.Counted(remaining=2, open_rows=2)
        shelf.check_references(database)
        render(database)
        shelf.finish(database, job_id)


def test_a_job_that_ends_meanwhile_wins_or_finds_what_was_reopened(database: Database) -> None:
    for _ in range(6):
        job_id = shelf.rendered_job(database, per_part=4)
        step = assembling(database, job_id)
        start = Barrier(2)

        def cancel(job_id: str = job_id, start: Barrier = start) -> None:
            start.wait()
            database.transact(lambda conn: jobs.cancel(conn, shelf.TENANT, job_id))

        def find(step: StepClaim = step, start: Barrier = start) -> None:
            start.wait()
            lose(database, step, [0, 1, 2, 3])

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(cancel), pool.submit(find)]:
                done.result()
        assert look(database, job_id).state is JobState.CANCELLED
        assert story.count(database, job_id).open_rows == 0
        assert story.feed(database) == []
        shelf.check_references(database)
        shelf.delete(database, job_id)


def test_what_is_lost_is_handed_to_nobody_and_what_lies_beside_it_neither(
    database: Database,
) -> None:
    job_id = story.planned_job(database)
    claims = [story.must_claim(database, message) for message in story.feed(database)]
    shared = story.audio_of(claims[0])
    rendered = [(c.index, c.token, shared) for c in claims[:2]]
    database.transact(lambda conn: settling.commit(conn, job_id, rendered))
    story.commit(database, claims[2])
    lose(database, assembling(database, job_id), [0])
    assert [s.state for s in segments_of(database, job_id)] == ["pending", "done", "done"]
    known = database.read(
        lambda conn: renderings.known(conn, shelf.TENANT, ["key0", "key1", "key2"])
    )
    assert known == {"key2"}
    shelf.check_references(database)
    assert shelf.doomed(database) == []  # the segment beside it is whole, and points to it
    render(database)
    later = shelf.reusing_job(database)
    assert [s.state for s in segments_of(database, later)] == ["done", "pending", "done"]


def test_an_object_that_nobody_else_points_to_is_condemned(database: Database) -> None:
    job_id = shelf.rendered_job(database, per_part=2)
    lost = segments_of(database, job_id)[1].object_key
    lose(database, assembling(database, job_id), [1])
    assert shelf.doomed(database) == [lost]
    shelf.check_references(database)


def test_jobs_that_share_lost_audio_each_heal_and_neither_costs_the_other(
    database: Database,
) -> None:
    first = shelf.rendered_job(database, per_part=2)
    second = shelf.reusing_job(database, per_part=2)
    assert look(database, second).segments_reused == 2
    for job_id in (first, second):
        assert lose(database, assembling(database, job_id), [0]) is Healing.REOPENED
        shelf.check_references(database)
        render(database)
        shelf.finish(database, job_id)
        assert look(database, job_id).state is JobState.COMPLETED
    assert look(database, second).segments_reused == 1  # the other one was spoken for it
    third = shelf.reusing_job(database, per_part=2)
    assert [s.object_key for s in segments_of(database, third)] == [
        s.object_key for s in segments_of(database, second)
    ]


def test_audio_that_is_lost_again_and_again_ends_the_job_and_a_retry_begins_anew(
    database: Database,
) -> None:
    job_id = shelf.rendered_job(database, per_part=3)
    for _ in range(MOST - 1):
        assert lose(database, assembling(database, job_id), [1]) is Healing.REOPENED
        assert len(render(database)) == 1
    assert lose(database, assembling(database, job_id), [1]) is Healing.GIVEN_UP
    failed = look(database, job_id)
    assert (failed.state, failed.error_code) == (JobState.FAILED, "audio-lost")
    assert "piece 1" in (failed.error_message or "")
    assert story.feed(database) == []
    shelf.check_references(database)
    retried = database.transact(lambda conn: retrying.retry(conn, shelf.TENANT, job_id))
    assert retried.state is JobState.ASSEMBLING
    assert lose(database, assembling(database, job_id), [1]) is Healing.REOPENED
    render(database)
    shelf.finish(database, job_id)
    assert look(database, job_id).state is JobState.COMPLETED
    shelf.check_references(database)


def test_a_job_that_failed_in_assembly_is_healed_by_a_retry(database: Database) -> None:
    job_id = shelf.rendered_job(database, per_part=3)
    database.transact(lambda conn: jobs.end(conn, job_id, JobState.FAILED, code="assemble-failed"))
    database.transact(lambda conn: retrying.retry(conn, shelf.TENANT, job_id))
    assert lose(database, assembling(database, job_id), [0, 1, 2]) is Healing.REOPENED
    assert len(render(database)) == 3
    shelf.finish(database, job_id)
    assert look(database, job_id).state is JobState.COMPLETED


def test_a_job_may_be_paused_while_it_heals(database: Database) -> None:
    job_id = shelf.rendered_job(database, per_part=3)
    lose(database, assembling(database, job_id), [2])
    database.transact(lambda conn: pausing.pause(conn, shelf.TENANT, job_id))
    assert story.feed(database) == []
    database.transact(lambda conn: pausing.resume(conn, shelf.TENANT, job_id))
    assert len(render(database)) == 1
    assert look(database, job_id).state is JobState.ASSEMBLING


@pytest.mark.parametrize("size", [2_300])
def test_a_long_part_that_is_all_lost_heals_in_one_round(database: Database, size: int) -> None:
    first = story.planned_job(database, per_part=size)
    everything = story.audio_of(story.must_claim(database, story.feed(database, 1)[0]))
    c = t.segment.c
    done = {"state": SegmentState.DONE, "object_key": everything.object_key, "rate_hz": 24_000}
    database.transact(
        lambda conn: conn.execute(update(t.segment).where(c.job_id == first).values(**done))
    )
    database.transact(lambda conn: settling.settle(conn, first, {0: settling.Tally(size)}))
    assert lose(database, assembling(database, first), range(size)) is Healing.REOPENED
    assert story.count(database, first) == story.Counted(remaining=size, open_rows=size)
