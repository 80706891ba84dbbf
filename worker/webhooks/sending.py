"""One attempt: a POST to a vetted address, within a deadline, and what came of it.

No redirect is followed, no proxy of the environment is used, no cookie is kept, and of the answer's
body nothing is looked at. Knows no ledger.
"""

import email.utils
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version

import httpcore

from shared.addresses import AddressPolicy
from shared.errors import UsageError
from shared.settings import Settings
from shared.webhook_url import WebhookTarget, read_target
from shared.webhooks import Outcome
from worker.webhooks.pinned import ForbiddenAddressError, PinnedBackend
from worker.webhooks.resolving import LookupFailedError

_DRAINED_BYTES = 16_384
_DRAIN_S = 1.0
_WORDS: Sequence[tuple[type[Exception], str]] = (
    (ForbiddenAddressError, "its name leads to no public address"),
    (LookupFailedError, "its name was not found"),
    (httpcore.TimeoutException, "it did not answer in time"),
    (httpcore.ConnectError, "no connection"),
    (httpcore.ProtocolError, "it does not speak HTTP"),
    (httpcore.NetworkError, "the connection broke"),
)
_TLS_WORDS: Sequence[tuple[type[Exception], str]] = (
    (ssl.SSLCertVerificationError, "its certificate is not valid"),
    (ssl.SSLError, "no TLS connection"),
)


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends to webhooks under one farm's rules. Thread-safe."""

    policy: AddressPolicy
    tls: ssl.SSLContext
    timeout_s: float
    allow_http: bool
    user_agent: str

    def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Try once. Never raises for anything that the receiver or the network does."""
        began_s = time.monotonic()
        deadline_s = began_s + self.timeout_s
        status, error, retry_after_s = None, None, None
        try:
            target = read_target(url, allow_http=self.allow_http)
            status, retry_after_s = self._post(target, headers, body, deadline_s)
        except UsageError as refused:  # the rules became stricter since it was accepted
            error = str(refused)
        except (
            httpcore.TimeoutException,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            ForbiddenAddressError,
            LookupFailedError,
        ) as failed:
            error = _words(failed)
        return Outcome(status, error, time.monotonic() - began_s, retry_after_s)

    def _post(
        self, target: WebhookTarget, headers: Mapping[str, str], body: bytes, deadline_s: float
    ) -> tuple[int, float | None]:
        origin = httpcore.Origin(target.scheme.encode(), target.host.encode(), target.port)
        connection = httpcore.HTTPConnection(
            origin, ssl_context=self.tls, network_backend=PinnedBackend(self.policy, deadline_s)
        )
        sent = [
            ("Host", target.authority),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("User-Agent", self.user_agent),
            ("Accept", "*/*"),
            ("Accept-Encoding", "identity"),
            ("Connection", "close"),
            *headers.items(),
        ]
        url = httpcore.URL(
            scheme=target.scheme.encode(),
            host=target.host.encode(),
            port=target.port,
            target=target.target,
        )
        with connection, connection.stream("POST", url, headers=sent, content=body) as response:
            _drain(response)
            return response.status, _retry_after_s(response.headers)


def sender_of(settings: Settings) -> Sender:
    """A Sender by the settings. Raises OSError or SSLError for a CA file that cannot be read."""
    tls = ssl.create_default_context()
    if settings.webhook_ca_file:
        tls.load_verify_locations(settings.webhook_ca_file)
    return Sender(
        AddressPolicy(settings.webhook_allowed_networks),
        tls,
        settings.webhook_timeout_s,
        settings.webhook_allow_http,
        f"voxfarm/{version('voxfarm')}",
    )


def _drain(response: httpcore.Response) -> None:
    """Take a little of the body, so that a plain receiver can end well; its status has decided."""
    until_s, taken = time.monotonic() + _DRAIN_S, 0
    with suppress(httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        for piece in response.iter_stream():
            taken += len(piece)
            if taken >= _DRAINED_BYTES or time.monotonic() > until_s:
                return


def _retry_after_s(headers: Sequence[tuple[bytes, bytes]]) -> float | None:
    """How long the receiver asks to wait: seconds, or a date (RFC 9110); None: it does not."""
    asked = next((v for name, v in headers if name.lower() == b"retry-after"), None)
    if asked is None:
        return None
    text = asked.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _words(failed: Exception) -> str:
    """What to tell the owner: the kind of trouble, and nothing of the network behind it."""
    cause: BaseException | None = failed
    while cause is not None:  # httpcore's errors hide those of TLS
        for kind, words in _TLS_WORDS:
            if isinstance(cause, kind):
                return words
        cause = cause.__cause__ or cause.__context__
    return next(words for kind, words in _WORDS if isinstance(failed, kind))
