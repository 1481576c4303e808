"""Addresses of the simulated nodes and pods of a cluster, no two the same at a time.

All of them are of 198.18.0.0/15, which is set aside for benchmarks and leads to no host: a program that discovers pods
and sends them requests reaches nothing. Each address belongs to one owner, the name of a node or the uid of a pod. A
pod's address comes back only after all others had their turn, so that what remembers an old one does not meet another
pod.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network

NETWORK = IPv4Network("198.18.0.0/15")
SIZE = NETWORK.num_addresses - 2
_SHARE_OF_NODES = 8


class Addresses:
    def __init__(self, network: IPv4Network = NETWORK) -> None:
        self._owners: dict[int, str] = {}
        self._first, self._last = int(network.network_address) + 1, int(network.broadcast_address) - 1
        self._next_node = self._first
        # A person tells pods from nodes by where they begin: 198.18.64.1 and 198.18.0.1.
        self._next_pod = self._first + network.num_addresses // _SHARE_OF_NODES

    def take(self, pod_uid: str) -> str:
        """The next free one for a pod; empty if none is left."""
        found = self._free(self._next_pod)
        if not found:
            return ""
        self._owners[found] = pod_uid
        self._next_pod = found + 1
        return str(IPv4Address(found))

    def take_for_node(self, name: str) -> str:
        """Empty if none is left."""
        found = self._free(self._next_node)
        if not found:
            return ""
        self._owners[found] = name
        self._next_node = found + 1
        return str(IPv4Address(found))

    def claim(self, address: str, owner: str) -> bool:
        """It is in use already: whether it may be, by this owner."""
        number = self._number(address)
        if not number:
            return False
        return self._owners.setdefault(number, owner) == owner

    def give(self, address: str, owner: str) -> None:
        number = self._number(address)
        if self._owners.get(number) == owner:
            del self._owners[number]

    def start_at(self, seed: int) -> None:
        """Where pods begin: other processes that give addresses in the same cluster begin elsewhere."""
        self._next_pod = self._first + seed % (self._last - self._first + 1)

    def _free(self, start: int) -> int:
        if len(self._owners) > self._last - self._first:
            return 0
        number = start
        while number in self._owners or number > self._last:
            number = number + 1 if number < self._last else self._first
        return number

    def _number(self, address: str) -> int:
        """0 for what is no address of the range."""
        try:
            number = int(IPv4Address(address))
        except AddressValueError:
            return 0
        return number if self._first <= number <= self._last else 0


EXHAUSTED = (
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox: "
    f"no IP addresses available: all {SIZE} of {NETWORK} are in use by nodes and pods of this cluster"
)
"""What the Event of a pod says that gets none."""
