"""What becomes of jobs whose time is over, and of audio that nobody needs any more.

Duties of the scheduler, in a thread of their own: forgetting a library must not keep anybody's
lease waiting. Each is bounded for a round, and safe to be done by two at once or to be left half
done: whoever comes next goes on. They raise TransientError when a store is away.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from shared import object_keys
from shared.errors import SetupError, TransientError
from shared.farm import Farm
from shared.forgetting import forget
from shared.ledger import expiry, objects

log = logging.getLogger(__name__)

JOBS_A_ROUND = 200
OBJECTS_AT_ONCE = 500
BATCHES_A_ROUND = 20
LEAVE_S = 3.0  # a scheduler that is told to stop leaves a round half done after this
DELETING_S = 60.0  # who has not deleted what it doomed after this is taken for dead


@contextmanager
def retaining(farm: Farm, stop: threading.Event, *, every_s: float) -> Iterator[None]:
    """Do a round of all duties every so often until told to stop; outages are waited out."""

    def go_round() -> None:
        while not stop.wait(every_s):
            try:
                retain(farm)
            except (TransientError, SetupError) as error:
                log.warning("retention waits: %s", error)
            except Exception:  # the next round may do better, and none would do nothing
                log.exception("a round of retention failed")

    thread = threading.Thread(target=go_round, name="retention", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(LEAVE_S)


def retain(farm: Farm) -> None:
    """One round of all duties."""
    expire_due(farm)
    delete_condemned(farm)
    sweep_leftovers(farm)


def expire_due(farm: Farm) -> None:
    """End the retention of jobs that are due, and finish what others left of theirs."""
    database, reuse_s = farm.database, farm.settings.reuse_s
    for job_id in database.read(lambda conn: expiry.due(conn, JOBS_A_ROUND)):
        database.transact(partial(expiry.expire, job_id=job_id, reuse_s=reuse_s))
    for job_id in database.read(lambda conn: expiry.unfinished(conn, JOBS_A_ROUND)):
        forget(database, job_id, reuse_s=reuse_s)
        log.info("job %s has expired", job_id)


def delete_condemned(farm: Farm) -> None:
    """Delete objects that were condemned long enough ago: from the store first, then their rows.

    A crash between the two leaves a doomed row, which nobody may point to; it is found again.
    """
    database, grace_s = farm.database, farm.settings.delete_grace_s
    keys = database.read(
        lambda conn: objects.left_doomed(conn, after_s=DELETING_S, limit=OBJECTS_AT_ONCE)
    )
    for _ in range(BATCHES_A_ROUND):
        keys += database.transact(
            lambda conn: objects.doom(conn, grace_s=grace_s, limit=OBJECTS_AT_ONCE)
        )
        if not keys:
            return
        farm.store.delete(keys)
        database.transact(partial(objects.forget, keys=keys))
        log.info("deleted %d objects that nobody needed", len(keys))
        keys = []


def sweep_leftovers(farm: Farm) -> None:
    """Remove what dead workers stored for jobs that are over, and uploads they never completed.

    For such a job nothing can be committed any more, so what no row knows counts for nobody.
    """
    database, after_s = farm.database, farm.settings.orphan_after_s
    for tenant, job_id, since in database.read(
        lambda conn: expiry.unswept(conn, after_s=after_s, limit=JOBS_A_ROUND)
    ):
        prefix = object_keys.job_prefix(tenant, job_id)
        stored = list(farm.store.keys(prefix))
        known = database.read(partial(objects.stored_by, job_id=job_id))
        leftovers = [key for key in stored if key not in known]
        if leftovers:
            farm.store.delete(leftovers)
        uploads = farm.store.abort_uploads(prefix)
        database.transact(partial(expiry.swept, job_id=job_id, since=since))
        if leftovers or uploads:
            log.warning(
                "job %s: removed %d objects, %d uploads that nobody knows",
                job_id,
                len(leftovers),
                uploads,
            )
