"""Starts a module of ours as a program, quickly. Knows nothing of what the module does.

A fifth of an import's CPU is the garbage collector, which looks again and again at objects that are
all there to stay. A farm is a dozen processes, which start together.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module


def command(module: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """The command line that runs the `main()` of a module or package as a process of its own.

    -P: a folder named like a package of ours, where we happen to stand, is not imported.
    """
    return [python, "-P", "-m", "shared.starting", module, *arguments]


@contextmanager
def importing() -> Iterator[None]:
    """A block of imports: no search for garbage in it, nor ever again among what it leaves."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def main() -> None:
    """Import what the command line names, a module or a package, and call its `main()`."""
    del sys.argv[0]  # so that it finds its own name and arguments there
    with importing():
        program = import_module(sys.argv[0])
        if hasattr(program, "__path__"):  # a package, which has its program inside
            program = import_module(f"{sys.argv[0]}.__main__")
    sys.exit(program.main())


if __name__ == "__main__":
    main()
