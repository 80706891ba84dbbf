"""Bodies that are too large, too slow or cut off, sent over bare sockets."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator

import pytest

from tests.integration.running_api import RunningApi, running_api, without_servers
from tests.unit.api.engines import engine_info

LIMIT = 1_000_000


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    settings = without_servers(tmp_path_factory.mktemp("farm"), max_body_bytes=LIMIT)
    with running_api(settings) as api:
        api.publish(engine_info())
        yield api


@pytest.fixture
def wire(api: RunningApi) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", api.port), timeout=10) as wire:
        yield wire


def head(*lines: str) -> bytes:
    fixed = ("POST /v1/jobs HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    return "\r\n".join((*fixed, *lines, "", "")).encode()


def read_answer(wire: socket.socket) -> tuple[int, bytes]:
    """Everything until the server closes."""
    received = b""
    while data := wire.recv(65_536):
        received += data
    return int(received.split(b" ", 2)[1]), received


def test_a_body_declared_too_large_is_refused_before_any_of_it_is_sent(
    wire: socket.socket,
) -> None:
    wire.sendall(head(f"Content-Length: {LIMIT + 1}"))
    wire.settimeout(1.5)  # the answer does not wait for the body
    assert b" 413 " in wire.recv(65_536)


def test_a_client_that_asks_before_sending_is_not_invited_to_send(wire: socket.socket) -> None:
    wire.sendall(head(f"Content-Length: {LIMIT * 40}", "Expect: 100-continue"))
    status, answer = read_answer(wire)
    assert status == 413
    assert b"body-too-large" in answer
    assert b"100 Continue" not in answer


@pytest.mark.parametrize("declared", ["9" * 5_000, "0" * 20 + str(LIMIT + 1)])
def test_an_absurd_length_is_only_a_large_one(wire: socket.socket, declared: str) -> None:
    wire.sendall(head(f"Content-Length: {declared}", "Expect: 100-continue"))
    assert read_answer(wire)[0] in {400, 413}


def test_a_client_busy_sending_too_much_still_reads_the_answer(api: RunningApi) -> None:
    for size in (LIMIT + 1, LIMIT * 20):
        answer = api.client.post(
            "/v1/jobs", content=b"x" * size, headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")
        assert answer.json()["max_bytes"] == LIMIT


def test_a_body_without_a_length_is_counted_and_cut_off(api: RunningApi) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(400):
            sent += 100_000
            yield b" " * 100_000

    answer = api.client.post(
        "/v1/jobs", content=pieces(), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")


def test_an_endless_body_is_left_after_a_while(wire: socket.socket) -> None:
    wire.sendall(head("Transfer-Encoding: chunked"))
    piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    began = time.monotonic()
    with contextlib.suppress(OSError):  # reset, or broken pipe
        while time.monotonic() - began < 30:
            wire.sendall(piece)
            time.sleep(0.001)
    assert time.monotonic() - began < 15


def test_a_body_of_exactly_the_limit_is_read(api: RunningApi) -> None:
    body = json.dumps({"text": "Fine.", "title": ""}).encode()
    body += b" " * (LIMIT - len(body))
    headers = {"Content-Type": "application/json"}
    assert api.client.post("/v1/jobs", content=body, headers=headers).status_code == 201
    chunked = api.client.post("/v1/jobs", content=iter([body[:10], body[10:]]), headers=headers)
    assert chunked.status_code == 201


def test_a_client_that_hangs_up_half_way_leaves_nothing(
    api: RunningApi, wire: socket.socket
) -> None:
    before = api.rows()
    wire.sendall(head("Content-Length: 1000") + b'{"text": "Hello')
    wire.close()
    assert api.client.get("/livez").status_code == 200
    assert api.rows() == before


def test_thirty_slow_clients_do_not_keep_others_waiting(api: RunningApi) -> None:
    wires = [socket.create_connection(("127.0.0.1", api.port)) for _ in range(30)]
    try:
        for wire in wires:
            wire.sendall(head("Content-Length: 1000") + b"{")
        began = time.monotonic()
        assert api.submit().status_code == 201
        assert time.monotonic() - began < 5
    finally:
        for wire in wires:
            wire.close()
