"""Fixtures of every test: real servers, and real farms on top of them."""

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.servers"]

# A busy machine is slow, and that is no fault of the code: no example has a time limit of its own.
settings.register_profile(
    "voxfarm", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("voxfarm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A process of several takes whole files, and all files of a group, which share a farm."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.location[0]))
