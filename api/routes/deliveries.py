"""What became of a webhook's events: look, send again, try out."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from api.auth import Tenant
from api.deps import DeliveryId, WebhookId, With
from api.routes.answers import refusals
from api.views.webhook import DeliveryLog, DeliveryPage, DeliveryView, Replayed
from shared.ledger import delivery_log, outbox, webhooks
from shared.ledger.delivery_log import Attempt, DeliveryRecord
from shared.webhooks import DeliveryState

router = APIRouter(prefix="/v1/webhooks/{webhook_id}", tags=["webhooks"])


class DeliveryFilter(BaseModel):
    """Which deliveries to list."""

    model_config = ConfigDict(extra="forbid")

    state: list[DeliveryState] = Field(
        default_factory=list, description="may be given several times"
    )
    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = Field(
        default=None,
        pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$",
        description="`next_cursor` of the page before",
    )


@router.get("/deliveries", responses=refusals(404, 422, 503), summary="List deliveries")
def list_deliveries(
    deps: With,
    tenant: Tenant,
    webhook_id: WebhookId,
    wanted: Annotated[DeliveryFilter, Query()],
) -> DeliveryPage:
    """Newest first."""

    def read(conn: Connection) -> list[DeliveryRecord]:
        webhooks.get(conn, tenant, webhook_id)
        return delivery_log.page(
            conn,
            webhook_id,
            limit=wanted.limit + 1,
            before_id=wanted.cursor,
            states=wanted.state,
        )

    records = deps.read(read)
    shown = records[: wanted.limit]
    return DeliveryPage(
        data=[DeliveryView.of(record) for record in shown],
        next_cursor=shown[-1].id if len(records) > len(shown) else None,
    )


@router.get("/deliveries/{delivery_id}", responses=refusals(404, 503), summary="Look at a delivery")
def get_delivery(
    deps: With, tenant: Tenant, webhook_id: WebhookId, delivery_id: DeliveryId
) -> DeliveryLog:
    """With every try: when, how long it took, and what came back."""

    def read(conn: Connection) -> tuple[DeliveryRecord, list[Attempt]]:
        webhooks.get(conn, tenant, webhook_id)
        return (
            delivery_log.get(conn, webhook_id, delivery_id),
            delivery_log.attempts(conn, delivery_id),
        )

    record, attempts = deps.read(read)
    return DeliveryLog.log_of(record, attempts)


@router.post(
    "/deliveries/{delivery_id}/replay",
    responses=refusals(404, 409, 503),
    summary="Send an event again",
)
def replay_delivery(
    deps: With, tenant: Tenant, webhook_id: WebhookId, delivery_id: DeliveryId
) -> DeliveryView:
    """Send it now, with the same id and body. What is just being sent is left alone."""

    def work(conn: Connection) -> DeliveryRecord:
        webhooks.get(conn, tenant, webhook_id)
        delivery_log.replay(conn, webhook_id, delivery_id)
        return delivery_log.get(conn, webhook_id, delivery_id)

    return DeliveryView.of(deps.transact(work))


@router.post(
    "/replay", responses=refusals(404, 409, 422, 503), summary="Send all failed events again"
)
def replay_failed(
    deps: With,
    tenant: Tenant,
    webhook_id: WebhookId,
    since: Annotated[
        AwareDatetime | None, Query(description="of events at or after, RFC 3339; default: all")
    ] = None,
) -> Replayed:
    """Send what has failed, for example after the receiver was away."""

    def work(conn: Connection) -> int:
        webhooks.get(conn, tenant, webhook_id)
        from_s = since.timestamp() if since is not None else 0.0
        return delivery_log.replay_failed(conn, webhook_id, from_s)

    return Replayed(replayed=deps.transact(work))


@router.post(
    "/test", status_code=202, responses=refusals(404, 409, 503), summary="Send a test event"
)
def send_test(deps: With, tenant: Tenant, webhook_id: WebhookId) -> DeliveryView:
    """Send `webhook.test` there; look at the delivery to see what came of it."""

    def work(conn: Connection) -> DeliveryRecord:
        webhooks.get(conn, tenant, webhook_id)
        webhooks.require_enabled(conn, webhook_id)
        delivery_id = outbox.record_test(conn, tenant, webhook_id)
        return delivery_log.get(conn, webhook_id, delivery_id)

    return DeliveryView.of(deps.transact(work))
