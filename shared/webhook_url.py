"""Reads and checks the address of a webhook. Looks up no name: where it leads is seen at sending.

The text is parsed here only, once at submit and once at sending, by the same parser; what is
sent is put together from the parts, so there are no two readings of one URL.
"""

import ipaddress
from dataclasses import dataclass

import httpx

from shared.errors import UsageError
from shared.webhooks import MAX_URL_CHARS

_DEFAULT_PORTS = {"https": 443, "http": 80}
_FIRST_FREE_PORT = 1_024  # below are other services' ports
_MAX_HOST_CHARS = 253


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Where to send. `host` is ASCII (IDNA), `target` is path and query as they go on the wire."""

    scheme: str
    host: str
    port: int
    target: bytes

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL and in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The one normal form of the URL."""
        return f"{self.scheme}://{self.authority}{self.target.decode('ascii')}"

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The host as an address, when it is written as one."""
        return ipaddress.ip_address(self.host) if _is_address(self.host) else None


def checked_webhook_url(text: str, *, allow_http: bool) -> str:
    """Return the URL in its one normal form. Raises UsageError `bad-webhook-url`."""
    return read_target(text, allow_http=allow_http).url


def read_target(text: str, *, allow_http: bool) -> WebhookTarget:
    """Take a URL apart. Raises UsageError `bad-webhook-url`."""
    url = _parsed(text)
    schemes = ("https", "http") if allow_http else ("https",)
    if url.scheme not in schemes:
        raise _refused(f"a webhook's URL begins with {' or '.join(f'{s}://' for s in schemes)}")
    if url.userinfo or "\\" in text:
        raise _refused("a webhook's URL holds no user name, password or backslash")
    if url.fragment:
        raise _refused("a webhook's URL has no fragment")
    host = url.raw_host.decode("ascii")
    if not host.strip(".") or len(host) > _MAX_HOST_CHARS or "%" in host or ".." in host:
        raise _refused("a webhook's URL names a host")
    last = host.rstrip(".").rpartition(".")[2]
    if (last.isdigit() or last.startswith("0x")) and not _is_address(host):
        raise _refused("a webhook's URL names a host, or an address in its usual form")
    own = _DEFAULT_PORTS[url.scheme]
    port = own if url.port is None else url.port
    if port not in _DEFAULT_PORTS.values() and not _FIRST_FREE_PORT <= port < 2**16:
        raise _refused(f"port {port} is for other services: use {own}, or 1024 and above")
    return WebhookTarget(url.scheme, host, port, url.raw_path)


def _parsed(text: str) -> httpx.URL:
    if len(text) > MAX_URL_CHARS:
        raise _refused(f"a webhook's URL has at most {MAX_URL_CHARS:,} characters")
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        raise _refused("that is no URL") from None
    if len(str(url)) > MAX_URL_CHARS:
        raise _refused(f"a webhook's URL has at most {MAX_URL_CHARS:,} characters, as encoded")
    return url


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _refused(why: str) -> UsageError:
    """The URL is not repeated: it may hold a token."""
    return UsageError(why, code="bad-webhook-url", field="webhook.url")
