"""Small verbs for tests of what jobs share: render, reuse, assemble, let go, delete."""

from collections import Counter

from sqlalchemy import Connection, select, update

from shared.forgetting import forget
from shared.jobs import JobState
from shared.ledger import deliverables, expiry, objects
from shared.ledger import tables as t
from shared.ledger.database import Database
from shared.ledger.deliverables import Deliverable, PartCommit
from shared.ledger.jobs import tenant_of
from shared.ledger.steps import StepClaim
from shared.steps import StepKind, StepState
from tests.contract.ledger import story

TENANT = "default"


def rendered_job(database: Database, *, parts: int = 1, per_part: int = 3) -> str:
    """A job whose every segment has been rendered and committed; nothing is assembled."""
    job_id = story.planned_job(database, parts=parts, per_part=per_part)
    render_rest(database)
    return job_id


def render_rest(database: Database) -> int:
    """Claim and commit whatever waits. Returns how many segments that were."""
    claims = [story.must_claim(database, message) for message in story.feed(database)]
    for claimed in claims:
        story.commit(database, claimed)
    return len(claims)


def reusing_job(
    database: Database, *, tenant: str = TENANT, parts: int = 1, per_part: int = 3
) -> str:
    """A planned job that took what was there."""
    job_id = story.submit(database, tenant=tenant)
    story.plan(database, job_id, parts=parts, per_part=per_part, reuse_of=tenant)
    return job_id


def finish(database: Database, job_id: str) -> None:
    """Assemble every part and close the job, each file under a key of its own."""
    while state(database, job_id) not in {JobState.COMPLETED, JobState.PARTIAL}:
        waiting = database.read(
            lambda conn: (
                conn.execute(
                    select(t.step.c.part).where(
                        t.step.c.job_id == job_id, t.step.c.state == StepState.PENDING
                    )
                )
                .scalars()
                .all()
            )
        )
        assert waiting, "nothing is left to do, and the job has not ended"
        for part in waiting:
            claimed = story.claim_step(database, job_id, StepKind.ASSEMBLE, part=part)
            _commit(database, claimed)


def _commit(database: Database, claimed: StepClaim) -> None:
    made = file(claimed.job_id, claimed.part)
    if claimed.part == t.WHOLE_JOB:
        assert database.transact(lambda conn: deliverables.commit_job(conn, claimed, made))
        return
    done: PartCommit = database.transact(
        lambda conn: deliverables.commit_part(conn, claimed, made, part_key=f"part{claimed.part}")
    )
    assert done.won


def file(job_id: str, part: int) -> Deliverable:
    kind = "manifest" if part == t.WHOLE_JOB else "audio"
    return Deliverable(
        part=part,
        kind=kind,
        name=f"{kind}{part}",
        format="flac",
        content_type="audio/flac",
        object_key=f"out/{job_id}/{part}",
        size_bytes=10,
        sha256="00" * 32,
        samples=1_000,
        rate_hz=24_000,
        timeline=[[3 * max(0, part), 0, 1_000]],
    )


def completed_job(database: Database, *, parts: int = 1, per_part: int = 3) -> str:
    job_id = rendered_job(database, parts=parts, per_part=per_part)
    finish(database, job_id)
    return job_id


def state(database: Database, job_id: str) -> JobState:
    return database.read(
        lambda conn: JobState(
            conn.execute(select(t.job.c.state).where(t.job.c.id == job_id)).scalar_one()
        )
    )


def let_time_pass(database: Database, job_id: str) -> None:
    """The job's retention is over."""
    database.transact(
        lambda conn: conn.execute(update(t.job).where(t.job.c.id == job_id).values(expires_at=1.0))
    )


def expire(database: Database, job_id: str, *, reuse_s: float = 3_600) -> None:
    let_time_pass(database, job_id)
    assert database.transact(lambda conn: expiry.expire(conn, job_id, reuse_s=reuse_s))
    forget(database, job_id, reuse_s=reuse_s)


def delete(database: Database, job_id: str) -> None:
    database.transact(lambda conn: expiry.delete_now(conn, tenant_of(conn, job_id), job_id))
    forget(database, job_id, reuse_s=3_600)


def doomed(database: Database, *, grace_s: float = 0.0) -> list[str]:
    return sorted(database.transact(lambda conn: objects.doom(conn, grace_s=grace_s, limit=1_000)))


def check_references(database: Database) -> None:
    """Every object's count is that of the rows that point to it, and each such object is known."""

    def look(conn: Connection) -> tuple[Counter[str], dict[str, int], set[str]]:
        pointing = Counter(
            conn.execute(
                select(t.segment.c.object_key).where(t.segment.c.object_key.is_not(None))
            ).scalars()
        )
        pointing.update(conn.execute(select(t.deliverable.c.object_key)).scalars())
        o = t.stored_object.c
        rows = conn.execute(select(o.key, o.refs, o.condemned_at, o.doomed_at)).all()
        idle = {row.key for row in rows if row.condemned_at is not None}
        assert idle == {row.key for row in rows if row.refs == 0}
        assert {row.key for row in rows if row.doomed_at is not None} <= idle
        return pointing, {row.key: row.refs for row in rows if row.refs}, idle

    pointing, counted, _idle = database.read(look)
    assert dict(pointing) == counted
