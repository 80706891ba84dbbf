"""The headers of Standard Webhooks: an id, a time, and a signature for every secret that counts.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence


def signed_headers(event_id: str, at_s: int, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """Headers for a body sent at `at_s` (epoch seconds), signed with each key, the newest first."""
    content = f"{event_id}.{at_s}.".encode() + body
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join(_signature(key, content) for key in keys),
    }


def _signature(key: bytes, content: bytes) -> str:
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()
