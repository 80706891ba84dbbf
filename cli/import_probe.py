"""`python -m cli.import_probe NAME...`: imports each module in a process of its own.

Prints a JSON object of what went wrong, by module. Imports nothing of ours, so it works in the
poorest installation.
"""

import importlib
import json
import sys


def main(names: list[str]) -> None:
    """Try them all, then tell."""
    wrong = dict[str, str]()
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - whatever an import does is the finding
            wrong[name] = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(wrong) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
