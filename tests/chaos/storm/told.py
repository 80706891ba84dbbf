"""Whether everybody who was to be told was told: read from the letterbox, the ledger and the API.

Of each end of a job there is one event. It may come again, but with one id, one body, and a
signature that the independent package `standardwebhooks` makes of them too.
"""

import json
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, select
from standardwebhooks import Webhook

from shared.ledger import tables as t
from shared.webhooks import END_EVENTS, DeliveryState
from tests.chaos.storm.ground import Ground
from tests.chaos.storm.judgement import Submitted
from tests.receiver import Received

_ENDS = frozenset(END_EVENTS.values())
_OVER = (DeliveryState.DELIVERED, DeliveryState.DROPPED)
_LOOK_S = 0.5


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
        events = [row for row in deliveries if row.job_id == job.job_id]
        faults = _faults(ground, job, events, received.pop(job.job_id, []), secrets)
        found += [f"webhook of job {job.job_id}: {fault}" for fault in faults]
    return found + [f"something came of a job that is none of ours: {job}" for job in received]


def _faults(
    ground: Ground,
    job: Submitted,
    events: Sequence[Row[Any]],
    received: Collection[Received],
    secrets: dict[str, Webhook],
) -> Iterator[str]:
    ends = [row for row in events if row.type in _ENDS]
    if [row.type for row in ends] != [f"job.{job.expected}"]:
        yield f"it has the end events {[row.type for row in ends]}, not job.{job.expected}"
    known = {row.event_id for row in events}
    for stranger in {one.id for one in received} - known:
        yield f"{stranger} came, of which the ledger knows nothing"
    for row in events:
        mine = [one for one in received if one.id == row.event_id]
        if row.state == DeliveryState.DELIVERED and not ground.letterbox.has_taken(row.event_id):
            yield f"{row.type} counts as delivered and was never taken"
        if len({one.body for one in mine}) > 1:
            yield f"{row.type} came with different bodies"
        for one in mine:
            if json.loads(one.body)["type"] != row.type or not row.url.endswith(one.path):
                yield f"{row.type} came as another event, or to {one.path}"
            if not _is_signed(one, secrets[row.webhook_id]):
                yield f"{row.type} has a wrong signature"


def _is_signed(received: Received, secret: Webhook) -> bool:
    """Whether the package signs it likewise.

    Its `verify` would compare the time with this machine's; the ledger's clock was set on purpose.
    """
    at = datetime.fromtimestamp(int(received.headers["webhook-timestamp"]), UTC)
    made = secret.sign(received.id, at, received.body.decode())
    return made in received.headers["webhook-signature"].split(" ")


def _secret(ground: Ground, webhook_id: str) -> Webhook:
    [only] = ground.farm.get(f"/v1/webhooks/{webhook_id}/secret")["secrets"]  # type: ignore[misc]
    return Webhook(only["secret"])


def _deliveries(conn: Connection) -> Sequence[Row[Any]]:
    d, o = t.delivery.c, t.outbox.c
    return conn.execute(
        select(d.state, d.error, d.webhook_id, d.event_id, o.type, o.job_id, t.webhook.c.url)
        .select_from(t.delivery)
        .join(t.outbox)
        .join(t.webhook)
        .order_by(d.id)
    ).all()
