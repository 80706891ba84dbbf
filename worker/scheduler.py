"""The scheduler: the farm's backstop. When all is well, others do its work sooner.

It takes back leases that ran out and dispatches that the broker lost, sends steps and webhooks
that are due, and tops up the windows; beside that it ends retentions. Two at once are safe, and its
death only delays.
"""

import logging
import signal
import threading
import time
from functools import partial

from sqlalchemy import Connection

from shared.errors import TransientError
from shared.farm import Farm, farm_of
from shared.jobs import JobState
from shared.leaving import leave_quickly
from shared.ledger import (
    abandoned,
    abandoned_steps,
    deliveries,
    giving_up,
    jobs,
    marks,
    nodes,
    offers,
    outbox,
    replays,
    set_back,
    webhook_turns,
)
from shared.ledger.clock import read_clock
from shared.ledger.set_back import Longest
from shared.lifeline import die_with_parent
from shared.logs import configure_logging
from shared.scheduling.pools import POOLS
from shared.settings import Settings
from worker.clock_watch import ClockWatch
from worker.retention import retaining
from worker.webhooks import courier

log = logging.getLogger(__name__)
_GIVE_UP_SLACK_S = 86_400.0  # beyond twice the schedule of retries, which holds stretch


def prepare(farm: Farm) -> None:
    """What must be true before any work: a fit Redis and a bucket. Raises SetupError."""
    farm.broker.check_setup()
    farm.store.ensure_bucket()


def mend_clock(farm: Farm, watch: ClockWatch) -> None:
    """When the database's clock was set back, shorten what it has left in the future."""
    steady_s = time.monotonic()
    if not watch.was_set_back(farm.database.read(read_clock), steady_s):
        return
    longest = longest_of(farm.settings)
    mended = sum(
        farm.database.transact(partial(mend, longest=longest))
        for mend in (set_back.mend_work, set_back.mend_webhooks, set_back.mend_ends)
    )
    if mended:
        log.warning("the database's clock was set back: shortened %d leases and waits", mended)


def longest_of(settings: Settings) -> Longest:
    """How far ahead times may lie by the settings."""
    return Longest(
        lease_s=settings.lease_s,
        delivery_lease_s=courier.lease_s(settings),
        tries_s=settings.webhook_retry_s,
        asked_s=settings.webhook_retry_after_max_s,
        hold_s=settings.webhook_hold_max_s,
        progress_s=settings.webhook_progress_s,
        kept_s=settings.reuse_s,
    )


def tick(farm: Farm) -> None:
    """One round of the backstop. Raises TransientError when a store is away."""
    take_back_expired(farm)
    lost = farm.dispatcher.recover_lost()
    if lost:
        log.warning("took back %d dispatches that the broker had lost", lost)
    farm.dispatcher.send_steps()
    for pool in POOLS:
        farm.dispatcher.fill(pool.tiers[0])
    tick_webhooks(farm)


def take_back_expired(farm: Farm) -> None:
    """Let others have what leases ran out on, and give up what has taken down too many holders."""
    lost = farm.database.transact(abandoned.take_back_expired)
    lost_steps = farm.database.transact(abandoned_steps.take_back_expired)
    if lost or lost_steps:
        log.warning("took back %d expired leases", len(lost) + len(lost_steps))
    for segment in lost:
        if segment.crashes >= farm.settings.max_attempts:
            log.warning("segment %s/%d takes down its consumers", segment.job_id, segment.index)
            where = segment.job_id, segment.index, segment.token
            farm.database.transact(partial(_give_up, where=where, crashes=segment.crashes))
    for step in lost_steps:
        if step.abandoned >= abandoned_steps.MOST_IN_A_ROW:
            farm.database.transact(partial(abandoned_steps.fail, lost=step))


def _give_up(conn: Connection, *, where: tuple[str, int, int], crashes: int) -> None:
    reason = f"its process died, or fell silent, {crashes} times while it alone was spoken there"
    giving_up.give_up(conn, *where, reason)


def tick_webhooks(farm: Farm) -> None:
    """The part of a round that is about webhooks. Raises TransientError."""
    taken = farm.database.transact(deliveries.take_back_expired)
    lost = farm.postman.recover_lost()
    if taken + lost:
        log.warning("took back %d deliveries", taken + lost)
    every_s = farm.settings.webhook_progress_s
    for due in farm.database.read(outbox.progress_due):
        farm.database.transact(
            lambda conn, due=due: outbox.record_progress(conn, due, every_s=every_s)  # type: ignore[misc]
        )
    farm.postman.send_due()


def sweep(farm: Farm) -> None:
    """The rarer duties: end jobs past the age limit, forget nodes and marks long gone."""
    limit_s = farm.settings.max_job_age_s
    for job_id in farm.database.read(lambda conn: jobs.overdue_ids(conn, limit_s)):
        farm.database.transact(
            lambda conn, job_id=job_id: jobs.end(  # type: ignore[misc]
                conn,
                job_id,
                JobState.FAILED,
                code="too-old",
                message=f"the job was not done within {limit_s / 86_400:.0f} days",
            )
        )
    farm.database.transact(nodes.forget_silent)
    farm.database.transact(replays.forget_old)
    farm.database.transact(offers.find_forgotten)
    farm.database.transact(marks.forget_old)
    _sweep_webhooks(farm)


def _sweep_webhooks(farm: Farm) -> None:
    settings = farm.settings
    tried_s = sum(settings.webhook_retry_s)
    given_up_s = 2 * tried_s + _GIVE_UP_SLACK_S
    farm.database.transact(lambda conn: deliveries.give_up_old(conn, given_up_s))
    farm.database.transact(webhook_turns.find_forgotten)
    farm.database.transact(lambda conn: outbox.forget_old(conn, settings.webhook_log_s))


def run(settings: Settings, stop: threading.Event, *, sweep_every_s: float = 60.0) -> None:
    """Tick every `scheduler_period_s` until told to stop; outages are waited out."""
    with farm_of(settings) as farm, retaining(farm, stop, every_s=sweep_every_s):
        prepared, next_sweep, clock_watch = False, 0.0, ClockWatch()
        while not stop.is_set():
            try:
                if not prepared:
                    prepare(farm)
                    prepared = True
                mend_clock(farm, clock_watch)
                tick(farm)
                if time.monotonic() >= next_sweep:
                    sweep(farm)
                    next_sweep = time.monotonic() + sweep_every_s
            except TransientError as error:
                log.warning("waiting: %s", error)
            stop.wait(settings.scheduler_period_s)


def main() -> None:
    """Run the scheduler as a process of its own."""
    die_with_parent()
    leave_quickly()
    configure_logging("scheduler")
    stop = threading.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: stop.set())
    run(Settings(), stop)


if __name__ == "__main__":
    main()
