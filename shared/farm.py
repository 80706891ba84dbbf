"""One process's connections to the farm: ledger, queues, store. Built once, in its main."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from shared.broker import Broker, build_celery
from shared.dispatch import Dispatcher
from shared.ledger.database import Database
from shared.postman import Postman
from shared.settings import Settings
from shared.storage import ObjectStore, S3Store


@dataclass(frozen=True, slots=True)
class Farm:
    """What most processes need, wired together. Thread-safe; not to be carried over a fork."""

    settings: Settings
    database: Database
    broker: Broker
    dispatcher: Dispatcher
    postman: Postman
    store: ObjectStore

    def close(self) -> None:
        """Close all connections."""
        self.database.close()
        self.broker.close()


def open_farm(settings: Settings) -> Farm:
    """Wire a Farm; connects lazily, so it succeeds while a store is away."""
    database = Database(settings.sqlalchemy_url)
    broker = Broker(build_celery(settings), settings.redis_url)
    return Farm(
        settings=settings,
        database=database,
        broker=broker,
        dispatcher=Dispatcher(database, broker, settings),
        postman=Postman(database, broker, settings),
        store=S3Store(settings),
    )


@contextmanager
def farm_of(settings: Settings) -> Iterator[Farm]:
    """A Farm that is closed at the end of the block."""
    farm = open_farm(settings)
    try:
        yield farm
    finally:
        farm.close()
