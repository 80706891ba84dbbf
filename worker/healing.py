"""What an assembly does that finds audio lost or damaged: have it spoken again.

The part is looked through once more to its end, so one round of speaking mends it. A store that is
away is no loss: StoreError, and the assembly is tried again later.
"""

import logging
from collections.abc import Callable

from shared.crashpoints import crash_point
from shared.errors import LostAudioError, StoreError
from shared.farm import Farm
from shared.ledger import healing
from shared.ledger.healing import Healing
from shared.ledger.steps import StepClaim
from shared.tiers import Tier
from worker.fetching import fetched
from worker.step_progress import StepLostError, rows_of
from worker.stored_audio import is_lost

log = logging.getLogger(__name__)


def heal(
    farm: Farm,
    claimed: StepClaim,
    found: LostAudioError,
    *,
    tier: Tier,
    progress: Callable[[], None],
) -> None:
    """Take the assembly of a part back, and let its lost segments wait for the engines.

    Raises StoreError when nothing is lost after all, StepLostError when the step is another's.
    """
    log.warning("job %s: %s", claimed.job_id, found)
    lost = []
    for row, data in fetched(farm.store, rows_of(farm, claimed, progress, claimed.part)):
        progress()
        if data is not None and is_lost(row, data):
            lost.append(row)
    if not lost:
        raise StoreError("the store gives audio now that it did not give a moment ago")
    most = farm.settings.max_attempts
    outcome = farm.database.transact(
        lambda conn: healing.reopen(conn, claimed, lost, most_losses=most)
    )
    if outcome is Healing.NOT_OURS:
        raise StepLostError
    log.warning("job %s: %d segments lost, %s", claimed.job_id, len(lost), outcome.value)
    crash_point("assemble.reopened")
    if outcome is Healing.REOPENED:
        farm.dispatcher.fill(tier)
