"""Shows how a job goes on: a live bar on a terminal, plain lines elsewhere, or nothing.

All of it goes to stderr, so that stdout holds results alone.
"""

import time
from collections.abc import Callable
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.text import Text

from cli.replies import Job
from cli.words import clock_time, size, times_real_time
from shared.jobs import JobState

LINE_EVERY_S = 5.0


class Display(Protocol):
    """Where a command says what is going on."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(self, *_: object) -> None:
        """Stop showing; the screen is left clean."""
        ...

    def say(self, line: str) -> None:
        """Tell one thing, once."""
        ...

    def show(self, doing: str, fraction: float, details: str = "") -> None:
        """Tell what is being done now, how far it is (0 to 1) and a few figures."""
        ...


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, line: str) -> None:
        """Say nothing."""

    def show(self, doing: str, fraction: float, details: str = "") -> None:
        """Show nothing."""


class Lines(Silent):
    """A plain line when what is done changes, and at most every 5 s while it goes on."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._doing = ""
        self._shown_at_s = 0.0

    def say(self, line: str) -> None:
        """Print the line."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def show(self, doing: str, fraction: float, details: str = "") -> None:
        """Print a line if it is time for one."""
        now_s = self._clock()
        if doing == self._doing and now_s - self._shown_at_s < LINE_EVERY_S:
            return
        self._doing, self._shown_at_s = doing, now_s
        self.say(f"{doing} {fraction:4.0%}  {details}".rstrip())


class Bar:
    """A live bar at the bottom of a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<12}", markup=False),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:3.0f} %"),
            TextColumn("{task.fields[details]}", markup=False),
            console=console,
            transient=True,
            refresh_per_second=8,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        """Print the line above the bar."""
        self._progress.console.print(Text(line), soft_wrap=True)

    def show(self, doing: str, fraction: float, details: str = "") -> None:
        """Move the bar."""
        if self._task is None:
            self._task = self._progress.add_task(doing, total=1.0, details=details)
        self._progress.update(self._task, description=doing, completed=fraction, details=details)


def display(*, quiet: bool) -> Display:
    """Choose how to show progress on this stderr."""
    console = Console(stderr=True)
    if quiet:
        return Silent()
    return Bar(console) if console.is_terminal else Lines(console)


def show_job(to: Display, job: Job, *, rendering_s: float) -> None:
    """Show where a job stands; `rendering_s` is how long it has been rendered by now."""
    at = job.progress
    match job.state:
        case JobState.ACCEPTED | JobState.PLANNING:
            to.show("planning", 0.0, f"{job.characters:,} characters")
        case JobState.RENDERING | JobState.ASSEMBLING:
            doing = "rendering" if job.state is JobState.RENDERING else "assembling"
            figures = [f"{at.segments_done:,}/{at.segments_total:,} segments"]
            if at.parts_total > 1:
                figures.append(f"{at.parts_done}/{at.parts_total} parts")
            if at.audio_s > 0:
                figures.append(f"{clock_time(at.audio_s)} of audio")
            if at.audio_s > 0 and rendering_s > 1:
                figures.append(times_real_time(at.audio_s, rendering_s))
            if at.eta_s is not None:
                figures.append(f"{clock_time(at.eta_s)} to go")
            if at.segments_quarantined:
                figures.append(f"{at.segments_quarantined} given up")
            to.show("paused" if job.paused else doing, at.fraction, " · ".join(figures))
        case _:
            to.show(job.state.value, 1.0)


def show_bytes(to: Display, name: str, have_bytes: int, all_bytes: int) -> None:
    """Show how much of a download is here."""
    fraction = have_bytes / all_bytes if all_bytes else 1.0
    to.show("downloading", fraction, f"{name}  {size(have_bytes)} of {size(all_bytes)}")
