from collections.abc import Iterator

import pytest

from tests.chaos.farm import ChaosFarm


@pytest.fixture(scope="package")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosFarm]:
    """One farm for all chaos tests: what one test breaks, the next one finds mended."""
    farm = ChaosFarm(tmp_path_factory.mktemp("chaos"))
    farm.start()
    try:
        farm.check(farm.finish(farm.submit()))  # the undisturbed run
        yield farm
    finally:
        farm.stop()
