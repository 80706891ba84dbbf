"""What an assembly does that finds audio lost or damaged: have it spoken again.

The part is looked through once more to its end, so one round of speaking mends it. A store that is
away is no loss: StoreError, and the assembly is tried again later. One that has failed an assembly
time and again is doubted: what it cannot read then, while it is well otherwise, is lost too.
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
from worker.doubting import DoubtedStore
from worker.fetching import fetched
from worker.step_progress import StepLostError, rows_of
from worker.stored_audio import is_lost

DOUBTED_CLAIMS = 6  # of a step: each waits for the store for some ten seconds

log = logging.getLogger(__name__)


def is_worth_a_doubt(claimed: StepClaim) -> bool:
    """Whether this step has been put off so often that waiting alone may never help."""
    return claimed.token >= DOUBTED_CLAIMS


def heal(
    farm: Farm,
    claimed: StepClaim,
    found: LostAudioError | StoreError,
    *,
    tier: Tier,
    progress: Callable[[], None],
) -> None:
    """Take the assembly of a part back, and let its lost segments wait for the engines.

    Raises StoreError when nothing is lost after all, StepLostError when the step is another's.
    """
    log.warning("job %s: %s", claimed.job_id, found)
    store = DoubtedStore(farm.store) if is_worth_a_doubt(claimed) else farm.store
    lost = []
    for row, data in fetched(store, rows_of(farm, claimed, progress, claimed.part), progress):
        progress()
        if data is not None and is_lost(row, data):
            lost.append(row)
    if not lost:
        raise StoreError(f"{found}; but at a second look nothing is lost") from found
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
