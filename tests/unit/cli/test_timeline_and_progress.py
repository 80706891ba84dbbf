"""What people see while they wait, and the account at the end."""

import io

import pytest
from rich.console import Console

from cli.progress import Lines, Silent, show_bytes, show_job
from cli.rendering import Rendered
from cli.replies import Job
from cli.timeline import Timeline
from cli.words import TIMES
from tests.unit.cli.farm_double import a_job, a_progress


def job(state: str, **progress: object) -> Job:
    return Job.model_validate(a_job(state, progress=a_progress(**progress)))


class Watch:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_time_is_accounted_to_the_stage_it_was_spent_in() -> None:
    watch = Watch()
    timeline = Timeline(watch)
    timeline.begin("plan")
    story = [
        (0.5, job("accepted")),
        (0.5, job("planning")),
        (4.0, job("rendering", segments_done=3)),
        (6.0, job("rendering", segments_done=9, segments_quarantined=1)),
        (2.0, job("assembling")),
        (1.0, job("completed")),
    ]
    for passes_s, view in story:
        watch.now_s += passes_s
        timeline.see(view)
    timeline.begin("download")
    watch.now_s += 0.25
    timeline.end()
    watch.now_s += 99
    assert timeline.spans_s() == {"plan": 5.0, "render": 6.0, "assemble": 3.0, "download": 0.25}


def test_a_job_that_goes_back_keeps_its_first_beginnings() -> None:
    watch = Watch()
    timeline = Timeline(watch)
    for state in ("assembling", "rendering", "planning", "assembling"):
        watch.now_s += 1
        timeline.see(job(state))
    assert timeline.since_s("assemble") == 3.0
    assert timeline.since_s("render") == 0.0


def test_lines_come_when_the_work_changes_and_every_five_seconds() -> None:
    written = io.StringIO()
    watch = Watch()
    lines = Lines(Console(file=written, width=200), watch)
    with lines:
        for fraction in range(80):
            lines.show("rendering", fraction / 80, "[bold]x")
            watch.now_s += 0.125
        lines.show("assembling", 1.0)
    assert written.getvalue().splitlines() == [
        "rendering   0%  [bold]x",
        "rendering  50%  [bold]x",
        "assembling 100%",
    ]


@pytest.mark.parametrize(
    ("view", "rendering_s", "said"),
    [
        (job("planning"), 0.0, "planning   0%  1,234 characters"),
        (
            job("rendering", parts_total=3, parts_done=1),
            4.0,
            "rendering  50%  5/10 segments · 1/3 parts · 0:20 of audio · 5 x real · 0:12 to go",
        ),
        (
            job("assembling", eta_s=None, segments_quarantined=2, audio_s=0.0),
            0.0,
            "assembling  50%  5/10 segments · 2 given up",
        ),
        (job("completed"), 9.0, "completed 100%"),
    ],
)
def test_a_job_is_told_in_figures(view: Job, rendering_s: float, said: str) -> None:
    written = io.StringIO()
    show_job(Lines(Console(file=written, width=300)), view, rendering_s=rendering_s)
    assert written.getvalue().strip() == said.replace("5 x real", f"5.0 {TIMES} real time")


def test_an_empty_download_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    written = io.StringIO()
    show_bytes(Lines(Console(file=written)), "x.mp3", 0, 0)
    assert "100%" in written.getvalue()
    with Silent() as silent:
        silent.say("x")
        silent.show("x", 0.5)
    assert capsys.readouterr() == ("", "")


def test_a_render_says_how_much_of_it_was_there_already() -> None:
    def told(**reuse: int) -> list[str]:
        job = Job.model_validate(a_job("completed", reuse={"parts": 0} | reuse))
        return list(Rendered(job, (), {"render": 1.0}, wall_s=2.0).lines())

    assert not any("already" in line for line in told(segments=0, of=38))
    assert told(segments=35, of=38)[-1].startswith("35 of 38 segments were there already")
