import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.farm_process import Watched, running_farm
from cli.servers.valkey import ValkeyServer
from shared.farm import Farm, farm_of
from shared.settings import Settings


@pytest.fixture(scope="module")
def hibari_farm() -> Iterator[Watched]:
    """A real farm that speaks with the default voice; Flower's API is open to the test."""
    environment = {"FLOWER_UNAUTHENTICATED_API": "true"}
    with running_farm(engine="hibari", nodes=1, environment=environment) as farm:
        yield farm


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(
    request: pytest.FixtureRequest,
    valkey: ValkeyServer,
    s3_settings: Settings,
    sqlite_ledger: Path,
    tmp_path: Path,
) -> Settings:
    """Of a farm with real stores and a migrated ledger, once with each database."""
    url = ""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_database")
    else:
        shutil.copy(sqlite_ledger, tmp_path / "voxfarm.db")
    where = {"data_dir": tmp_path, "redis_url": valkey.url, "database_url": url}
    return s3_settings.model_copy(update=where)


@pytest.fixture
def farm(settings: Settings) -> Iterator[Farm]:
    """That farm, empty; nobody works on it but the test."""
    with farm_of(settings) as farm:
        farm.store.ensure_bucket()
        yield farm
