"""`python -m worker.tuning ENGINE ORDER`: measures one engine, a line of JSON for each figure.

ORDER is a JSON object: options, batches, lengths (empty: the usual), repeats, parent (a process to
die with). The last line is `{"done": true}`, `{"wrong": ...}` (what was asked for is impossible) or
`{"error": ...}` (the engine failed). In a process of its own, so that a crash is a finding and
memory is the engine's; what the engine prints goes to stderr, not between the lines.
"""

import json
import os
import sys
from typing import TextIO

from shared.errors import SetupError, UsageError
from shared.lifeline import die_with_parent
from worker.engines.registry import build
from worker.host.canary import speak_canary
from worker.tuning.measuring import measure
from worker.tuning.plan import plan_for


def main(engine_name: str, order_json: str) -> None:
    """Measure and tell."""
    order = json.loads(order_json)
    die_with_parent(order["parent"])
    with _lines() as lines:
        try:
            engine = build(engine_name, order["options"])
            plan = plan_for(engine.info, batches=order["batches"], lengths=order["lengths"])
            speak_canary(engine)
            for figures in measure(engine, plan, repeats=order["repeats"]):
                _tell(lines, figures.model_dump())
        except UsageError as error:
            _tell(lines, {"wrong": str(error), "code": error.code, "fields": error.fields})
        except SetupError as error:
            _tell(lines, {"error": str(error)})
        except Exception as error:  # noqa: BLE001 - told to the caller, who asked for it
            _tell(lines, {"error": f"{type(error).__name__}: {error}"})
        else:
            _tell(lines, {"done": True})


def _lines() -> TextIO:
    """What stdout was; from now on stdout is stderr, for whatever an engine's libraries print."""
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return lines


def _tell(lines: TextIO, line: dict[str, object]) -> None:
    lines.write(json.dumps(line) + "\n")
    lines.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
