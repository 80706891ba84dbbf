"""Ports that a farm chooses."""

from cli.ports import free_port
from cli.servers.ports import free_ports


def test_no_server_beneath_a_farm_takes_the_port_that_its_api_is_about_to_bind() -> None:
    assert max(free_port() for _ in range(200)) < min(free_ports(200))
