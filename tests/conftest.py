"""Fixtures of every test: real servers, and real farms on top of them."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.servers"]

# A busy machine is slow, and that is no fault of the code: no example has a time limit of its own.
settings.register_profile(
    "voxfarm", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("voxfarm")
