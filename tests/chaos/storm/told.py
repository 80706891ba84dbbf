"""Whether everybody who was to be told was told: read from the letterbox, the ledger and the API.

Of each end of a job there is one event. It may come again, but with one id, one body, and a
signature that the independent package `standardwebhooks` makes of them too.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, select
from standardwebhooks import Webhook

from shared.ledger import tables as t
from shared.webhooks import END_EVENTS, DeliveryState
from tests.chaos.storm.ground import Ground
from tests.chaos.storm.judgement import Submitted
from tests.receiver import Received

_ENDS = frozenset(END_EVENTS.values())
_OVER = (DeliveryState.DELIVERED, DeliveryState.DROPPED)
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event on its way to one webhook, as the ledger has it."""

    state: str
    error: str | None
    webhook_id: str
    event_id: str
    type: str
    job_id: str | None
    url: str


def untold(ground: Ground, submitted: Sequence[Submitted], *, within_s: float) -> list[str]:
    """Everything that is wrong with the webhooks of jobs that have ended, waited for so long."""
    deadline_s = time.monotonic() + within_s
    while True:
        deliveries = ground.database.read(_deliveries)
        open_ = [row for row in deliveries if row.state not in _OVER]
        if not open_ or time.monotonic() > deadline_s:
            break
        ground.keep_up()
        time.sleep(_LOOK_S)
    found = [f"event {row.event_id} is {row.state} after all: {row.error}" for row in open_]
    received: dict[str, list[Received]] = defaultdict(list)
    for one in ground.letterbox.received():
        received[str(json.loads(one.body)["data"]["id"])].append(one)
    secrets = {row.webhook_id: _secret(ground, row.webhook_id) for row in deliveries}
    for job in submitted:
        mine = [row for row in deliveries if row.job_id == job.job_id]
        faults = faults_of(
            mine,
            received.pop(job.job_id, []),
            end=f"job.{job.expected}",
            has_taken=ground.letterbox.has_taken,
            secrets=secrets,
        )
        found += [f"webhook of job {job.job_id}: {fault}" for fault in faults]
    return found + [f"something came of a job that is none of ours: {job}" for job in received]


def faults_of(
    deliveries: Sequence[Delivery],
    received: Collection[Received],
    *,
    end: str,
    has_taken: Callable[[str], bool],
    secrets: Mapping[str, Webhook],
) -> Iterator[str]:
    """What is wrong with the webhooks of a job, its end being this one; `secrets` by webhook."""
    ends = [row.type for row in deliveries if row.type in _ENDS]
    if ends != [end]:
        yield f"it has the end events {ends}, not {end}"
    for stranger in {one.id for one in received} - {row.event_id for row in deliveries}:
        yield f"{stranger} came, of which the ledger knows nothing"
    for row in deliveries:
        mine = [one for one in received if one.id == row.event_id]
        if row.state == DeliveryState.DELIVERED and not has_taken(row.event_id):
            yield f"{row.type} counts as delivered and was never taken"
        if len({one.body for one in mine}) > 1:
            yield f"{row.type} came with different bodies"
        if any(json.loads(one.body)["type"] != row.type for one in mine):
            yield f"{row.type} came as another event"
        if any(not row.url.endswith(one.path) for one in mine):
            yield f"{row.type} came to another webhook"
        if not all(_is_signed(one, secrets[row.webhook_id]) for one in mine):
            yield f"{row.type} has a wrong signature"


def _is_signed(received: Received, secret: Webhook) -> bool:
    """Whether the package signs it likewise.

    Its `verify` would compare the time with this machine's; the ledger's clock was set on purpose.
    """
    at = datetime.fromtimestamp(int(received.headers["webhook-timestamp"]), UTC)
    made = secret.sign(received.id, at, received.body.decode())
    return made in received.headers["webhook-signature"].split(" ")


def _secret(ground: Ground, webhook_id: str) -> Webhook:
    secrets = ground.farm.get(f"/v1/webhooks/{webhook_id}/secret")["secrets"]
    return Webhook(secrets[0]["secret"])  # type: ignore[index]


def _deliveries(conn: Connection) -> list[Delivery]:
    d, o = t.delivery.c, t.outbox.c
    rows = conn.execute(
        select(d.state, d.error, d.webhook_id, d.event_id, o.type, o.job_id, t.webhook.c.url)
        .select_from(t.delivery)
        .join(t.outbox)
        .join(t.webhook)
        .order_by(d.id)
    )
    return [Delivery(**row._mapping) for row in rows]
