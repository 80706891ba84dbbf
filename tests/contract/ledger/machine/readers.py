"""What owners of webhooks do, at any moment: disable, enable, rotate, remove, make anew."""

from contextlib import suppress

from sqlalchemy import text

from shared.errors import ConflictError, NotFoundError
from shared.ledger import webhooks
from shared.webhooks import SELECTABLE_EVENTS
from tests.contract.ledger import hooks
from tests.contract.ledger.machine.held import TENANTS, Held

OVERLAP_S = 3_600.0


def disable(held: Held, tenant: str) -> None:
    for webhook_id in _ids(held, tenant):
        held.database.transact(lambda conn, id_=webhook_id: webhooks.disable(conn, id_, "a wish"))  # type: ignore[misc]


def enable(held: Held, tenant: str) -> None:
    for webhook_id in _ids(held, tenant):
        held.database.transact(lambda conn, id_=webhook_id: webhooks.enable(conn, id_))  # type: ignore[misc]


def rotate(held: Held, tenant: str) -> None:
    _rotate(held, tenant, overlap_s=OVERLAP_S)


def rotate_at_once(held: Held, tenant: str) -> None:
    """The former secret has leaked: it signs no more."""
    _rotate(held, tenant, overlap_s=0.0)


def remove(held: Held, tenant: str) -> None:
    for webhook_id in _ids(held, tenant):
        with suppress(NotFoundError):
            held.database.transact(
                lambda conn, id_=webhook_id: webhooks.remove(conn, tenant, id_)  # type: ignore[misc]
            )


def register(held: Held, tenant: str) -> None:
    """Want news, be it once more."""
    hooks.register(held.database, events=SELECTABLE_EVENTS, tenant=tenant)


CHANGES = (disable, enable, enable, rotate, rotate_at_once)
WISHES = (*CHANGES, remove, register, register)


def enable_all(held: Held) -> None:
    for tenant in TENANTS:
        enable(held, tenant)


def _rotate(held: Held, tenant: str, *, overlap_s: float) -> None:
    for webhook_id in _ids(held, tenant):
        with suppress(ConflictError, NotFoundError):  # two secrets sign already, or it is gone
            held.database.transact(
                lambda conn, id_=webhook_id: webhooks.rotate(  # type: ignore[misc]
                    conn, tenant, id_, hooks.SECRETS.mark, overlap_s=overlap_s
                )
            )


def _ids(held: Held, tenant: str) -> list[str]:
    query = text("SELECT id FROM webhook WHERE tenant = :tenant ORDER BY id")
    return held.database.read(lambda conn: list(conn.execute(query, {"tenant": tenant}).scalars()))
