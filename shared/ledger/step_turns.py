"""Which steps go to the queues next: urgent tiers first, and by turn between the tenants.

Knows rows of steps and whose they are; what is claimed and finished is `steps`' business.
"""

from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
    String,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    union,
    update,
)

from shared.ledger import steps
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.steps import job_alive
from shared.messages import StepMessage
from shared.steps import StepState
from shared.tiers import Tier

SEEN = 500  # of the longest waiting steps, and of the newest: a bounded look


def dispatch(
    conn: Connection, *, window: int, alike: bool = False, seen: int = SEEN
) -> list[StepMessage]:
    """Mark as dispatched who is next, until `window` steps of each kind wait for a worker.

    The rest waits here, where an order can still be given to it: urgent tiers first, or `alike`
    all tiers; and by turn between the tenants. Looks at `seen` steps at each end of the queue.
    """
    now = read_clock(conn)
    messages = list[StepMessage]()
    unclaimed = steps.dispatched_counts(conn)
    for kind in conn.execute(_WAITING_KINDS, {"the_now": now}).scalars().all():
        room = window - unclaimed.get(kind, 0)
        if room <= 0:
            continue
        ids = conn.execute(
            _NEXT,
            {"the_kind": kind, "the_now": now, "alike": alike, "seen": seen, "the_room": room},
        ).scalars()
        rows = conn.execute(
            update(t.step)
            .where(t.step.c.id.in_(ids.all()), t.step.c.state == StepState.PENDING)
            .values(
                state=StepState.DISPATCHED,
                dispatch_no=t.step.c.dispatch_no + 1,
                dispatched_at=now,
            )
            .returning(t.step.c.id, t.step.c.job_id, t.step.c.kind, t.step.c.dispatch_no)
        )
        messages += [StepMessage(row.id, row.job_id, row.kind, row.dispatch_no) for row in rows]
    return messages


def _waits(now: ColumnElement[float]) -> ColumnElement[bool]:
    return and_(
        t.IS_OPEN_STEP,
        t.step.c.state == StepState.PENDING,
        t.step.c.not_before <= now,
        job_alive(),
    )


def _next() -> Select[Any]:
    """The ids of the steps of a kind that go next.

    A tenant's first step comes before anybody's second, and what it has with the workers counts,
    so a flood delays others by a step or two. Both ends of the queue are looked at: one who has
    just come is seen in time, and so is who has waited longest.
    """
    s, j = t.step.c, t.job.c
    now, kind = bindparam("the_now", type_=Float(53)), bindparam("the_kind", type_=String)
    ends = [
        select(s.id, s.job_id, s.created_at)
        .where(_waits(now), s.kind == kind)
        .order_by(order, s.id)
        .limit(bindparam("seen", type_=Integer))
        .subquery()
        for order in (s.created_at, s.created_at.desc())
    ]
    seen = union(*(select(end) for end in ends)).subquery()
    urgency = case(
        (or_(bindparam("alike", type_=Boolean), j.tier == Tier.RUSH), 0),
        (j.tier == Tier.STANDARD, 1),
        else_=2,
    )
    running = (
        select(j.tenant, func.count().label("steps"))
        .join_from(t.step, t.job, j.id == s.job_id)
        .where(
            t.IS_OPEN_STEP,
            s.kind == kind,
            s.state.in_((StepState.DISPATCHED, StepState.LEASED)),
        )
        .group_by(j.tenant)
        .subquery()
    )
    turn = func.row_number().over(
        partition_by=j.tenant, order_by=(urgency, seen.c.created_at, seen.c.id)
    )
    placed = (
        select(
            seen.c.id,
            seen.c.created_at,
            urgency.label("urgency"),
            (turn + func.coalesce(running.c.steps, 0)).label("turn"),
        )
        .join_from(seen, t.job, j.id == seen.c.job_id)
        .outerjoin(running, running.c.tenant == j.tenant)
        .subquery()
    )
    p = placed.c
    return (
        select(p.id)
        .order_by(p.urgency, p.turn, p.created_at, p.id)
        .limit(bindparam("the_room", type_=Integer))
    )


# Built once: they run with every step that is claimed.
_WAITING_KINDS = (
    select(t.step.c.kind).where(_waits(bindparam("the_now", type_=Float(53)))).distinct()
)
_NEXT = _next()
