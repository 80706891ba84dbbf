"""The farm's root secret, and the tenants' secrets that content keys are made with."""

import hashlib
import hmac
import secrets

from shared.secret_file import keep_secret
from shared.settings import Settings


def load_farm_secret(settings: Settings) -> bytes:
    """From `VOXFARM_FARM_SECRET`, or the file `farm-secret` in the data folder (made if absent)."""
    configured = settings.farm_secret.get_secret_value()
    if configured:
        return configured.encode()
    return keep_secret(settings.data_dir / "farm-secret", lambda: secrets.token_hex(32)).encode()


def tenant_secret(farm_secret: bytes, tenant: str) -> bytes:
    """A tenant's own secret, so that equal texts of two tenants share nothing."""
    return hmac.new(farm_secret, b"tenant\0" + tenant.encode(), hashlib.sha256).digest()
