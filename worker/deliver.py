"""The deliver worker: sends webhooks, never behind a book. Threads, since it waits on networks."""

from shared.broker import build_celery
from shared.farm import farm_of
from shared.farm_secret import load_farm_secret
from shared.leaving import leave_quickly
from shared.lifeline import die_with_parent
from shared.logs import configure_logging
from shared.messages import DELIVERY_QUEUE
from shared.settings import Settings
from shared.webhook_secrets import SigningSecrets
from worker.celery_main import serve
from worker.tasks import register_deliveries
from worker.webhooks.courier import Courier, rules_of
from worker.webhooks.sending import sender_of


def main() -> None:
    """Run the deliver worker as a process of its own."""
    die_with_parent()
    leave_quickly()
    configure_logging("deliver")
    settings = Settings()
    app = build_celery(settings)
    with farm_of(settings) as farm:
        secrets = SigningSecrets(load_farm_secret(settings))
        courier = Courier(farm, sender_of(settings), secrets, rules_of(settings))
        register_deliveries(app, courier.run)
        serve(
            app,
            name="deliver",
            queues=[DELIVERY_QUEUE],
            pool="threads",
            concurrency=settings.webhook_threads,
        )


if __name__ == "__main__":
    main()
