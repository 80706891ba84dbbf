"""Where a webhook may lead, and the many ways in which an inner address can be written."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.addresses import AddressPolicy, is_public

NOT_PUBLIC = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.254 127.0.0.1 127.255.255.254
169.254.169.254 169.254.0.1 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1
192.88.99.1 192.168.0.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 224.1.1.1 239.255.255.250
240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 ::7f00:1 ::127.0.0.1 ::ffff:127.0.0.1
::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1
64:ff9b::169.254.169.254 64:ff9b::a00:1 64:ff9b:1::808:808 100::1 2001::1
2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::
2002:a00:1::1 2002:a9fe:a9fe:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%lo fec0::1
ff02::1 ff0e::1 4000::1 2606:4700::5efe:10.0.0.1 2606:4700::200:5efe:7f00:1
"""
PUBLIC = """
1.1.1.1 8.8.8.8 93.184.216.34 172.32.0.1 100.128.0.1 192.169.0.1 2606:4700::1111 2a00:1450::1
::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1
"""


@pytest.mark.parametrize("text", NOT_PUBLIC.split())
def test_what_is_not_the_public_internet_is_refused(text: str) -> None:
    assert not AddressPolicy().permits(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", PUBLIC.split())
def test_public_addresses_are_permitted(text: str) -> None:
    assert AddressPolicy().permits(ipaddress.ip_address(text))


def test_a_network_of_the_operators_is_permitted_and_its_neighbours_are_not() -> None:
    policy = AddressPolicy(
        (ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00:1::/32"))
    )
    for inside in ("10.1.2.3", "::ffff:10.1.2.3", "fd00:1::5", "8.8.8.8"):
        assert policy.permits(ipaddress.ip_address(inside)), inside
    for outside in ("10.2.0.1", "127.0.0.1", "fd00:2::5", "::ffff:10.2.0.1"):
        assert not policy.permits(ipaddress.ip_address(outside)), outside


@given(st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address))
def test_an_address_that_hides_in_another_is_judged_as_itself(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    hidden = (
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address((0x64_FF9B << 96) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80)),
    )
    assert {is_public(address) for address in hidden} == {is_public(inner)}
