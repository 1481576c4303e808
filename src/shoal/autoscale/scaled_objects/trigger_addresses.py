"""Decides which network addresses triggers may ask. The users of a namespace choose them, the server asks.

Loopback addresses lead to what runs beside the server, link-local ones to the credentials of the machine. They are not
asked unless the server's own option allows their network, in whatever notation they are written.
"""

from __future__ import annotations

from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from msgspec import Struct

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address
OPTION = "--trigger-network"
_ALLOWED_BY = f"{OPTION} of shoal up and podAutoscaling.triggerNetworks of shoal run allow networks"

_METADATA = frozenset(
    map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "168.63.129.16", "100.100.100.200", "192.0.0.192"))
)
"""Where clouds serve credentials and settings of the machine, besides link-local addresses."""
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""Addresses of IPv4 behind a translator."""


class AddressRefusedError(OSError):
    """The address must not be asked."""


class TriggerAddresses(Struct, frozen=True):
    allowed: tuple[Network, ...] = ()
    """Networks of refused addresses that are asked nevertheless."""

    def check(self, host: str) -> None:
        """Raises AddressRefusedError. A name passes: what it leads to is checked when it is resolved."""
        address = _address(host)
        if address is None:
            return
        seen = _embedded(address)
        what = _refused(seen)
        if what and not any(seen in network for network in self.allowed if network.version == seen.version):
            raise AddressRefusedError(f"{what} addresses are not asked; {_ALLOWED_BY}")


def read_network(text: str) -> Network:
    """Raises ValueError."""
    return ip_network(text)


def _address(host: str) -> Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, if so."""
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _refused(address: Address) -> str:
    if address in _METADATA:
        return "cloud metadata"
    if address.is_link_local:
        return "link-local"
    is_first_block = isinstance(address, IPv4Address) and int(address) >> 24 == 0
    if address.is_loopback or address.is_unspecified or is_first_block:
        return "loopback"
    is_broadcast = isinstance(address, IPv4Address) and int(address) == 0xFFFFFFFF
    return "multicast and broadcast" if address.is_multicast or is_broadcast else ""
