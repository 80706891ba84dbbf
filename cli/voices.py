"""`voxfarm voices`: what can speak, as the running farm says, else as the installation does."""

import json
import sys

import typer

from cli import options
from cli.checks import probe
from cli.connect import connected
from cli.errors import FarmAwayError
from cli.exits import told
from cli.farm_settings import load_settings
from cli.replies import Voice
from cli.words import columns
from shared.errors import SetupError
from shared.settings import Settings
from shared.voices import EngineInfo

PATIENCE_S = 5.0


def voices_command(
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
            default=engine == settings.default_engine and voice.id == info.default_voice,
        )
        for voice in info.voices
    ]
