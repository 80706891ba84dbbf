from collections.abc import Iterator

import pytest

from benchmarks.farm_process import running_farm


@pytest.fixture(scope="session")
def hibari_farm() -> Iterator[str]:
    """The URL of a real farm that speaks with the default voice."""
    with running_farm(engine="hibari", nodes=1) as farm:
        yield farm.url
