"""Starting a Celery worker of ours in this process: the arguments all of them share."""

import platform
from collections.abc import Sequence

from celery import Celery

from worker.redis_transport import use_for_redis


def serve(app: Celery, *, name: str, queues: Sequence[str], pool: str, concurrency: int) -> None:
    """Consume the queues until SIGTERM (warm: running tasks are finished first)."""
    use_for_redis()
    app.worker_main(
        [
            "worker",
            f"--hostname={name}@{platform.node() or 'localhost'}",
            f"--queues={','.join(queues)}",
            f"--pool={pool}",
            f"--concurrency={concurrency}",
            "--loglevel=WARNING",
            "--task-events",
            "--without-gossip",
            "--without-mingle",
        ]
    )
