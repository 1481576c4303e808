"""Pod and node addresses of a fleet, no two the same at a time."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import AddressValueError, IPv4Address

_FIRST, _LAST = int(IPv4Address("10.128.0.1")), int(IPv4Address("10.255.255.254"))
_NODES = int(IPv4Address("10.0.0.10"))


def node_address(index: int) -> str:
    return str(IPv4Address(_NODES + index))


class Addresses:
    def __init__(self) -> None:
        self._next = _FIRST
        self._taken: set[int] = set()

    def take(self) -> str:
        """The next free one; an address comes back only after all others had their turn."""
        while self._next in self._taken:
            self._step()
        found = self._next
        self._taken.add(found)
        self._step()
        return str(IPv4Address(found))

    def keep(self, address: str) -> None:
        """It is in use already."""
        with suppress(AddressValueError):
            self._taken.add(int(IPv4Address(address)))

    def give(self, address: str) -> None:
        with suppress(AddressValueError):
            self._taken.discard(int(IPv4Address(address)))

    def _step(self) -> None:
        self._next = _FIRST if self._next >= _LAST else self._next + 1
