"""Allocates the cluster address and node ports of a new Service.

Pure: the caller says what is taken and stores the Service under a lock that no other allocation holds. The address
depends on the Service's own name and on what is taken, so that the same manifests give the same addresses again; a
real cluster picks at random. As there, the low end of both ranges is left to those that choose for themselves, as long
as the rest is not full.

Rejected: keeping a set of free addresses here. The Services are the truth, and there are few of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, ip_address, ip_network
from typing import NamedTuple

from shoal.embedded.apiserver.field_errors import FieldError, bad_value
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj
from shoal.embedded.apiserver.status import ApiError, internal, invalid

RANGE = ip_network("10.96.0.0/16")
_CHOSEN_ADDRESSES = 256
FIRST_PORT, LAST_PORT = 30000, 32767
_CHOSEN_PORTS = 86
_HEADLESS = "None"


class Taken(NamedTuple):
    """What the Services of the whole cluster have."""

    addresses: frozenset[str]
    ports: frozenset[tuple[str, int]]
    """Protocol and number; the same number may be used by two protocols of one Service."""


def taken(services: Iterable[Obj]) -> Taken:
    addresses: set[str] = set()
    ports: set[tuple[str, int]] = set()
    for service in services:
        spec = service.get("spec") or {}
        addresses.update(one for one in spec.get("clusterIPs") or () if one != _HEADLESS)
        ports.update(_node_ports(spec))
    return Taken(frozenset(addresses), frozenset(ports))


def needs_address(spec: Obj) -> bool:
    return spec.get("type") != "ExternalName" and spec.get("clusterIP") != _HEADLESS


def needs_node_ports(spec: Obj) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True))


def needs_health_port(spec: Obj) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def allocate(service: Obj, others: Taken, old: Obj | None = None) -> None:
    """Give a prepared and valid Service what it has not chosen itself, in place.

    `others` is what the other Services have and `old` the Service before the change. Raises Invalid for what it chose
    and cannot have.
    """
    spec = service["spec"]
    before = (old or {}).get("spec") or {}
    errors: Errors = []
    if needs_address(spec):
        _allocate_address(service, others.addresses, before, errors)
    mine = frozenset(_node_ports(before))
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        _allocate_ports(spec, others.ports, mine, errors)
    if needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        used = {number for _, number in others.ports} | {one.get("nodePort", 0) for one in spec.get("ports") or ()}
        spec["healthCheckNodePort"] = _free_port(0, used)
    if errors:
        raise invalid("Service", "", service["metadata"].get("name", ""), errors)


def _allocate_address(service: Obj, used: Collection[str], before: Obj, errors: Errors) -> None:
    spec = service["spec"]
    chosen = spec.get("clusterIP")
    if not chosen:
        metadata = service["metadata"]
        found = _free_address(f"{metadata.get('namespace', '')}/{metadata.get('name', '')}", used)
        spec["clusterIP"], spec["clusterIPs"] = found, [found]
        return
    if chosen == before.get("clusterIP"):
        return
    why = ""
    if ip_address(chosen) not in RANGE:
        why = "the provided network does not match the current range"
    elif chosen in used:
        why = "provided IP is already allocated"
    if why:
        errors.append(bad_value("spec.clusterIPs", spec["clusterIPs"], f"failed to allocate IP {chosen}: {why}"))


def _free_address(key: str, used: Collection[str]) -> str:
    first = int(RANGE.network_address)
    size = RANGE.num_addresses - 1
    # The last address is the broadcast address of the range, the first its own.
    bands = ((_CHOSEN_ADDRESSES + 1, size), (1, _CHOSEN_ADDRESSES + 1))
    for low, high in bands:
        start = zlib.crc32(key.encode()) % (high - low)
        for step in range(high - low):
            found = str(IPv4Address(first + low + (start + step) % (high - low)))
            if found not in used:
                return found
    raise _full("failed to allocate a serviceIP: range is full")


def _allocate_ports(
    spec: Obj, used: Collection[tuple[str, int]], mine: Collection[tuple[str, int]], errors: Errors
) -> None:
    own: set[int] = set()
    for place, port in enumerate(spec.get("ports") or ()):
        number, protocol = port.get("nodePort", 0), port.get("protocol", "TCP")
        if not number:
            continue
        own.add(number)
        if (protocol, number) not in mine and any(number == other for _, other in used):
            path = f"spec.ports[{place}].nodePort"
            errors.append(bad_value(path, number, "provided port is already allocated"))
    if not needs_node_ports(spec):
        return
    numbers = {number for _, number in used}
    for place, port in enumerate(spec.get("ports") or ()):
        if not port.get("nodePort"):
            port["nodePort"] = _shared_port(spec, place) or _free_port(port.get("port", 0), numbers | own)
            own.add(port["nodePort"])


def unallocatable_port(spec: Obj, before: Obj) -> list[FieldError]:
    """The first node port that no allocation can give, if there is one. A Service keeps what it has."""
    if spec.get("type") not in ("NodePort", "LoadBalancer"):
        return []
    mine = frozenset(_node_ports(before))
    words = f"provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{LAST_PORT}"
    for place, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort", 0)
        is_in_range = FIRST_PORT <= number <= LAST_PORT
        if number and not is_in_range and (port.get("protocol", "TCP"), number) not in mine:
            return [bad_value(f"spec.ports[{place}].nodePort", number, words)]
    return []


def _shared_port(spec: Obj, place: int) -> int:
    """One port in two protocols (DNS) is one node port as well."""
    wanted = spec["ports"][place]
    for other in spec["ports"][:place]:
        if other.get("port") == wanted.get("port") and other.get("protocol") != wanted.get("protocol"):
            return int(other.get("nodePort", 0))
    return 0


def _free_port(key: int, used: Collection[int]) -> int:
    for low, high in ((FIRST_PORT + _CHOSEN_PORTS, LAST_PORT + 1), (FIRST_PORT, FIRST_PORT + _CHOSEN_PORTS)):
        for step in range(high - low):
            found = low + (key + step) % (high - low)
            if found not in used:
                return found
    raise _full("failed to allocate a nodePort: range is full")


def _full(words: str) -> ApiError:
    return internal(words)


def _node_ports(spec: Obj) -> Iterable[tuple[str, int]]:
    for port in spec.get("ports") or ():
        if number := port.get("nodePort"):
            yield port.get("protocol", "TCP"), number
    if number := spec.get("healthCheckNodePort"):
        yield "TCP", number
