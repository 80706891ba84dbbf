"""Signing secrets of webhooks: derived from the farm's root secret, so that none lies in SQL.

A webhook's row holds only how often its secret was changed (`generation`) and a mark by which a
process notices that it was given another root secret than the one the webhook was made under.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field

PREFIX = "whsec_"


@dataclass(frozen=True, slots=True)
class SecretIdentity:
    """Which secret of which webhook."""

    tenant: str
    webhook_id: str
    generation: int

    @property
    def former(self) -> "SecretIdentity | None":
        """The secret before, if there was one."""
        if self.generation <= 1:
            return None
        return SecretIdentity(self.tenant, self.webhook_id, self.generation - 1)


@dataclass(frozen=True, slots=True)
class SigningSecrets:
    """The secrets of all webhooks of a farm."""

    farm_secret: bytes = field(repr=False)

    def key(self, which: SecretIdentity) -> bytes:
        """The 32 bytes that a webhook's events are signed with."""
        name = f"webhook\0{which.tenant}\0{which.webhook_id}\0{which.generation}"
        return hmac.new(self.farm_secret, name.encode(), hashlib.sha256).digest()

    def written(self, which: SecretIdentity) -> str:
        """A key as libraries of Standard Webhooks take it. Never to be logged."""
        return PREFIX + base64.b64encode(self.key(which)).decode()

    def mark(self, which: SecretIdentity) -> str:
        """A mark of a key, to be stored: tells keys apart and gives nothing away."""
        return hashlib.sha256(b"webhook-mark\0" + self.key(which)).hexdigest()[:16]
