"""How the command line speaks HTTP: addresses checked, loopback never sent through a proxy."""

import ipaddress

import httpx

from shared.errors import UsageError

CONNECT_S = 5.0
READ_S = 30.0
RETRYABLE_STATUS = frozenset({429, 502, 503, 504})


def checked_url(text: str) -> str:
    """Return a farm's base URL without a trailing slash; UsageError when it is none."""
    try:
        url = httpx.URL(text.strip())
    except httpx.InvalidURL as error:
        raise UsageError(f"{text!r} is not a URL: {error}", code="bad-url") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise UsageError(
            f"{text!r} is not a farm's address; it looks like http://127.0.0.1:8080",
            code="bad-url",
        )
    return str(url).rstrip("/")


def is_loopback(url: str) -> bool:
    """Tell whether the URL's host is this machine, by name or address."""
    host = httpx.URL(url).host
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_client(url: str, transport: httpx.BaseTransport | None = None) -> httpx.Client:
    """Make a client for one host. Proxies of the environment apply, except to loopback."""
    return httpx.Client(
        timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
        trust_env=not is_loopback(url),
        transport=transport,
    )
