"""What long steps share: a lease renewed by progress, rows in pages, files that lost."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from shared.errors import FatalError, TransientError
from shared.farm import Farm
from shared.ledger import objects, segment_records, steps
from shared.ledger.segment_records import SegmentRecord
from shared.ledger.steps import StepClaim

PAGE = 500  # segment rows read at a time


class StepLostError(FatalError):
    """Another worker holds this step, or the job has ended: stop, and change nothing."""


class StepLease:
    """The lease of a step, renewed as work moves on, at most three times in a lease's length.

    Thread-safe.
    """

    def __init__(self, farm: Farm, claimed: StepClaim) -> None:
        self._farm = farm
        self._claimed = claimed
        self._renewed_at = time.monotonic()
        self._lock = threading.Lock()

    def progress(self) -> None:
        """Call with every bit of progress. Raises StepLostError."""
        lease_s = self._farm.settings.lease_s
        with self._lock:
            if time.monotonic() - self._renewed_at < lease_s / 3:
                return
            if not self._farm.database.transact(
                lambda conn: steps.renew(conn, self._claimed, lease_s=lease_s)
            ):
                raise StepLostError
            self._renewed_at = time.monotonic()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around one request to the store: the lease is renewed until it ends.

        Over a slow line a large file may take longer than a lease, and whoever took the step over
        would need as long. A request cannot last for ever: the store's client has its time limits.
        """
        over = threading.Event()
        thread = threading.Thread(target=self._renew_until, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _renew_until(self, over: threading.Event) -> None:
        while not over.wait(self._farm.settings.lease_s / 4):
            with suppress(TransientError):  # the ledger is away: its clock may yet wait for us
                try:
                    self.progress()
                except StepLostError:  # whoever waits will hear of it
                    return


def drop_unknown(farm: Farm, key: str) -> None:
    """Delete the file of a step that was lost, unless the ledger has it.

    A commit whose answer was lost on the way looks lost when it is tried again, and is not.
    """
    if not farm.database.read(lambda conn: objects.is_known(conn, key)):
        farm.store.delete([key])


def rows_of(
    farm: Farm, claimed: StepClaim, progress: Callable[[], None], part: int | None = None
) -> Iterator[SegmentRecord]:
    """Segments of a job, or of one part, in order; every row counts as progress."""

    def page(after: int) -> list[SegmentRecord]:
        return farm.database.read(
            lambda conn: segment_records.page(
                conn, claimed.job_id, limit=PAGE, after=after, part=part
            )
        )

    rows = page(-1)
    while rows:
        for row in rows:
            progress()
            yield row
        rows = page(rows[-1].index)
