"""`voxfarm render` as a user meets it: a real process, a scripted farm, exit codes and screens."""

import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from cli.ports import free_port
from tests.unit.cli.farm_double import (
    Answer,
    FarmDouble,
    Handler,
    a_job,
    a_progress,
    farm_double,
    refuses,
    says,
    streams,
)

AUDIO = b"RIFF" + bytes(200_000)
MANIFEST = b"{}"
VOXFARM = [sys.executable, "-m", "cli"]


@pytest.fixture
def farm() -> Iterator[FarmDouble]:
    with farm_double() as farm:
        farm.on("POST", "/v1/jobs", says(a_job("accepted"), 201))
        farm.on(
            "GET",
            "/v1/jobs/j1/events",
            streams(
                ("progress", a_job("planning")),
                ("progress", a_job("rendering")),
                ("end", a_job("completed")),
            ),
        )
        deliver(farm, {"A title.wav": AUDIO, "manifest.json": MANIFEST})
        yield farm


def deliver(farm: FarmDouble, contents: dict[str, bytes]) -> None:
    files = list[dict[str, object]]()
    for number, (name, content) in enumerate(contents.items()):
        is_audio = not name.endswith(".json")
        farm.on("GET", f"/f/{number}", gives(content))
        files.append(
            {
                "name": name,
                "kind": "audio" if is_audio else "manifest",
                "content_type": "x/y",
                "bytes": len(content),
                "duration_s": 12.0 if is_audio else None,
                "sha256": hashlib.sha256(content).hexdigest(),
                "url": f"{farm.url}/f/{number}",
            }
        )
    farm.on("GET", "/v1/jobs/j1/deliverables", says({"job_id": "j1", "files": files}))


def gives(content: bytes) -> Answer:
    return lambda request: request.send_whole(200, content)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "book.txt").write_text("One.\nTwo 三.\n", encoding="utf-8")
    return tmp_path


def voxfarm(place: Path, *argv: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*VOXFARM, *argv],
        cwd=place,
        env=environment(place),
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err
    return subprocess.CompletedProcess(argv, done.returncode, out, err)


def environment(place: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VOXFARM_")}
    return kept | {"VOXFARM_DATA_DIR": str(place / "data"), "COLUMNS": "200"}


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_a_text_becomes_a_file_with_its_manifest_and_an_account(
    farm: FarmDouble, place: Path
) -> None:
    done = voxfarm(place, "render", "book.txt", "--format", "wav", "--url", farm.url)
    assert done.returncode == 0, done.stderr
    assert (place / "book.wav").read_bytes() == AUDIO
    assert names(place) == ["book.manifest.json", "book.txt", "book.wav"]
    first, _, total, spans = done.stdout.splitlines()
    assert first == "book.wav  0:12  200.0 kB"
    assert total.startswith("0:12 of audio in ")
    assert [part.split()[0] for part in spans.split(" · ")] == [
        "start",
        "plan",
        "render",
        "assemble",
        "download",
    ]
    asked = json.loads(farm.asked("/v1/jobs")[0].body)
    assert asked["text"] == "One.\nTwo 三.\n"
    assert asked["title"] == "book"


def test_a_wish_for_time_and_for_new_audio_reaches_the_farm(farm: FarmDouble, place: Path) -> None:
    wishes = ("--retention", "12h", "--no-reuse")
    done = voxfarm(place, "render", "book.txt", *wishes, "--url", farm.url)
    assert done.returncode == 0, done.stderr
    asked = json.loads(farm.asked("/v1/jobs")[0].body)
    assert (asked["retention_s"], asked["reuse"]) == (12 * 3_600, False)


@pytest.mark.parametrize("time", ["59m", "32d", "soon", "-1h", "1.5d", "", "\uff17d", "9" * 12])
def test_a_time_that_no_farm_keeps_is_refused_before_anything_is_sent(
    farm: FarmDouble, place: Path, time: str
) -> None:
    done = voxfarm(place, "render", "book.txt", f"--retention={time}", "--url", farm.url)
    assert done.returncode == 2
    assert "between 1h and 31d" in done.stderr
    assert farm.seen == []


@pytest.mark.parametrize(
    ("wishes", "made"),
    [
        ([], "mp3"),
        (["--out", "news.wav"], "wav"),
        (["--out", "news.FLAC"], "flac"),
        (["--out", "news.mp3", "--format", "mp3"], "mp3"),
        (["--out", "news"], "mp3"),
        (["--out", "news.v2", "--format", "flac"], "flac"),
        (["--out", "news.wav", "--chapters"], "mp3"),
        (["--out", "there.wav"], "mp3"),  # a folder that exists
    ],
)
def test_the_format_is_what_the_file_is_named(
    farm: FarmDouble, place: Path, wishes: list[str], made: str
) -> None:
    (place / "there.wav").mkdir()
    done = voxfarm(place, "render", "book.txt", *wishes, "--url", farm.url)
    assert done.returncode == 0, done.stderr
    assert json.loads(farm.asked("/v1/jobs")[0].body)["format"] == made
    assert "will hold" not in done.stderr


def test_a_name_that_contradicts_the_format_is_refused_before_anything_is_sent(
    farm: FarmDouble, place: Path
) -> None:
    wishes = ("--out", "news.wav", "--format", "mp3", "--url", farm.url, "--json")
    done = voxfarm(place, "render", "book.txt", *wishes)
    assert done.returncode == 2
    assert "news.wav would be named wav and hold mp3" in done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "format-mismatch"
    assert farm.seen == []


def test_a_suffix_that_names_nothing_we_make_is_kept_and_its_content_is_said(
    farm: FarmDouble, place: Path
) -> None:
    done = voxfarm(place, "render", "book.txt", "--out", "news.ogg", "--url", farm.url)
    assert done.returncode == 0
    assert "news.ogg will hold mp3" in done.stderr
    assert (place / "news.ogg").read_bytes() == AUDIO


def test_a_download_is_not_named_what_its_job_did_not_make(farm: FarmDouble, place: Path) -> None:
    farm.on("GET", "/v1/jobs/j1", says(a_job("completed", format="flac")))
    done = voxfarm(place, "jobs", "download", "j1", "--out", "news.mp3", "--url", farm.url)
    assert done.returncode == 2
    assert "news.mp3 would be named mp3 and hold flac" in done.stderr
    assert names(place) == ["book.txt"]


def test_without_a_terminal_progress_is_plain_lines(farm: FarmDouble, place: Path) -> None:
    done = voxfarm(place, "render", "book.txt", "--url", farm.url)
    assert "\x1b" not in done.stderr
    assert "rendering  50%  5/10 segments" in done.stderr


def test_json_is_all_that_stdout_holds(farm: FarmDouble, place: Path) -> None:
    done = voxfarm(
        place,
        "render",
        "-",
        "--url",
        farm.url,
        "--json",
        "--quiet",
        "--out",
        "x.wav",
        stdin=b"One.",
    )
    told = json.loads(done.stdout)
    assert done.stderr == ""
    assert told["state"] == "completed"
    assert told["audio_s"] == 12.0
    assert [file["path"] for file in told["files"]] == ["x.wav", "x.manifest.json"]


def test_chapters_are_asked_for_and_come_in_a_folder(farm: FarmDouble, place: Path) -> None:
    deliver(farm, {"01.wav": AUDIO, "02.wav": AUDIO[:7], "manifest.json": MANIFEST})
    done = voxfarm(place, "render", "book.txt", "--chapters", "--url", farm.url)
    assert done.returncode == 0, done.stderr
    assert names(place / "book") == ["01.wav", "02.wav", "manifest.json"]
    assert json.loads(farm.asked("/v1/jobs")[0].body)["split_chapters"] is True


def test_a_refusal_names_the_place_in_the_text(farm: FarmDouble, place: Path) -> None:
    farm.on("POST", "/v1/jobs", refuses(422, "Cannot speak Han.", "unspeakable", offset=9))
    done = voxfarm(place, "render", "book.txt", "--url", farm.url)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "voxfarm: Cannot speak Han. (line 2, column 5)"
    told = json.loads(voxfarm(place, "render", "book.txt", "--url", farm.url, "--json").stdout)
    assert told["error"]["code"] == "unspeakable"
    assert told["error"]["line"] == 2


def test_a_job_with_gaps_delivers_its_files_and_says_so(farm: FarmDouble, place: Path) -> None:
    partial = a_job("partial", progress=a_progress(segments_quarantined=2))
    farm.on("GET", "/v1/jobs/j1/events", streams(("end", partial)))
    done = voxfarm(place, "render", "book.txt", "--format", "wav", "--url", farm.url)
    assert done.returncode == 5
    assert (place / "book.wav").read_bytes() == AUDIO
    assert "2 of 10 segments missing" in done.stderr


def test_a_failed_job_leaves_nothing_and_says_why(farm: FarmDouble, place: Path) -> None:
    failed = a_job("failed", error={"code": "too-old", "message": "It took too long."})
    farm.on("GET", "/v1/jobs/j1/events", streams(("end", failed)))
    done = voxfarm(place, "render", "book.txt", "--url", farm.url)
    assert done.returncode == 1
    assert "job j1 is failed: It took too long. (too-old)" in done.stderr
    assert names(place) == ["book.txt"]


def test_what_is_there_is_not_overwritten_and_no_job_is_made(farm: FarmDouble, place: Path) -> None:
    (place / "book.mp3").write_text("precious")
    done = voxfarm(place, "render", "book.txt", "--url", farm.url)
    assert done.returncode == 2
    assert "pass --force" in done.stderr
    assert farm.seen == []
    assert (place / "book.mp3").read_text() == "precious"


def test_a_farm_that_is_not_there_is_said_so(place: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = voxfarm(place, "render", "book.txt", "--url", url, "--patience", "0.2")
    assert done.returncode == 3
    assert f"no farm answers at {url}" in done.stderr


def test_a_restart_of_the_farm_in_mid_render_is_waited_out(farm: FarmDouble, place: Path) -> None:
    farm.on(
        "GET",
        "/v1/jobs/j1/events",
        streams(("progress", a_job("rendering")), cut=True),
        refuses(503, "starting", "not-ready"),
        streams(("end", a_job("completed"))),
    )
    assert voxfarm(place, "render", "book.txt", "--url", farm.url).returncode == 0


def never_ends(request: Handler, until: Event) -> None:
    view = f"event: progress\ndata: {json.dumps(a_job('rendering'))}\n\n".encode()
    request.send_response(200)
    request.send_header("Content-Type", "text/event-stream")
    request.end_headers()
    request.wfile.write(view)
    request.wfile.flush()
    until.wait(30)
    request.close_connection = True


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_asks_the_farm_to_cancel(
    farm: FarmDouble, place: Path, number: signal.Signals
) -> None:
    over = Event()
    farm.on("GET", "/v1/jobs/j1/events", lambda request: never_ends(request, over))
    farm.on("POST", "/v1/jobs/j1/cancel", says(a_job("cancelled")))
    command = [*VOXFARM, "render", "book.txt", "--url", farm.url]
    with subprocess.Popen(
        command, cwd=place, env=environment(place), stderr=subprocess.PIPE, text=True
    ) as render:
        wait_until(lambda: bool(farm.asked("/v1/jobs/j1/events")))
        time.sleep(0.2)  # it is reading events now
        render.send_signal(number)
        assert render.wait(20) == 130
        assert render.stderr is not None
        said = render.stderr.read()
    over.set()
    assert "job j1 is cancelled" in said
    assert "Traceback" not in said
    assert len(farm.asked("/v1/jobs/j1/cancel")) == 1


def test_a_second_interrupt_leaves_at_once(farm: FarmDouble, place: Path) -> None:
    over = Event()
    farm.on("GET", "/v1/jobs/j1/events", lambda request: never_ends(request, over))
    farm.on("POST", "/v1/jobs/j1/cancel", lambda request: never_ends(request, over))
    command = [*VOXFARM, "render", "book.txt", "--url", farm.url]
    with subprocess.Popen(command, cwd=place, env=environment(place)) as render:
        wait_until(lambda: bool(farm.asked("/v1/jobs/j1/events")))
        time.sleep(0.2)
        render.send_signal(signal.SIGINT)
        wait_until(lambda: bool(farm.asked("/v1/jobs/j1/cancel")))
        time.sleep(0.1)
        began_s = time.monotonic()
        render.send_signal(signal.SIGINT)
        assert render.wait(20) == 130
        assert time.monotonic() - began_s < 3
    over.set()


def on_a_terminal(place: Path, env: dict[str, str], *argv: str) -> str:
    """Run with a terminal as stderr; return what it showed."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [*VOXFARM, *argv], cwd=place, env=env, stdout=subprocess.DEVNULL, stderr=terminal
    ) as process:
        os.close(terminal)
        shown = b""
        try:
            while chunk := os.read(controller, 65536):
                shown += chunk
        except OSError:  # Linux ends a terminal's output so
            pass
        os.close(controller)
        assert process.wait(20) == 0
    return shown.decode()


def test_a_terminal_sees_a_bar_and_no_colour_is_honoured(farm: FarmDouble, place: Path) -> None:
    env = environment(place) | {"TERM": "xterm-256color"}
    argv = ("render", "book.txt", "--url", farm.url, "--force")
    shown = on_a_terminal(place, env, *argv)
    assert "\x1b[38" in shown or "\x1b[3" in shown
    plain = on_a_terminal(place, env | {"NO_COLOR": "1"}, *argv)
    assert "\x1b[38" not in plain
    assert "\x1b[31" not in plain


def test_the_title_and_a_word_of_markup_are_shown_as_they_are(
    farm: FarmDouble, place: Path
) -> None:
    farm.on(
        "GET", "/v1/jobs", says({"data": [a_job(title="[red]A[/] :smile:")], "next_cursor": None})
    )
    listed = voxfarm(place, "jobs", "list", "--url", farm.url)
    assert "[red]A[/] :smile:" in listed.stdout
    assert json.loads(voxfarm(place, "jobs", "list", "--url", farm.url, "--json").stdout)


@pytest.mark.parametrize(
    ("state", "code"), [("completed", 0), ("partial", 5), ("failed", 1), ("cancelled", 1)]
)
def test_waiting_tells_by_its_exit_code_how_the_job_ended(
    farm: FarmDouble, place: Path, state: str, code: int
) -> None:
    farm.on("GET", "/v1/jobs/j1", says(a_job("rendering")))
    farm.on("GET", "/v1/jobs/j1/events", streams(("end", a_job(state))))
    done = voxfarm(place, "jobs", "wait", "j1", "--url", farm.url, "--quiet")
    assert done.returncode == code
    assert done.stdout == f"job j1 is {state}\n"


def test_files_are_fetched_later_too(farm: FarmDouble, place: Path) -> None:
    farm.on("GET", "/v1/jobs/j1", says(a_job("completed", title="A/title")))
    done = voxfarm(place, "jobs", "download", "j1", "--url", farm.url, "--quiet")
    assert done.returncode == 0, done.stderr
    assert (place / "A_title.wav").read_bytes() == AUDIO


def test_a_poor_terminal_and_a_broken_pipe_end_no_command_with_a_trace(
    farm: FarmDouble, place: Path
) -> None:
    farm.on("GET", "/v1/jobs", says({"data": [a_job(title="世界")] * 500, "next_cursor": None}))
    env = environment(place) | {"PYTHONIOENCODING": "ascii"}
    shell = f"{sys.executable} -m cli jobs list --limit 500 --url {farm.url} | head -n 1"
    done = subprocess.run(
        ["/bin/sh", "-c", shell], cwd=place, env=env, capture_output=True, check=False
    )
    assert done.stdout.startswith(b"JOB")
    assert done.stderr == b""


def test_a_job_is_shown_with_its_files(farm: FarmDouble, place: Path) -> None:
    farm.on("GET", "/v1/jobs/j1", says(a_job("completed")))
    done = voxfarm(place, "jobs", "show", "j1", "--url", farm.url)
    assert "state       completed" in done.stdout
    assert "A title.wav  0:12  200.0 kB" in done.stdout
    assert "audio       0:12" in done.stdout  # as delivered; 20 s were spoken


def test_while_a_job_has_no_file_what_is_spoken_so_far_is_shown(
    farm: FarmDouble, place: Path
) -> None:
    farm.on("GET", "/v1/jobs/j1", says(a_job("rendering")))
    done = voxfarm(place, "jobs", "show", "j1", "--url", farm.url)
    assert "audio       0:20" in done.stdout


def test_commands_that_need_a_farm_say_how_to_start_one(place: Path) -> None:
    done = voxfarm(place, "jobs", "list")
    assert done.returncode == 3
    assert "start one with: voxfarm up" in done.stderr
    assert not (place / "data").exists()


@pytest.mark.parametrize("argv", [["render"], ["jobs", "show"], ["nothing"], ["render", "--x"]])
def test_a_wrong_command_line_is_exit_code_2(place: Path, argv: list[str]) -> None:
    assert voxfarm(place, *argv).returncode == 2


def test_a_wrong_setting_is_named(place: Path) -> None:
    done = subprocess.run(
        [*VOXFARM, "up"],
        env=environment(place) | {"VOXFARM_LEASE_S": "soon"},
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
    )
    assert done.returncode == 2
    assert "VOXFARM_LEASE_S" in done.stderr
