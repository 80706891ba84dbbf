"""`python -m cli.engine_probe NAME [OPTIONS]`: loads one engine offline and lets it speak.

All network is refused to it. Prints one JSON object: the engine's info and the seconds it took, or
`error` and, where it is known, what would `mend` it. In a process of its own, so that a crash of a
native library is a finding like any other.
"""

import json
import socket
import sys
import time

from shared.errors import NotFoundError, SetupError, UsageError
from worker.engines.base import Utterance
from worker.engines.registry import build


def probe(name: str, options: dict[str, object]) -> dict[str, object]:
    """Build the engine and say one word."""
    began_s = time.monotonic()
    engine = build(name, options)
    loaded_s = time.monotonic() - began_s
    info = engine.info
    voice = info.voices[0]
    word = Utterance("probe", "One.", voice.id, voice.language, speed=1.0, seed=1)
    engine.admit([word])
    samples = 0
    final = False
    while not final:
        for chunk in engine.step():
            if chunk.error:
                raise RuntimeError(chunk.error)
            samples += len(chunk.samples)
            final = final or chunk.final
    return {
        "info": info.model_dump(mode="json"),
        "load_s": round(loaded_s, 3),
        "audio_s": round(samples / info.sample_rate_hz, 3),
    }


def refuse_network() -> None:
    """Make every connection but to Unix sockets fail in this process."""
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: object) -> None:
        if self.family != socket.AF_UNIX:
            raise OSError(f"the engine reached for the network: {address!r}")
        connect(self, address)  # type: ignore[arg-type]

    socket.socket.connect = local_only  # type: ignore[assignment,method-assign]


def mend_of(error: Exception) -> str:
    """What puts an engine's failure right, by the error's class; empty when nobody knows."""
    match error:
        case SetupError():
            return error.mend
        case NotFoundError():
            choices = error.fields.get("choices")
            names = ", ".join(map(str, choices)) if isinstance(choices, list) else ""
            return f"name one that is installed with --engine or VOXFARM_ENGINES: {names}"
        case UsageError():
            return "correct VOXFARM_ENGINE_OPTIONS"
        case _:
            return ""


def main(name: str, options: str = "{}") -> None:
    """Probe and tell; `options` is the JSON object that the engine is built with."""
    refuse_network()
    try:
        found = probe(name, json.loads(options))
    except Exception as error:  # noqa: BLE001 - told to the caller, who asked for it
        found = {"error": f"{type(error).__name__}: {error}", "mend": mend_of(error)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
