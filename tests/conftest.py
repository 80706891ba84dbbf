"""Fixtures of every test: real servers, and real farms on top of them."""

pytest_plugins = ["tests.servers"]
