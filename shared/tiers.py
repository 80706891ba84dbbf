"""Priority tiers and the Celery queues behind them. Knows nothing of jobs or brokers."""

from enum import StrEnum


class Tier(StrEnum):
    """How urgent a job is. Each tier has its own queue, window and targets."""

    RUSH = "rush"
    STANDARD = "standard"
    BULK = "bulk"

    @property
    def queue(self) -> str:
        """Name of the Celery queue that carries this tier's sentences."""
        return f"synth.{self.value}"
