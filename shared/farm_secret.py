"""The farm's root secret, and the tenants' secrets that content keys are made with."""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from shared.settings import Settings


def load_farm_secret(settings: Settings) -> bytes:
    """From `VOXFARM_FARM_SECRET`, or the file `farm-secret` in the data folder (made if absent)."""
    configured = settings.farm_secret.get_secret_value()
    if configured:
        return configured.encode()
    path = settings.data_dir / "farm-secret"
    if not path.exists():
        _create(path)
    return path.read_bytes().strip()


def tenant_secret(farm_secret: bytes, tenant: str) -> bytes:
    """A tenant's own secret, so that equal texts of two tenants share nothing."""
    return hmac.new(farm_secret, b"tenant\0" + tenant.encode(), hashlib.sha256).digest()


def _create(path: Path) -> None:
    """Write a whole file and link it into place: of racing processes exactly one wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
