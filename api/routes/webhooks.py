"""Webhooks: register, look, list, enable, disable, forget, and their secrets."""

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from api.auth import Tenant
from api.deps import WebhookId, With
from api.routes.answers import Responses, refusals, require_json
from api.views.webhook import SecretList, WebhookPage, WebhookView
from api.webhook_wish import EXAMPLE, checked_url, read_wish
from shared.ledger import webhooks
from shared.ledger.clock import read_clock
from shared.ledger.webhooks import WebhookRecord

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/WebhookWish"},
                "examples": {"all": {"summary": "Told of completed jobs", "value": EXAMPLE}},
            }
        },
    }
}
_REGISTERED: Responses = {
    201: {
        "description": "Told of every job from now on.",
        "headers": {"Location": {"schema": {"type": "string"}}},
    },
    200: {"description": "It was so already; its events are now these.", "model": WebhookView},
}
_NO_STORE = {"Cache-Control": "no-store"}


class WebhookFilter(BaseModel):
    """Which webhooks to list."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = Field(
        default=None,
        pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$",
        description="`next_cursor` of the page before",
    )


@router.post(
    "",
    status_code=201,
    response_model=WebhookView,
    responses=_REGISTERED | refusals(400, 413, 415, 422, 503),
    openapi_extra=_BODY,
    summary="Register a webhook",
)
async def register(request: Request, deps: With, tenant: Tenant) -> Response:
    """Have an address told of every job. Its secret: `GET /v1/webhooks/{id}/secret`."""
    require_json(request.headers)
    body = await request.body()

    def work() -> tuple[WebhookRecord, bool]:
        wish = read_wish(body)
        url = checked_url(wish.url, deps.farm.settings)
        mark_of = deps.signing_secrets().mark
        return deps.transact(
            lambda conn: webhooks.register(conn, tenant, url, wish.event_types, mark_of)
        )

    record, before = await to_thread.run_sync(work)
    return Response(
        WebhookView.of(record).model_dump_json(),
        status_code=200 if before else 201,
        headers={"Location": f"/v1/webhooks/{record.id}"},
        media_type="application/json",
    )


@router.get("", responses=refusals(422, 503), summary="List webhooks")
def list_webhooks(
    deps: With, tenant: Tenant, wanted: Annotated[WebhookFilter, Query()]
) -> WebhookPage:
    """Newest first: registered ones, and those that jobs named."""
    records = deps.read(
        lambda conn: webhooks.page(conn, tenant, limit=wanted.limit + 1, before_id=wanted.cursor)
    )
    shown = records[: wanted.limit]
    return WebhookPage(
        data=[WebhookView.of(record) for record in shown],
        next_cursor=shown[-1].id if len(records) > len(shown) else None,
    )


@router.get("/{webhook_id}", responses=refusals(404, 503), summary="Look at a webhook")
def get_webhook(deps: With, tenant: Tenant, webhook_id: WebhookId) -> WebhookView:
    """The webhook as it stands now."""
    return WebhookView.of(deps.read(lambda conn: webhooks.get(conn, tenant, webhook_id)))


@router.delete(
    "/{webhook_id}", status_code=204, responses=refusals(404, 503), summary="Forget a webhook"
)
def remove_webhook(deps: With, tenant: Tenant, webhook_id: WebhookId) -> None:
    """Send nothing there any more, and forget its deliveries. Its URL may be registered anew."""
    deps.transact(lambda conn: webhooks.remove(conn, tenant, webhook_id))


@router.post("/{webhook_id}/enable", responses=refusals(404, 503), summary="Enable a webhook")
def enable_webhook(deps: With, tenant: Tenant, webhook_id: WebhookId) -> WebhookView:
    """Send there again. What failed meanwhile is sent when it is replayed."""

    def work(conn: Connection) -> WebhookRecord:
        webhooks.get(conn, tenant, webhook_id)
        webhooks.enable(conn, webhook_id)
        return webhooks.get(conn, tenant, webhook_id)

    return WebhookView.of(deps.transact(work))


@router.post("/{webhook_id}/disable", responses=refusals(404, 503), summary="Disable a webhook")
def disable_webhook(deps: With, tenant: Tenant, webhook_id: WebhookId) -> WebhookView:
    """Send nothing there until it is enabled. What waits, and what comes, counts as failed."""

    def work(conn: Connection) -> WebhookRecord:
        webhooks.get(conn, tenant, webhook_id)
        webhooks.disable(conn, webhook_id, "asked for")
        return webhooks.get(conn, tenant, webhook_id)

    return WebhookView.of(deps.transact(work))


@router.get("/{webhook_id}/secret", responses=refusals(404, 503), summary="Get a webhook's secret")
def get_secret(deps: With, tenant: Tenant, webhook_id: WebhookId, response: Response) -> SecretList:
    """What its events are signed with; two secrets for a while after a change."""
    response.headers.update(_NO_STORE)
    record, now = deps.read(lambda conn: (webhooks.get(conn, tenant, webhook_id), read_clock(conn)))
    return SecretList.of(record, deps.signing_secrets(), now)


@router.post(
    "/{webhook_id}/rotate",
    responses=refusals(404, 409, 422, 503),
    summary="Change a webhook's secret",
)
def rotate_secret(
    deps: With,
    tenant: Tenant,
    webhook_id: WebhookId,
    response: Response,
    overlap_s: Annotated[
        float | None,
        Query(ge=0, le=31 * 86_400, description="the former one still signs for so long"),
    ] = None,
) -> SecretList:
    """Sign with a new secret from now on, and for a while with the former one too."""
    response.headers.update(_NO_STORE)
    signing = deps.signing_secrets()
    overlap = deps.farm.settings.webhook_overlap_s if overlap_s is None else overlap_s
    record, now = deps.transact(
        lambda conn: (
            webhooks.rotate(conn, tenant, webhook_id, signing.mark, overlap_s=overlap),
            read_clock(conn),
        )
    )
    return SecretList.of(record, signing, now)
