"""The embedded servers as the farm meets them: killed, crowded out, moved, left behind."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest
import redis

from cli.ports import LOOPBACK
from cli.servers.local_server import LocalServer
from cli.servers.ports import free_ports, ports_as_before
from cli.servers.seaweed import SeaweedServer
from cli.servers.spawn import spawn
from cli.servers.state import ServerFolder
from cli.servers.valkey import ValkeyServer
from shared.errors import SetupError, TransientError
from shared.settings import Settings
from shared.storage import S3Store

KINDS = pytest.mark.parametrize("kind", [ValkeyServer, SeaweedServer])


@contextmanager
def running(server: LocalServer) -> Iterator[LocalServer]:
    try:
        yield server.start()
    finally:
        server.stop(grace_s=0)


def wait_until(condition: Callable[[], bool], within_s: float = 10.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def place_of(server: LocalServer) -> str:
    return server.url if isinstance(server, ValkeyServer) else server.endpoint  # type: ignore[attr-defined]


def kill(server: LocalServer) -> None:
    assert server.process is not None
    server.process.kill()
    server.process.wait()


def client_of(server: ValkeyServer) -> "redis.Redis":
    return redis.Redis.from_url(server.url, socket_timeout=5)


def store_of(server: SeaweedServer, bucket: str = "books") -> S3Store:
    settings = {
        "s3_endpoint": server.endpoint,
        "s3_access_key": server.access_key,
        "s3_secret_key": server.secret_key,
        "s3_bucket": bucket,
    }
    return S3Store(Settings.model_validate(settings))


def could_be_read(store: S3Store, key: str) -> bool:
    """False while the store asks to be asked again."""
    try:
        store.get(key)
    except TransientError:
        return False
    return True


@KINDS
def test_a_server_listens_on_loopback_only(kind: type[LocalServer], tmp_path: Path) -> None:
    with running(kind(tmp_path)) as server:
        assert server.process is not None
        found = psutil.Process(server.process.pid).net_connections(kind="inet")
        listening = [c.laddr.ip for c in found if c.status == psutil.CONN_LISTEN]
        listening += [c.laddr.ip for c in found if c.type == socket.SOCK_DGRAM]
        assert listening
        assert set(listening) == {LOOPBACK}


@KINDS
def test_what_the_folder_holds_is_for_its_owner_only(
    kind: type[LocalServer], tmp_path: Path
) -> None:
    with running(kind(tmp_path / "new" / "server")) as server:
        assert server.folder.stat().st_mode & 0o077 == 0
        for secret in ("secrets.json", "valkey.conf", "s3.json"):
            if (file := server.folder / secret).exists():
                assert file.stat().st_mode & 0o077 == 0
        assert server.process is not None
        command_line = " ".join(psutil.Process(server.process.pid).cmdline())
        words = ServerFolder(server.folder).secrets(server.secret_names).values()
        assert not any(word in command_line for word in words)


def test_valkey_keeps_what_it_said_ok_to_and_its_address_over_kill_9(tmp_path: Path) -> None:
    with running(ValkeyServer(tmp_path)) as server:
        assert isinstance(server, ValkeyServer)
        with closing(client_of(server)) as client:
            client.set("queue", "sentence")
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        url = server.url
        kill(server)
        assert not server.alive()
        assert server.start().url == url
        with closing(client_of(server)) as client:
            assert client.get("queue") == b"sentence"


def test_seaweed_keeps_what_it_said_ok_to_and_its_address_over_kill_9(tmp_path: Path) -> None:
    with running(SeaweedServer(tmp_path)) as server:
        assert isinstance(server, SeaweedServer)
        store = store_of(server)
        store.ensure_bucket()
        for n in range(20):
            store.put(f"k{n}", bytes([n]) * 50_000, content_type="audio/flac")
        before = (server.endpoint, server.access_key, server.secret_key)
        kill(server)
        server.start()
        assert (server.endpoint, server.access_key, server.secret_key) == before
        wait_until(lambda: could_be_read(store, "k0"))  # its volumes come after its port
        assert all(store.get(f"k{n}") == bytes([n]) * 50_000 for n in range(20))


def test_strangers_are_refused(tmp_path: Path) -> None:
    with running(ValkeyServer(tmp_path / "valkey")) as valkey:
        assert isinstance(valkey, ValkeyServer)
        url = "redis://" + valkey.url.split("@")[1]
        with (
            closing(redis.Redis.from_url(url)) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()
    with running(SeaweedServer(tmp_path / "seaweed")) as seaweed:
        assert isinstance(seaweed, SeaweedServer)
        store = store_of(seaweed)
        store.ensure_bucket()
        store.put("secret", b"x", content_type="text/plain")
        assert seaweed.process is not None
        found = psutil.Process(seaweed.process.pid).net_connections(kind="inet")
        for port in {c.laddr.port for c in found if c.status == psutil.CONN_LISTEN}:
            for path in ("/books/secret", "/buckets/books/secret", "/buckets/books/"):
                with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=5)) as connection:
                    try:
                        connection.request("GET", path)
                        assert connection.getresponse().status >= 400, (port, path)
                    except (OSError, http.client.HTTPException):
                        continue  # a gRPC port speaks no HTTP/1


@KINDS
def test_a_server_whose_port_was_taken_meanwhile_moves_and_says_so(
    kind: type[LocalServer], tmp_path: Path
) -> None:
    with running(kind(tmp_path)) as server:
        place = place_of(server)
        port = ServerFolder(tmp_path).ports()[server.port_names[0]]
        kill(server)
        with socket.socket() as squatter:
            squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            squatter.bind((LOOPBACK, port))
            squatter.listen()
            server.start()
            assert place_of(server) != place


def test_seaweed_moves_when_only_the_port_that_it_adds_by_itself_is_taken(tmp_path: Path) -> None:
    with running(SeaweedServer(tmp_path)) as server:
        before = ServerFolder(tmp_path).ports()
        kill(server)
        with socket.socket() as squatter:
            squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            squatter.bind((LOOPBACK, before["admin"] + 10_000))
            squatter.listen()
            server.start()
        assert ServerFolder(tmp_path).ports() != before


def test_starting_a_server_that_lives_changes_nothing_and_stopping_twice_is_harmless(
    tmp_path: Path,
) -> None:
    server = ValkeyServer(tmp_path)
    server.stop()
    with running(server):
        first = server.process
        assert server.start().process is first
        server.stop()
        assert not server.alive()
        server.stop()


def test_a_second_server_in_a_folder_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    with running(ValkeyServer(tmp_path)) as server:
        with pytest.raises(SetupError, match="another server"):
            ValkeyServer(tmp_path).start()
        assert server.alive()


def test_a_server_that_cannot_start_says_why_with_its_last_words(tmp_path: Path) -> None:
    ServerFolder(tmp_path).prepare()
    (tmp_path / "appendonlydir").write_text("no folder")
    (tmp_path / "valkey.log").write_text("what an earlier one wrote\n")
    with pytest.raises(
        SetupError, match=r"(?s)valkey could not be started.*valkey.log ends:.*append-only dir"
    ) as caught:
        ValkeyServer(tmp_path).start()
    assert "an earlier one" not in str(caught.value)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=r"file/valkey cannot be used"):
        ValkeyServer(tmp_path / "file" / "valkey").start()


def test_a_server_that_ignores_the_order_to_stop_is_killed(tmp_path: Path) -> None:
    with running(ValkeyServer(tmp_path)) as server:
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        server.stop(grace_s=0.2)
        assert not server.alive()


def test_seaweed_leaves_no_sockets_behind(tmp_path: Path) -> None:
    with running(SeaweedServer(tmp_path)):
        ports = ServerFolder(tmp_path).ports()
        ports["admin_grpc"] = ports["admin"] + 10_000
        sockets = [
            Path(f"/tmp/seaweedfs-{name.removesuffix('_grpc')}-grpc-{port}.sock")  # noqa: S108
            for name, port in ports.items()
            if name.endswith("_grpc")
        ]
        wait_until(lambda: all(path.exists() for path in sockets))
    assert not any(path.exists() for path in sockets)


def test_the_users_own_settings_for_weed_and_for_proxies_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [nobody_there] = free_ports(1)
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://{LOOPBACK}:{nobody_there}")
    monkeypatch.setenv("WEED_LEVELDB2_ENABLED", "false")
    with running(SeaweedServer(tmp_path)) as server:
        assert server.alive()


STARTS = """
import sys, time
from pathlib import Path
from cli.servers.valkey import ValkeyServer
server = ValkeyServer(Path(sys.argv[1])).start()
print(server.process.pid, flush=True)
time.sleep(600)
"""


def test_a_server_dies_with_a_killed_parent_and_its_heir_is_where_it_was(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS, str(tmp_path)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        ports = ServerFolder(tmp_path).ports()
        parent.kill()
    with running(ValkeyServer(tmp_path)):  # at once: the predecessor may still be dying
        assert ServerFolder(tmp_path).ports() == ports
        assert not alive(pid)


def test_damaged_notes_of_the_last_run_are_made_anew(tmp_path: Path) -> None:
    folder = ServerFolder(tmp_path)
    for name in ("ports.json", "secrets.json"):
        for damage in ('{"a": ', "[]", "null", '{"valkey": "x", "password": null}', "\ud7ff"):
            (tmp_path / name).write_text(damage, encoding="utf-8")
            assert folder.ports() == {}
            assert len(folder.secrets(["password"])["password"]) >= 32
    (tmp_path / "ports.json").write_text('{"a": 70000, "b": true, "c": -1, "d": 2.5}')
    assert folder.ports() == {}
    assert folder.secrets(["password"]) == folder.secrets(["password"])


def test_new_ports_are_distinct_and_unlike_ones_that_do_not_fit_the_names() -> None:
    names = [f"p{n}" for n in range(200)]
    chosen = ports_as_before({"p0": 1}, names, offsets={"p1": 10_000})
    assert len(set(chosen.values())) == len(names)
    assert ports_as_before(chosen, names, offsets={"p1": 10_000}) == chosen


def test_a_folder_named_like_our_packages_where_we_stand_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    process = spawn(["/bin/echo", "hello"], log_path=tmp_path / "log", cwd=tmp_path)
    assert process.wait(20) == 0
    assert (tmp_path / "log").read_text() == "hello\n"
