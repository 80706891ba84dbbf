"""The second scheduler of a storm: a real one that does its rarer duties every few seconds.

What the farm does once a minute would otherwise hardly happen during a storm.
"""

import signal
import threading

from shared.lifeline import die_with_parent
from shared.logs import configure_logging
from shared.settings import Settings
from worker.scheduler import run

_SWEEP_EVERY_S = 3.0


def main() -> None:
    """Run until told to stop."""
    die_with_parent()
    configure_logging("scheduler-2")
    stop = threading.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: stop.set())
    run(Settings(), stop, sweep_every_s=_SWEEP_EVERY_S)


if __name__ == "__main__":
    main()
