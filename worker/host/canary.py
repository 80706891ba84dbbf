"""Asks an engine to say a phrase that is known to be good. Knows no socket.

Used to warm an engine up, and to tell a broken engine from an utterance that it cannot say.
"""

from shared.errors import FatalError
from worker.engines.base import Engine, Utterance

CANARY_TEXT = "1, 2, 3."  # readable in every language
_MAX_STEPS = 10_000


class BrokenEngineError(FatalError):
    """The engine can no longer speak anything; only a new process may help."""


def speak_canary(engine: Engine) -> None:
    """Speak the phrase on an engine that holds nothing; BrokenEngineError when it does not."""
    try:
        spoken = _speak(engine)
    except Exception as error:
        raise BrokenEngineError(
            f"{engine.info.name} cannot say {CANARY_TEXT!r}: {type(error).__name__}"
        ) from error
    if not spoken:
        raise BrokenEngineError(f"{engine.info.name} does not say {CANARY_TEXT!r}")


def _speak(engine: Engine) -> bool:
    utterance = Utterance(
        id="canary",
        text=CANARY_TEXT,
        voice=engine.info.default_voice,
        language=engine.info.languages[0],
        speed=1.0,
        seed=0,
    )
    engine.admit([utterance])
    for _ in range(_MAX_STEPS):
        for chunk in engine.step():
            if chunk.error is not None or chunk.final:
                return chunk.error is None
    return False
