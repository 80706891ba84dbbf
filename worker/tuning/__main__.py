"""`python -m worker.tuning ENGINE PLAN`: measures one engine, a line of JSON for each figure.

PLAN is a JSON object: options, batches, lengths, repeats. The last line is `{"done": true}` or
`{"error": ...}`. In a process of its own, so that a crash is a finding and memory is the engine's.
"""

import json
import sys

from worker.engines.registry import build
from worker.host.canary import speak_canary
from worker.tuning.measuring import measure


def main(engine_name: str, plan_json: str) -> None:
    """Measure and tell."""
    plan = json.loads(plan_json)
    try:
        engine = build(engine_name, plan["options"])
        speak_canary(engine)
        for figures in measure(
            engine, batches=plan["batches"], lengths=plan["lengths"], repeats=plan["repeats"]
        ):
            _tell(figures.model_dump())
    except Exception as error:  # noqa: BLE001 - told to the caller, who asked for it
        _tell({"error": f"{type(error).__name__}: {error}"})
    else:
        _tell({"done": True})


def _tell(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
