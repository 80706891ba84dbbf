"""`python -m worker.host`: sets the thread counts that libraries read while they are imported."""

import os
import sys

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

if __name__ == "__main__":
    for name in ONE_THREAD:  # a host is one core's work; more threads only fight over it
        os.environ.setdefault(name, "1")

    from worker.host.serve import main

    sys.exit(main())
