"""Who is asking, and from where it is safe to ask. Knows no ledger: `keyring` finds the callers.

Until a key is made, whoever reaches a loopback port may do everything as the tenant `default`. As
soon as there is one, everybody needs a key; revoking the last one does not open the door again.
"""

import ipaddress
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from starlette.types import Scope

from shared.errors import SetupError
from shared.settings import Settings
from shared.tenants import DEFAULT_TENANT, NO_QUOTA, Quota
from shared.tiers import Tier

_SCOPE_KEY = "caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whom a request acts for, and what that tenant may ask. `key_id` None: no key was needed."""

    tenant: str = DEFAULT_TENANT
    tiers: frozenset[Tier] = frozenset(Tier)
    quota: Quota = NO_QUOTA
    key_id: str | None = None


ANYBODY = Caller()


def set_caller(scope: Scope, caller: Caller) -> None:
    """Note who is asking; for the layer that finds it out."""
    scope.setdefault("state", {})[_SCOPE_KEY] = caller


def caller_in(scope: Scope) -> Caller | None:
    """Who is asking; None where nobody needs to say so (health, figures)."""
    caller: Caller | None = scope.get("state", {}).get(_SCOPE_KEY)
    return caller


async def caller_of(request: Request) -> Caller:
    """The caller of a request that has passed the gate."""
    caller = caller_in(request.scope)
    if caller is None:
        raise RuntimeError("this address needs a caller but lies outside the gate")
    return caller


AskedBy = Annotated[Caller, Depends(caller_of)]


async def _tenant_of(caller: AskedBy) -> str:
    return caller.tenant


Tenant = Annotated[str, Depends(_tenant_of)]


def is_open(settings: Settings) -> bool:
    """True when the settings let strangers in while no key has been made."""
    return is_loopback(settings.api_host) or settings.allow_unauthenticated


def refuse_open_bind(settings: Settings, *, keys_exist: bool) -> None:
    """Raise SetupError when nobody could be told apart on an address that others reach."""
    if not is_open(settings) and not keys_exist:
        raise SetupError(
            f"refusing to listen on {settings.api_host!r}: there are no API keys. "
            "Make one with `voxfarm keys create`, use VOXFARM_API_HOST=127.0.0.1, or set "
            "VOXFARM_ALLOW_UNAUTHENTICATED=true if only trusted clients can reach that address"
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
