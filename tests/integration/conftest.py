from collections.abc import Iterator

import pytest

from benchmarks.farm_process import Watched, running_farm


@pytest.fixture(scope="session")
def hibari_farm() -> Iterator[Watched]:
    """A real farm that speaks with the default voice; Flower's API is open to the test."""
    environment = {"FLOWER_UNAUTHENTICATED_API": "true"}
    with running_farm(engine="hibari", nodes=1, environment=environment) as farm:
        yield farm
