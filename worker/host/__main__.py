"""`python -m worker.host`: sets the thread counts that libraries read while they are imported."""

import os
import sys

from shared.starting import importing

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> int:
    """Serve an engine as the command line says. Returns the exit status."""
    for name in ONE_THREAD:  # a host is one core's work; more threads only fight over it
        os.environ.setdefault(name, "1")
    with importing():
        from worker.host.serve import main as serve  # noqa: PLC0415 - after the counts are set
    return serve()


if __name__ == "__main__":
    sys.exit(main())
