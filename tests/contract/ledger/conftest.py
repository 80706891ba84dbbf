from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.ledger.database import Database
from shared.ledger.migrate import migrate


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A migrated, empty ledger: the whole suite runs on each kind of database."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'ledger.db'}"
    else:
        url = request.getfixturevalue("postgres_database")
    database = Database(url, pool_size=16)
    migrate(database)
    yield database
    database.close()
