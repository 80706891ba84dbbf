"""The deliver worker: what must never wait behind a book. Threads, since it waits on networks."""

from shared.broker import build_celery
from shared.farm import farm_of
from shared.lifeline import die_with_parent
from shared.logs import configure_logging
from shared.settings import Settings
from shared.steps import StepKind
from worker.celery_main import serve
from worker.running import StepRunner
from worker.tasks import register_steps


def main() -> None:
    """Run the deliver worker as a process of its own."""
    die_with_parent()
    configure_logging("deliver")
    settings = Settings()
    app = build_celery(settings)
    with farm_of(settings) as farm:
        register_steps(app, StepRunner(farm, {}).run)
        serve(app, name="deliver", queues=[StepKind.DELIVER], pool="threads", concurrency=4)


if __name__ == "__main__":
    main()
