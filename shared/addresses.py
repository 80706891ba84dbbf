"""Which network addresses a webhook may lead to: public ones, and those the operator allows. Pure.

Guards against server-side request forgery. What counts is the address that is connected to, with
every IPv4 address that hides in an IPv6 one taken out first (RFC 4291 mapped, RFC 3056 6to4,
RFC 6052 NAT64).
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_6TO4 = ipaddress.IPv6Network("2002::/16")
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that is given out; the rest is special
# Global by Python's tables, or by some versions of them, and yet nobody's public server.
_SPECIAL_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "192.0.0.0/24",  # protocol assignments; a cloud's metadata lives there
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT relays
            "192.88.99.0/24",  # 6to4 relays
            "192.175.48.0/24",  # AS112
            "168.63.129.16/32",  # Azure's platform services
        ),
    )
)
_SPECIAL_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # Teredo, benchmarks, ORCHID and other assignments
            "2001:db8::/32",
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})  # RFC 5214: the upper half of its interface id


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Decides about addresses. `allowed` lists private networks that are open nonetheless."""

    allowed: Sequence[Network] = ()

    def permits(self, address: Address) -> bool:
        """True when a connection to this address may be opened."""
        meant = _meant(address)
        if any(meant.version == net.version and meant in net for net in self.allowed):
            return True
        return is_public(meant)


def is_public(address: Address) -> bool:
    """True for an address of the public internet. Embedded IPv4 addresses are looked at too."""
    meant = _meant(address)
    if meant.is_multicast or not meant.is_global:
        return False
    if isinstance(meant, ipaddress.IPv4Address):
        return not any(meant in net for net in _SPECIAL_V4)
    if meant not in _GLOBAL_UNICAST or any(meant in net for net in _SPECIAL_V6):
        return False
    return (int(meant) >> 32) & 0xFFFF_FFFF not in _ISATAP


def _meant(address: Address) -> Address:
    """The IPv4 address behind an IPv6 one that only carries it, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _6TO4:
        return ipaddress.IPv4Address((int(address) >> 80) & 0xFFFF_FFFF)
    return address
