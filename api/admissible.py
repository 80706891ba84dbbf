"""Whether a job would be accepted just now: asks what a submit asks, and writes nothing.

Only what may pass is told here. What no waiting helps is refused, by whoever asks, as in a submit.
"""

from api.auth import Caller
from api.capacity import check_quota, check_room, demand_of
from api.deps import Deps
from api.problems import retry_after_s
from api.views.quote import AdmissibleView
from shared.errors import CapacityError, ConflictError
from shared.ledger import demand, named_webhook
from shared.ledger.jobs import NewJob


def admissible(deps: Deps, caller: Caller, new: NewJob) -> AdmissibleView:
    """What a submit of this job would be told now. Raises LedgerBusyError."""
    try:
        _check(deps, caller, new)
    except CapacityError as error:
        return AdmissibleView(
            ok=False, code=error.code, detail=str(error), retry_after_s=retry_after_s(error)
        )
    except ConflictError as error:
        return AdmissibleView(ok=False, code=error.code, detail=str(error))
    return AdmissibleView(ok=True)


def _check(deps: Deps, caller: Caller, new: NewJob) -> None:
    """Raise the first thing that stands in its way, in the order of a submit."""
    load = deps.load.now()
    asked = demand_of(new)
    check_room(asked, load, deps.admission.settings)
    if caller.quota.is_limit:
        backlog = deps.read(lambda conn: demand.tenant_backlog(conn, caller.tenant))
        check_quota(asked, backlog, caller.quota, load.rate)
    webhook = new.webhook
    if webhook is not None:
        deps.read(lambda conn: named_webhook.require_usable(conn, caller.tenant, webhook))
