"""Audio that is there already is not made again: on SQLite and on PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

from sqlalchemy import Connection

from shared.jobs import JobState
from shared.ledger import (
    deliverables,
    encodings,
    jobs,
    objects,
    plans,
    renderings,
    segment_records,
    settling,
)
from shared.ledger.database import Database
from shared.ledger.segment_records import SegmentRecord
from shared.segments import SegmentState
from shared.steps import StepKind
from shared.tiers import Tier
from tests.contract.ledger import shelf, story


def segments_of(database: Database, job_id: str) -> list[SegmentRecord]:
    return database.read(lambda conn: segment_records.page(conn, job_id, limit=10_000))


def record(database: Database, job_id: str) -> jobs.JobRecord:
    return database.read(lambda conn: jobs.get(conn, shelf.TENANT, job_id))


def test_a_job_of_known_text_goes_straight_to_assembly_and_claims_nothing(
    database: Database,
) -> None:
    first = shelf.rendered_job(database, parts=2, per_part=3)
    second = shelf.reusing_job(database, parts=2, per_part=3)
    assert story.feed(database) == []
    seen = record(database, second)
    assert seen.state is JobState.ASSEMBLING
    assert (seen.segments_reused, seen.progress.segments_done) == (6, 6)
    assert seen.progress.fraction == 1.0
    assert seen.progress.audio_s == 6.0
    assert seen.started_at is not None
    for mine, theirs in zip(
        segments_of(database, second), segments_of(database, first), strict=True
    ):
        assert (mine.state, mine.attempt, mine.token) == (SegmentState.DONE, 0, 0)
        assert (mine.object_key, mine.sha256) == (theirs.object_key, theirs.sha256)
    shelf.finish(database, second)
    assert record(database, second).state is JobState.COMPLETED
    shelf.check_references(database)


def test_only_what_is_not_there_is_claimed_and_counted_to_the_end(database: Database) -> None:
    shelf.rendered_job(database, per_part=3)
    longer = shelf.reusing_job(database, per_part=5)
    claims = [story.must_claim(database, message) for message in story.feed(database)]
    assert sorted(c.index for c in claims) == [3, 4]
    outcomes = [story.commit(database, claimed) for claimed in claims]
    assert [outcome.step_id is not None for outcome in outcomes] == [False, True]
    assert record(database, longer).state is JobState.ASSEMBLING
    assert record(database, longer).segments_reused == 3
    shelf.check_references(database)


def test_a_part_that_is_all_there_is_assembled_while_others_render(database: Database) -> None:
    shelf.rendered_job(database, parts=1, per_part=3)
    job_id = shelf.reusing_job(database, parts=2, per_part=3)
    claimed = story.claim_step(database, job_id, StepKind.ASSEMBLE)
    assert claimed.part == 0
    assert record(database, job_id).state is JobState.RENDERING
    assert shelf.render_rest(database) == 3
    assert record(database, job_id).state is JobState.ASSEMBLING


def test_another_tenants_audio_is_never_found_even_under_an_equal_key(database: Database) -> None:
    shelf.rendered_job(database)
    other = shelf.reusing_job(database, tenant="other")
    assert len(story.feed(database)) == 3
    assert [s.object_key for s in segments_of(database, other)] == [None] * 3


def test_a_job_that_asks_for_new_audio_gets_it_and_later_ones_get_the_newest(
    database: Database,
) -> None:
    shelf.rendered_job(database)
    fresh = story.planned_job(database)
    assert shelf.render_rest(database) == 3
    third = shelf.reusing_job(database)
    assert [s.object_key for s in segments_of(database, third)] == [
        s.object_key for s in segments_of(database, fresh)
    ]
    shelf.check_references(database)


def test_two_jobs_of_one_text_at_once_each_render_and_neither_harms_the_other(
    database: Database,
) -> None:
    one, two = shelf.reusing_job(database), shelf.reusing_job(database)
    messages = story.feed(database)
    assert len(messages) == 6
    claims = [story.must_claim(database, message) for message in messages]
    with ThreadPoolExecutor(6) as pool:
        won = [c.won for c in pool.map(lambda c: story.commit(database, c), claims)]
    assert won == [True] * 6
    for job_id in (one, two):
        assert record(database, job_id).state is JobState.ASSEMBLING
        for row in segments_of(database, job_id):
            assert f"/{job_id}/" in str(row.object_key)
    shelf.check_references(database)


def test_a_plan_resumed_behind_reused_chunks_counts_them_once(database: Database) -> None:
    shelf.rendered_job(database, per_part=4)
    job_id = story.submit(database)
    first = story.claim_step(database, job_id, StepKind.PLAN)
    described, rows = story.planned_rows(1, 4)

    def write(conn: Connection, chunk: list[plans.PlannedSegment]) -> plans.Written | None:
        return plans.write_chunk(
            conn, first, Tier.STANDARD, chunk, lease_s=30, reuse_of=shelf.TENANT
        )

    database.transact(lambda conn: plans.start_planning(conn, job_id))
    database.transact(
        lambda conn: plans.open_rendering(conn, first, described, skipped=0, lease_s=30)
    )
    done = database.transact(lambda conn: write(conn, rows[:2]))
    assert done == plans.Written(reused=2, step_ids=())
    # The holder dies here; its heir opens again and writes behind what is there.
    database.transact(
        lambda conn: plans.open_rendering(conn, first, described, skipped=0, lease_s=30)
    )
    done = database.transact(lambda conn: write(conn, rows[2:]))
    assert done is not None
    assert (done.reused, len(done.step_ids)) == (2, 1)
    assert database.transact(lambda conn: plans.finish_plan(conn, first)) == []
    assert record(database, job_id).segments_reused == 4
    shelf.check_references(database)


def test_a_sentence_that_a_book_repeats_is_held_for_each_mention(database: Database) -> None:
    first = shelf.rendered_job(database, per_part=2)
    job_id = story.submit(database)
    claimed = story.claim_step(database, job_id, StepKind.PLAN)
    described, rows = story.planned_rows(1, 6)
    refrain = [replace(row, content_key=f"key{row.index % 2}") for row in rows]
    database.transact(lambda conn: plans.start_planning(conn, job_id))
    database.transact(
        lambda conn: plans.open_rendering(conn, claimed, described, skipped=0, lease_s=30)
    )
    done = database.transact(
        lambda conn: plans.write_chunk(
            conn, claimed, Tier.STANDARD, refrain, lease_s=30, reuse_of=shelf.TENANT
        )
    )
    assert done is not None
    assert done.reused == 6
    shelf.check_references(database)
    shelf.delete(database, first)
    assert shelf.doomed(database) == []
    shelf.delete(database, job_id)
    assert len(shelf.doomed(database)) == 2


def test_a_book_full_of_one_sentence_is_committed_in_one_go(database: Database) -> None:
    job_id = story.submit(database)
    claimed = story.claim_step(database, job_id, StepKind.PLAN)
    described, rows = story.planned_rows(1, 4)
    same = [replace(row, content_key="refrain") for row in rows]
    database.transact(lambda conn: plans.start_planning(conn, job_id))
    database.transact(
        lambda conn: plans.open_rendering(conn, claimed, described, skipped=0, lease_s=30)
    )
    database.transact(
        lambda conn: plans.write_chunk(conn, claimed, Tier.STANDARD, same, lease_s=30)
    )
    claims = [story.must_claim(database, message) for message in story.feed(database)]
    assert [c.won for c in story.commit_all(database, claims)] == [True] * 4
    shelf.check_references(database)
    assert database.read(lambda conn: renderings.known(conn, shelf.TENANT, ["refrain"]))


def test_a_stale_commit_leaves_neither_reference_nor_rendering(database: Database) -> None:
    story.planned_job(database, per_part=1)
    [message] = story.feed(database)
    zombie = story.must_claim(database, message)
    winner = story.must_claim_anew(database, zombie)
    assert story.commit(database, winner).won
    assert not story.commit(database, zombie).won
    assert story.commit(database, winner).won  # asked again after a lost answer
    shelf.check_references(database)
    [row] = segments_of(database, shelf.reusing_job(database, per_part=1))
    assert row.object_key == story.audio_of(winner).object_key


def test_an_object_of_several_segments_lives_until_the_last_of_them_is_let_go(
    database: Database,
) -> None:
    job_id = story.planned_job(database)
    claims = [story.must_claim(database, message) for message in story.feed(database)]
    shared = story.audio_of(claims[0])
    database.transact(
        lambda conn: settling.commit(conn, job_id, [(c.index, c.token, shared) for c in claims])
    )
    other = shelf.reusing_job(database, per_part=1)
    shelf.check_references(database)
    shelf.delete(database, job_id)
    assert shelf.doomed(database) == []
    shelf.delete(database, other)
    assert shelf.doomed(database) == [shared.object_key]


def test_reuse_saves_what_is_condemned_and_never_what_is_doomed(database: Database) -> None:
    job_id = shelf.rendered_job(database, per_part=2)
    shelf.delete(database, job_id)
    saved = shelf.reusing_job(database, per_part=2)
    assert record(database, saved).segments_reused == 2
    assert shelf.doomed(database) == []
    shelf.check_references(database)
    shelf.delete(database, saved)
    assert len(shelf.doomed(database)) == 2
    late = shelf.reusing_job(database, per_part=2)
    assert record(database, late).segments_reused == 0
    shelf.check_references(database)


def test_when_reuse_and_deletion_race_nobody_points_to_what_is_being_deleted(
    database: Database,
) -> None:
    for round_ in range(6):
        job_id = story.submit(database)
        size = round_ + 1
        story.plan(database, job_id, per_part=size)
        shelf.render_rest(database)
        shelf.delete(database, job_id)
        start = Barrier(3)

        def reuse(_start: Barrier = start, size: int = size) -> str:
            _start.wait()
            return shelf.reusing_job(database, per_part=size)

        def delete(_start: Barrier = start) -> set[str]:
            _start.wait()
            return set(shelf.doomed(database))

        with ThreadPoolExecutor(3) as pool:
            deletions = [pool.submit(delete), pool.submit(delete)]
            user = pool.submit(reuse).result()
            once, twice = (d.result() for d in deletions)
        assert not once & twice  # two schedulers never delete the same object
        pointing = {s.object_key for s in segments_of(database, user)} - {None}
        assert not pointing & (once | twice)
        assert pointing | once | twice
        shelf.check_references(database)
        shelf.render_rest(database)
        shelf.delete(database, user)
        shelf.doomed(database)
        database.transact(
            lambda conn: objects.forget(conn, objects.left_doomed(conn, after_s=-1, limit=1_000))
        )


def test_a_job_deleted_while_another_plans_costs_it_nothing(database: Database) -> None:
    for _ in range(4):
        first = shelf.rendered_job(database, per_part=5)
        start = Barrier(2)

        def plan(_start: Barrier = start) -> str:
            _start.wait()
            return shelf.reusing_job(database, per_part=5)

        def delete(job_id: str, _start: Barrier = start) -> None:
            _start.wait()
            shelf.delete(database, job_id)
            shelf.doomed(database)

        with ThreadPoolExecutor(2) as pool:
            planning = pool.submit(plan)
            pool.submit(delete, first).result()
            second = planning.result()
        shelf.check_references(database)
        shelf.render_rest(database)
        assert record(database, second).progress.segments_done == 5
        shelf.check_references(database)
        shelf.delete(database, second)


def test_many_jobs_reusing_and_going_at_once_keep_every_count_right(database: Database) -> None:
    shelf.rendered_job(database, per_part=12)

    def live(_: int) -> None:
        job_id = shelf.reusing_job(database, per_part=12)
        shelf.delete(database, job_id)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(live, range(12)))
    shelf.check_references(database)
    assert record(database, shelf.reusing_job(database, per_part=12)).segments_reused == 12


def test_a_file_is_reused_with_its_timeline_moved_to_the_new_indexes(database: Database) -> None:
    first = shelf.completed_job(database, parts=2, per_part=3)
    second = shelf.reusing_job(database, parts=2, per_part=3)
    found = database.read(lambda conn: encodings.find(conn, shelf.TENANT, "part1"))
    assert found is not None
    assert found.timeline == [[0, 0, 1_000]]  # counted from the part's first segment
    claimed = story.claim_step(database, second, StepKind.ASSEMBLE, part=0)
    done = database.transact(
        lambda conn: deliverables.reuse_part(
            conn, claimed, found, name="a.flac", format_="flac", content_type="audio/flac"
        )
    )
    assert done is not None
    assert done.won
    [file] = database.read(lambda conn: deliverables.of_job(conn, second, timelines=True))
    assert (file.object_key, file.name, file.timeline) == (
        f"out/{first}/1",
        "a.flac",
        [[0, 0, 1_000]],
    )
    assert record(database, second).parts_reused == 1
    again = database.transact(
        lambda conn: deliverables.reuse_part(
            conn, claimed, found, name="a.flac", format_="flac", content_type="audio/flac"
        )
    )
    assert again is not None
    assert not again.won  # a second delivery changes nothing
    shelf.check_references(database)


def test_a_file_that_is_being_deleted_is_made_anew(database: Database) -> None:
    first = shelf.completed_job(database, per_part=3)
    found = database.read(lambda conn: encodings.find(conn, shelf.TENANT, "part0"))
    assert found is not None
    second = shelf.reusing_job(database, per_part=3)
    claimed = story.claim_step(database, second, StepKind.ASSEMBLE)
    shelf.delete(database, first)
    assert f"out/{first}/0" in shelf.doomed(database)
    assert (
        database.transact(
            lambda conn: deliverables.reuse_part(
                conn, claimed, found, name="a", format_="flac", content_type="audio/flac"
            )
        )
        is None
    )
    done = database.transact(
        lambda conn: deliverables.commit_part(
            conn, claimed, shelf.file(second, 0), part_key="part0"
        )
    )
    assert done.won
    newest = database.read(lambda conn: encodings.find(conn, shelf.TENANT, "part0"))
    assert newest is not None
    assert newest.object_key == f"out/{second}/0"
    shelf.check_references(database)


def test_what_the_store_has_lost_is_reused_by_nobody_any_more(database: Database) -> None:
    job_id = shelf.rendered_job(database, per_part=2)
    lost = segments_of(database, job_id)[0].object_key
    assert lost is not None
    database.transact(lambda conn: renderings.distrust(conn, [lost]))
    later = shelf.reusing_job(database, per_part=2)
    assert [s.state for s in segments_of(database, later)] == ["pending", "done"]
    assert database.read(lambda conn: renderings.known(conn, shelf.TENANT, ["key0", "key1"])) == {
        "key1"
    }
