"""One attempt against real receivers, friendly and hostile, over plain HTTP and TLS."""

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from email.utils import formatdate
from pathlib import Path

import pytest

from shared.settings import Settings
from tests.receiver import (
    Handler,
    Received,
    Receiver,
    answers,
    make_certificate,
    running_receiver,
)
from worker.webhooks.sending import Sender, sender_of

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
HEADERS = {"webhook-id": "id", "webhook-signature": "v1,x"}


def sender(**changes: object) -> Sender:
    settings = {
        "webhook_allow_http": True,
        "webhook_allowed_networks": LOOPBACK,
        "webhook_timeout_s": 10.0,
    }
    return sender_of(Settings.model_validate(settings | changes))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as receiver:
        yield receiver


def test_what_is_sent_arrives_as_it_is(receiver: Receiver) -> None:
    outcome = sender().send(f"{receiver.url}/a%20b?c=%C3%A9", HEADERS, "{é}".encode())
    assert (outcome.status, outcome.error, outcome.delivered) == (200, None, True)
    [came] = receiver.received
    assert (came.method, came.path, came.body) == ("POST", "/hook/a%20b?c=%C3%A9", "{é}".encode())
    assert came.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert came.headers["content-type"] == "application/json"
    assert came.headers["webhook-id"] == "id"
    assert came.headers["user-agent"].startswith("voxfarm/")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(receiver: Receiver, status: int) -> None:
    with running_receiver() as inner:
        receiver.answer = answers(status, Location=inner.url)
        outcome = sender().send(receiver.url, HEADERS, b"{}")
        assert (outcome.status, outcome.delivered) == (status, False)
        assert inner.received == []


@pytest.mark.parametrize(
    ("said", "least_s", "most_s"),
    [
        ("17", 17, 17),
        (formatdate(time.time() + 36_000, usegmt=True), 30_000, 36_000),
        (formatdate(0, usegmt=True), 0, 0),
        ("9" * 4_000, 999_999_999, 999_999_999),
    ],
    ids=["seconds", "a date to come", "a date gone by", "too many digits"],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(
    receiver: Receiver, said: str, least_s: float, most_s: float
) -> None:
    receiver.answer = answers(503, Retry_After=said)
    outcome = sender().send(receiver.url, HEADERS, b"{}")
    assert outcome.retry_after_s is not None
    assert least_s <= outcome.retry_after_s <= most_s


@pytest.mark.parametrize("said", ["soon", "-5", "1.5", "", "\xb2", "Mon, 99 Foo 0000"])
def test_a_retry_after_that_means_nothing_is_none(receiver: Receiver, said: str) -> None:
    receiver.answer = answers(503, Retry_After=said)
    assert sender().send(receiver.url, HEADERS, b"{}").retry_after_s is None


@contextmanager
def raw(speak: bytes, *, every_s: float = 0.0, repeat: int = 1, read: bool = True) -> Iterator[str]:
    """A listener that says these bytes again and again to whoever connects."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    try:
                        asked = b"" if read else b"{}"
                        while not asked.endswith(b"{}"):
                            asked += peer.recv(65_536) or b"{}"
                        for _ in range(repeat):
                            peer.sendall(speak)
                            time.sleep(every_s)
                    except OSError:
                        continue

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        listener.shutdown(socket.SHUT_RDWR)


NEVER = 10_000
HOSTILE = {
    "says nothing": (b"", 0.1, NEVER),
    "drips a header": (b"x", 0.1, NEVER),
    "drips a status line": (b"HTTP/1.1 200 OK\r\nX: ", 0.1, NEVER),
    "informs for ever": (b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.01, NEVER),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_one_deadline_ends_every_way_of_keeping_us_waiting(kind: str) -> None:
    speak, every_s, repeat = HOSTILE[kind]
    with raw(speak, every_s=every_s, repeat=repeat) as url:
        began = time.monotonic()
        outcome = sender(webhook_timeout_s=1.0).send(url, HEADERS, b"{}")
        assert time.monotonic() - began < 8
    assert (outcome.status, outcome.error) == (None, "it did not answer in time")
    assert outcome.duration_s >= 0.9


def test_a_receiver_that_reads_nothing_is_left_at_the_deadline() -> None:
    with raw(b"", every_s=0.5, repeat=NEVER, read=False) as url:
        outcome = sender(webhook_timeout_s=1.0).send(url, HEADERS, b"x" * 20_000_000)
    assert (outcome.status, outcome.error) == (None, "it did not answer in time")


@pytest.mark.parametrize(
    ("speak", "error"),
    [
        (b"SSH-2.0-OpenSSH_9.9\r\n", "it does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 200_000, "it does not speak HTTP"),
        (b"", "it does not speak HTTP"),
        (b"HTTP/1.1 999999 OK\r\n\r\n", "it does not speak HTTP"),
    ],
)
def test_what_is_no_answer_is_named_and_costs_no_memory(speak: bytes, error: str) -> None:
    with raw(speak) as url:
        outcome = sender().send(url, HEADERS, b"{}")
    assert (outcome.status, outcome.error) == (None, error)


@pytest.mark.parametrize(
    "speak",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n" + b"x" * 60_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
    ],
)
def test_the_status_decides_whatever_follows_it(speak: bytes) -> None:
    with raw(speak) as url:
        assert sender().send(url, HEADERS, b"{}").delivered


def test_an_endless_body_is_not_read_to_its_end() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with raw(head + b"1\r\nx\r\n", every_s=0.05) as url, raw(b"") as _:
        began = time.monotonic()
        assert sender().send(url, HEADERS, b"{}").delivered
        assert time.monotonic() - began < 9


def test_nobody_listening_is_told_in_words(receiver: Receiver) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    outcome = sender().send(f"http://127.0.0.1:{port}/", HEADERS, b"{}")
    assert (outcome.status, outcome.error) == (None, "no connection")
    named = sender().send("https://no-such-host.invalid/", HEADERS, b"{}")
    assert (named.status, named.error) == (None, "its name was not found")
    assert receiver.received == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]"])
def test_without_the_operators_leave_loopback_is_not_even_connected_to(
    receiver: Receiver, host: str
) -> None:
    url = f"http://{host}:{receiver.port}/hook"
    outcome = sender(webhook_allowed_networks=()).send(url, HEADERS, b"{}")
    assert (outcome.status, outcome.error) == (None, "its name leads to no public address")
    assert receiver.received == []


def test_a_name_is_looked_up_and_the_address_that_was_vetted_is_connected_to(
    receiver: Receiver,
) -> None:
    """`localhost` may also be ::1, where nobody is allowed: the permitted address is taken."""
    outcome = sender().send(f"http://localhost:{receiver.port}/hook", HEADERS, b"{}")
    assert outcome.delivered
    [came] = receiver.received
    assert came.headers["host"] == f"localhost:{receiver.port}"


def test_plain_http_is_not_sent_where_it_became_forbidden(receiver: Receiver) -> None:
    outcome = sender(webhook_allow_http=False).send(receiver.url, HEADERS, b"{}")
    assert outcome.status is None
    assert outcome.error is not None
    assert "https" in outcome.error
    assert receiver.received == []


def test_proxies_of_the_environment_are_not_asked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_receiver() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert sender().send(receiver.url, HEADERS, b"{}").delivered
        assert proxy.received == []


def test_over_tls_name_and_certificate_are_those_of_the_host_not_of_the_address(
    tmp_path: Path,
) -> None:
    certificate = make_certificate(tmp_path, "DNS:localhost")
    asked: list[str | None] = []
    tls = certificate.context()
    tls.sni_callback = lambda _socket, name, _context: asked.append(name)
    with running_receiver(tls) as receiver:
        trusting = sender(webhook_ca_file=str(certificate.cert))
        assert trusting.send(f"https://localhost:{receiver.port}/x", HEADERS, b"{}").delivered
        assert asked == ["localhost"]
        assert receiver.received[0].headers["host"] == f"localhost:{receiver.port}"
        by_address = trusting.send(f"https://127.0.0.1:{receiver.port}/x", HEADERS, b"{}")
        assert (by_address.status, by_address.error) == (None, "its certificate is not valid")
        stranger = sender().send(f"https://localhost:{receiver.port}/x", HEADERS, b"{}")
        assert (stranger.status, stranger.error) == (None, "its certificate is not valid")
        assert len(receiver.received) == 1


def test_what_speaks_no_tls_is_told_in_words(receiver: Receiver) -> None:
    outcome = sender().send(f"https://127.0.0.1:{receiver.port}/", HEADERS, b"{}")
    assert (outcome.status, outcome.error) == (None, "no TLS connection")


def test_old_tls_is_refused(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path, "IP:127.0.0.1")
    assert ssl.create_default_context().minimum_version >= ssl.TLSVersion.TLSv1_2
    with running_receiver(certificate.context()) as receiver:
        trusting = sender(webhook_ca_file=str(certificate.cert))
        assert trusting.send(f"https://127.0.0.1:{receiver.port}/", HEADERS, b"{}").delivered


def test_many_at_once_keep_apart(receiver: Receiver) -> None:
    def echo(handler: Handler, received: Received) -> None:
        handler.reply(int(received.headers["webhook-id"]))

    receiver.answer = echo
    one, found = sender(), {}

    def send(status: int) -> None:
        found[status] = one.send(receiver.url, {"webhook-id": str(status)}, b"{}").status

    threads = [threading.Thread(target=send, args=(n,)) for n in range(400, 440)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n for n in range(400, 440)}
