"""Which batch sizes and text lengths of an engine are measured, and which cannot be. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.errors import UsageError
from shared.voices import EngineInfo
from worker.batching.policy import HARD_MAX_BATCH
from worker.tuning.texts import LEAST_CHARS

USUAL_BATCHES = (1, 2, 4, 8)
USUAL_LENGTHS = (40, 120, 240)  # and the engine's longest, which the planner makes as well


@dataclass(frozen=True, slots=True)
class Plan:
    """Batch sizes (utterances) and text lengths (characters), each ascending and none twice."""

    batches: tuple[int, ...]
    lengths: tuple[int, ...]


def plan_for(info: EngineInfo, *, batches: Sequence[int], lengths: Sequence[int]) -> Plan:
    """What was asked for; where that is empty, the usual as far as the engine goes.

    Raises UsageError for what the engine cannot do, or was named twice, and says what it can.
    """
    most = min(info.slots, HARD_MAX_BATCH)
    least = max(LEAST_CHARS, info.min_chars)
    usual_batches = {*(size for size in USUAL_BATCHES if size < most), most}
    usual_lengths = {*(n for n in USUAL_LENGTHS if least <= n < info.max_chars), info.max_chars}
    _check("--batches", batches, 1, most, f"engine {info.name} takes batches of")
    _check("--lengths", lengths, least, info.max_chars, f"engine {info.name} is measured with")
    return Plan(
        batches=tuple(sorted(batches or usual_batches)),
        lengths=tuple(sorted(lengths or usual_lengths)),
    )


def _check(option: str, numbers: Sequence[int], least: int, most: int, what: str) -> None:
    unit = "characters" if option == "--lengths" else "sentences"
    possible = f"{least} to {most} {unit}" if least < most else f"{most} {unit.removesuffix('s')}"
    for number in numbers:
        if not least <= number <= most:
            raise UsageError(
                f"{option}: {number} is not possible: {what} {possible}",
                code="bad-option",
                least=least,
                most=most,
            )
        if numbers.count(number) > 1:
            raise UsageError(f"{option}: {number} is named twice", code="bad-option")
