"""Running one step message: claim it, do it, and put every failure into the ledger."""

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from shared.crashpoints import crash_point
from shared.errors import SetupError, TransientError
from shared.farm import Farm
from shared.jobs import JobState
from shared.ledger import jobs, steps
from shared.ledger.steps import StepClaim
from shared.messages import MESSAGE_VERSION, StepMessage
from shared.steps import StepKind

log = logging.getLogger(__name__)

StepWork = Callable[[Farm, StepClaim], None]


@dataclass(frozen=True, slots=True)
class StepRunner:
    """Carries out step messages with the work registered for their kinds."""

    farm: Farm
    work: Mapping[StepKind, StepWork]

    def run(self, message: StepMessage) -> None:
        """Do a step, unless its message is stale. Never raises."""
        if message.v > MESSAGE_VERSION:
            log.warning("message version %d is newer than this worker", message.v)
            return
        try:
            claimed = self.farm.database.transact(
                lambda conn: steps.claim(
                    conn,
                    message.step_id,
                    message.dispatch_no,
                    lease_s=self.farm.settings.lease_s,
                )
            )
        except TransientError as error:  # the scheduler will find the dispatch unclaimed
            log.warning("cannot claim step %s: %s", message.step_id, error)
            return
        if claimed is None:
            return
        self._send_next()
        crash_point(f"{claimed.kind}.claimed", claimed.job_id)
        try:
            self.work[claimed.kind](self.farm, claimed)
        except (TransientError, SetupError) as error:  # mended by waiting, or by the operator
            log.warning("%s of job %s waits: %s", claimed.kind, claimed.job_id, error)
            self._give_back(claimed, error, burn=False)
        except Exception as error:
            log.exception("%s of job %s failed", claimed.kind, claimed.job_id)
            self._give_back(claimed, error, burn=True)

    def _send_next(self) -> None:
        """A claim leaves room in the queue for whoever is next."""
        try:
            self.farm.dispatcher.send_steps()
        except TransientError as error:
            log.warning("left to the scheduler: %s", error)

    def _give_back(self, claimed: StepClaim, error: Exception, *, burn: bool) -> None:
        reason = f"{type(error).__name__}: {error}"
        limit = self.farm.settings.max_attempts

        def decide(conn: Connection) -> None:
            if burn and claimed.attempt >= limit:
                if steps.fail(conn, claimed, reason[:500]):
                    jobs.end(
                        conn,
                        claimed.job_id,
                        JobState.FAILED,
                        code=f"{claimed.kind}-failed",
                        message=f"the {claimed.kind} step failed {limit} times: {reason[:300]}",
                    )
                return
            delay_s = random.uniform(0.5, 2.0) * 2 ** (claimed.attempt - 1)  # noqa: S311
            steps.release(conn, claimed, delay_s=delay_s, error=reason, burn=burn)

        try:
            self.farm.database.transact(decide)
        except TransientError as ledger_error:  # then the lease runs out
            log.warning("left to the scheduler: %s", ledger_error)
