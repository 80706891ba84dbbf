"""A worker with our Celery settings and tasks that do nothing: the floor for every other one.

Works on the Redis of `VOXFARM_REDIS_URL` until it is stopped; `benchmarks.noop` starts it.
"""

from shared.broker import build_celery
from shared.lifeline import die_with_parent
from shared.settings import Settings
from shared.tiers import Tier
from worker.celery_main import serve
from worker.tasks import register_synth

THREADS = 16


def main() -> None:
    """Consume, and do nothing."""
    die_with_parent()
    app = build_celery(Settings())
    register_synth(app, lambda _message: None)
    serve(app, name="noop", queues=[Tier.BULK.queue], pool="threads", concurrency=THREADS)


if __name__ == "__main__":
    main()
