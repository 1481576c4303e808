"""Assigns addresses to the simulated nodes and pods of a cluster, each to one owner at a time.

All of them are in 198.18.0.0/15, which is reserved for benchmarks and routed to no host: a program that discovers pods
and sends them requests reaches nothing. Each address belongs to one owner, the name of a node or the uid of a pod. A
pod's address is reused only after all others, so that a client with an old address does not reach another pod.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network

NETWORK = IPv4Network("198.18.0.0/15")
SIZE = NETWORK.num_addresses - 2
_SHARE_OF_NODES = 8


def is_simulated(host: str) -> bool:
    """Whether this is the address of a simulated pod."""
    try:
        return IPv4Address(host) in NETWORK
    except AddressValueError:
        return False


class Addresses:
    def __init__(self, network: IPv4Network = NETWORK) -> None:
        self._owners: dict[int, str] = {}
        self._first, self._last = int(network.network_address) + 1, int(network.broadcast_address) - 1
        self._next_node = self._first
        # Users can tell pods from nodes by their ranges, which begin at 198.18.64.1 and 198.18.0.1.
        self._next_pod = self._first + network.num_addresses // _SHARE_OF_NODES

    def take(self, pod_uid: str) -> str:
        """The next free address for a pod; empty if none is left."""
        found = self._free(self._next_pod)
        if not found:
            return ""
        self._owners[found] = pod_uid
        self._next_pod = found + 1
        return str(IPv4Address(found))

    def take_for_node(self, name: str) -> str:
        """The next free address for a node; empty if none is left."""
        found = self._free(self._next_node)
        if not found:
            return ""
        self._owners[found] = name
        self._next_node = found + 1
        return str(IPv4Address(found))

    def claim(self, address: str, owner: str) -> bool:
        """Record an address in use; returns False if it is out of range or belongs to another owner."""
        number = self._number(address)
        if not number:
            return False
        return self._owners.setdefault(number, owner) == owner

    def give(self, address: str, owner: str) -> None:
        number = self._number(address)
        if self._owners.get(number) == owner:
            del self._owners[number]

    def start_at(self, seed: int) -> None:
        """Set the first address of pods: other processes that assign addresses in the same cluster start elsewhere."""
        self._next_pod = self._first + seed % (self._last - self._first + 1)

    def _free(self, start: int) -> int:
        if len(self._owners) > self._last - self._first:
            return 0
        number = start
        while number in self._owners or number > self._last:
            number = number + 1 if number < self._last else self._first
        return number

    def _number(self, address: str) -> int:
        """The number of the address in the range; 0 if it is not in the range."""
        try:
            number = int(IPv4Address(address))
        except AddressValueError:
            return 0
        return number if self._first <= number <= self._last else 0


EXHAUSTED = (
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox: "
    f"no IP addresses available: all {SIZE} of {NETWORK} are in use by nodes and pods of this cluster"
)
"""The Event message of a pod that gets no address."""
