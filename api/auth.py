"""Who is asking, and from where it is safe to ask. Today: one tenant, and loopback only.

Until keys exist, whoever reaches the port may do everything; so the API refuses to listen on any
other address unless the operator says that something in front of it authenticates.
"""

import ipaddress
from typing import Annotated

from fastapi import Depends, Request

from shared.errors import SetupError
from shared.settings import Settings

DEFAULT_TENANT = "default"


async def tenant_of(request: Request) -> str:  # noqa: ARG001 - keys will be read from it
    """The tenant a request acts for."""
    return DEFAULT_TENANT


Tenant = Annotated[str, Depends(tenant_of)]


def refuse_open_bind(settings: Settings) -> None:
    """Raise SetupError when the settings would serve strangers without authentication."""
    if not is_loopback(settings.api_host) and not settings.allow_unauthenticated:
        raise SetupError(
            f"refusing to listen on {settings.api_host!r}: nobody is authenticated yet. "
            "Use VOXFARM_API_HOST=127.0.0.1, or set VOXFARM_ALLOW_UNAUTHENTICATED=true "
            "if only trusted clients can reach that address"
        )


def is_loopback(host: str) -> bool:
    """True for a name or address of this machine itself; no name is looked up."""
    name = host.lower().removesuffix(".").removeprefix("[").removesuffix("]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
