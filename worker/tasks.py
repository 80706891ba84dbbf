"""The Celery tasks: thin. A message goes in, a verb of ours does the work."""

from collections.abc import Callable

from celery import Celery

from shared.messages import (
    DELIVERY_TASK,
    STEP_TASK,
    SYNTH_TASK,
    DeliveryMessage,
    StepMessage,
    SynthMessage,
)


def register_synth(app: Celery, render: Callable[[SynthMessage], None]) -> None:
    """Let this worker render sentences. Acked after the work, so a dying worker's come back."""

    @app.task(name=SYNTH_TASK, acks_late=True)  # type: ignore[untyped-decorator]
    def synth(**kwargs: object) -> None:
        render(SynthMessage.from_kwargs(kwargs))


def register_steps(app: Celery, run: Callable[[StepMessage], None]) -> None:
    """Let this worker run steps. Acked before the work: the ledger, not the broker, retries."""

    @app.task(name=STEP_TASK, acks_late=False)  # type: ignore[untyped-decorator]
    def step(**kwargs: object) -> None:
        run(StepMessage.from_kwargs(kwargs))


def register_deliveries(app: Celery, deliver: Callable[[DeliveryMessage], None]) -> None:
    """Let this worker send webhooks. Acked before the work, as steps are."""

    @app.task(name=DELIVERY_TASK, acks_late=False)  # type: ignore[untyped-decorator]
    def delivery(**kwargs: object) -> None:
        deliver(DeliveryMessage.from_kwargs(kwargs))
