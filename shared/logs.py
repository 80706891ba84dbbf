"""Logging of every process: one line a record, to stderr. Never text, audio or secrets."""

import logging
import sys


def configure_logging(process: str, *, level: str = "INFO") -> None:
    """Send this process's log records to stderr, marked with its name."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter(f"%(asctime)s %(levelname)-7s {process} %(name)s: %(message)s")
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for chatty in ("urllib3", "kombu", "amqp", "alembic", "httpx"):
        logging.getLogger(chatty).setLevel("WARNING")
