"""The Celery application of this farm, for tools that want one by name (`-A worker.app:app`)."""

from shared.broker import build_celery
from shared.settings import Settings

app = build_celery(Settings())
