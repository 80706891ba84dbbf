"""What is sent for an event: JSON that is made once, and then kept. Pure."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from shared.webhooks import EventType

MAX_BODY_BYTES = 20_000
_TIMES = ("created_at", "ended_at")


def payload(
    event_type: EventType, event_at: float, data: Mapping[str, Any], *, public_url: str
) -> str:
    """The body of an event: `type`, `timestamp` and `data`; below 20,000 bytes as UTF-8.

    Links are addresses of the API, which stay good; what is behind them needs a key. Metadata that
    does not fit is left out (null).
    """
    told = dict(data)
    for name in _TIMES:
        if told.get(name) is not None:
            told[name] = _written(told[name])
    if "id" in told:
        path = f"{public_url.rstrip('/')}/v1/jobs/{told['id']}"
        told["links"] = {"self": path, "deliverables": f"{path}/deliverables"}
    body = _json(event_type, event_at, told)
    if len(body.encode()) >= MAX_BODY_BYTES:
        body = _json(event_type, event_at, told | {"metadata": None})
    return body


def _json(event_type: EventType, event_at: float, data: Mapping[str, Any]) -> str:
    event = {"type": event_type.value, "timestamp": _written(event_at), "data": data}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def _written(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat().replace("+00:00", "Z")
