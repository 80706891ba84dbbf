import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.ledger.database import Database, open_database


@pytest.fixture(params=["sqlite", "postgresql"])
def database(
    request: pytest.FixtureRequest, sqlite_ledger: Path, tmp_path: Path
) -> Iterator[Database]:
    """A migrated, empty ledger: the whole suite runs on each kind of database."""
    if request.param == "sqlite":
        url = f"sqlite:///{shutil.copy(sqlite_ledger, tmp_path)}"
    else:
        url = request.getfixturevalue("postgres_database")
    with open_database(url, pool_size=16) as database:
        yield database
