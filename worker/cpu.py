"""The cpu worker: plans, assembles and inspects, one step per process at a time."""

import os

from celery.signals import worker_process_init

from shared.broker import build_celery
from shared.farm import open_farm
from shared.leaving import leave_quickly
from shared.lifeline import die_with_parent
from shared.logs import configure_logging
from shared.messages import StepMessage
from shared.settings import Settings
from shared.steps import StepKind
from worker.assembling import run_assemble
from worker.celery_main import serve
from worker.planning import run_plan
from worker.running import StepRunner
from worker.tasks import register_steps

WORK = {StepKind.PLAN: run_plan, StepKind.ASSEMBLE: run_assemble}


class ForkedRunner:
    """Builds its connections on first use in each forked process, never before the fork."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runner: StepRunner | None = None
        self._pid = 0

    def __call__(self, message: StepMessage) -> None:
        """Run a step in this process."""
        if self._runner is None or self._pid != os.getpid():
            self._runner = StepRunner(open_farm(self._settings), WORK)
            self._pid = os.getpid()
        self._runner.run(message)


def main() -> None:
    """Run the cpu worker as a process of its own."""
    die_with_parent()
    leave_quickly()
    configure_logging("cpu")
    parent = os.getpid()  # the pool's processes are forked from this one
    worker_process_init.connect(lambda **_: die_with_parent(parent), weak=False)
    settings = Settings()
    app = build_celery(settings)
    register_steps(app, ForkedRunner(settings))
    queues = [StepKind.PLAN, StepKind.ASSEMBLE, StepKind.INSPECT]
    serve(app, name="cpu", queues=queues, pool="prefork", concurrency=settings.cpu_workers)


if __name__ == "__main__":
    main()
