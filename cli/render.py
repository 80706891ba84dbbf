"""`voxfarm render`: one text file in, audio files out."""

import json
import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from cli import options
from cli.connect import connected
from cli.exits import told
from cli.farm_settings import load_settings
from cli.fetching import require_whole
from cli.file_format import chosen_format, unkept_name
from cli.installed import require_engines
from cli.job_request import JobRequest
from cli.lifetimes import retention_s
from cli.outputs import Outputs
from cli.progress import display
from cli.ranges import sample_rate_hz
from cli.ranges import speed as speed_factor
from cli.rendering import Rendered, render, sigterm_interrupts
from cli.source import read_source
from shared.jobs import MAX_SEED, AudioFormat, NewlineMode, OnError, OnUnspeakable
from shared.settings import Settings
from shared.tiers import Tier

PATIENCE_S = 120.0

File = Annotated[
    str, typer.Argument(metavar="FILE", help="UTF-8 text file; - reads standard input.")
]
Voice = Annotated[str | None, typer.Option("--voice", "-v", help="See: voxfarm voices.")]
TierChoice = Annotated[Tier, typer.Option("--tier", help="How urgent it is.")]
EngineName = Annotated[str | None, typer.Option("--engine", help="Speech engine.")]
Language = Annotated[
    str | None, typer.Option("--language", help="Like en or zh. Default: the voice's.")
]
Format = Annotated[
    AudioFormat | None,
    typer.Option("--format", help="What files to make. Default: as --out is named, else mp3."),
]
Rate = Annotated[
    int | None,
    typer.Option("--sample-rate", metavar="HZ", parser=sample_rate_hz, help="Default: by format."),
]
Speed = Annotated[
    float,
    typer.Option(
        "--speed",
        metavar="FACTOR",
        parser=speed_factor,
        help="0.5 to 2; 1.2 speaks a fifth faster.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=MAX_SEED, help="Another seed, another rendering."),
]
Chapters = Annotated[
    bool,
    typer.Option("--chapters/--no-chapters", help="Find chapters; one file each, in a folder."),
]
Newlines = Annotated[
    NewlineMode, typer.Option("--newlines", help="prose: a newline is a space; lines: it ends one.")
]
Unspeakable = Annotated[
    OnUnspeakable,
    typer.Option("--on-unspeakable", help="Text that the engine cannot speak: refuse or skip it."),
]
Reuse = Annotated[
    bool,
    typer.Option("--reuse/--no-reuse", help="Use audio that earlier jobs made of equal text."),
]
Retention = Annotated[
    int | None,
    typer.Option(
        "--retention",
        metavar="TIME",
        parser=retention_s,
        help="How long the farm keeps files and text, like 12h or 7d. Default: the farm's.",
    ),
]
Gaps = Annotated[
    OnError,
    typer.Option(
        "--on-error", help="When a piece cannot be spoken: partial delivers the rest, fail stops."
    ),
]
Fallback = Annotated[
    str | None,
    typer.Option("--fallback-engine", help="Speaks what the engine gives up. Default: nobody."),
]
Title = Annotated[str | None, typer.Option("--title", help="Default: the file's name.")]


def render_command(
    *,
    file: File,
    voice: Voice = None,
    tier: TierChoice = Tier.STANDARD,
    engine: EngineName = None,
    language: Language = None,
    format_: Format = None,
    sample_rate: Rate = None,
    speed: Speed = 1.0,
    seed: Seed = None,
    chapters: Chapters = False,
    newlines: Newlines = NewlineMode.PROSE,
    on_unspeakable: Unspeakable = OnUnspeakable.REFUSE,
    on_error: Gaps = OnError.PARTIAL,
    fallback_engine: Fallback = None,
    title: Title = None,
    reuse: Reuse = True,
    retention: Retention = None,
    out: options.Out = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
    patience: options.Patience = PATIENCE_S,
) -> None:
    """Speak a text into audio files.

    Uses the farm at --url, else the one that runs in the data folder, else starts one for this
    call and stops it afterwards. Ctrl-C cancels the job; a second Ctrl-C leaves at once.

    **Examples**

        voxfarm render letter.txt
        voxfarm render novel.txt --chapters --format flac --out novel/
        echo "Hello, world." | voxfarm render - --out hello.wav
    """
    with told(as_json=as_json), sigterm_interrupts():
        source = read_source(file)
        outputs = Outputs(out, stem=source.stem, many=chapters, force=force)
        file_named = None if chapters else out  # with chapters it is a folder, whatever its name
        made = chosen_format(file_named, format_)
        outputs.check_early(f".{made.value}")
        request = JobRequest(
            text=source.text,
            engine=engine,
            voice=voice,
            language=language,
            tier=tier,
            format=made,
            sample_rate_hz=sample_rate,
            speed=speed,
            seed=seed,
            newlines=newlines,
            on_unspeakable=on_unspeakable,
            on_error=on_error,
            fallback_engine=fallback_engine,
            split_chapters=chapters,
            title=title or source.title,
            reuse=None if reuse else False,
            retention_s=retention,
        )
        settings = load_settings(data_dir=data)
        named = _engines_named(request, settings)

        with ExitStack() as farm:  # left last: an embedded farm takes a few seconds to stop
            with display(quiet=quiet) as screen:

                def before_start() -> None:
                    require_engines(named or settings.engines)
                    screen.show("starting", 0.0, "no farm is running yet")

                if format_ is None and (doubt := unkept_name(file_named, made)):
                    screen.say(doubt)
                connection = farm.enter_context(
                    connected(
                        url=url,
                        data_dir=settings.data_dir,
                        key=key,
                        patience_s=patience,
                        embedded_options=[word for name in named for word in ("--engine", name)],
                        on_start=before_start,
                    )
                )
                rendered = render(connection, request, source, outputs, screen, patience_s=patience)
            _tell(rendered, as_json=as_json)
        require_whole(rendered.job)


def _engines_named(request: JobRequest, settings: Settings) -> tuple[str, ...]:
    """The engines that a farm started for this job must run; empty: those of the settings."""
    if request.fallback_engine is None:
        return (request.engine,) if request.engine else ()
    both = (request.engine or settings.default_engine, request.fallback_engine)
    return tuple(dict.fromkeys(both))


def _tell(rendered: Rendered, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(rendered.as_json()) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in rendered.lines())
    sys.stdout.flush()
