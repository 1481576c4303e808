"""Whether NetworkPolicies let a connection pass, by the rules of Kubernetes: what a policy selects is denied but for
what some policy allows, in both directions.

Whether the network plugin of a cluster enforces policies at all is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Literal

import msgspec

from shoal.policy.advice import Obj
from shoal.policy.fields import dig, label_selector, maps, string_keys, strings
from shoal.policy.object_set import key_of
from shoal.units.numbers import whole_of

Direction = Literal["Ingress", "Egress"]
DIRECTIONS: tuple[Direction, Direction] = ("Egress", "Ingress")


class Endpoint(msgspec.Struct, frozen=True):
    """A pod, or an address outside of the cluster."""

    namespace: str = ""
    namespace_labels: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    address: str = ""


def passes(policies: Iterable[Obj], source: Endpoint, target: Endpoint, port: int, protocol: str = "TCP") -> str:
    """Empty if the connection passes; else the policies that deny it."""
    known = list(policies)
    return denied(known, "Egress", source, target, port, protocol) or denied(
        known, "Ingress", target, source, port, protocol
    )


def denied(
    policies: Sequence[Obj], direction: Direction, own: Endpoint, other: Endpoint, port: int, protocol: str = "TCP"
) -> str:
    """The same for one direction: the policies of the pod `own` alone."""
    if not own.namespace:
        return ""
    selecting = [one for one in policies if _selects(one, direction, own)]
    field, peers = ("egress", "to") if direction == "Egress" else ("ingress", "from")
    for policy in selecting:
        for rule in maps(dig(policy, "spec", field)):
            if _has_port(maps(rule.get("ports")), port, protocol) and _has_peer(rule.get(peers), own, other):
                return ""
    names = ", ".join(sorted(key_of(one)[1] for one in selecting))
    return f"{direction.lower()} of {own.namespace} is limited to what {names} allow" if selecting else ""


def _selects(policy: Obj, direction: Direction, pod: Endpoint) -> bool:
    spec = string_keys(policy.get("spec"))
    types = strings(spec.get("policyTypes")) or ["Ingress", *(["Egress"] if "egress" in spec else [])]
    selector = label_selector(spec.get("podSelector") or {})
    return (
        key_of(policy)[0] == pod.namespace
        and direction in types
        and selector is not None
        and selector.matches(pod.labels)
    )


def _has_port(ports: list[Obj], port: int, protocol: str) -> bool:
    return not ports or any(_is_port(one, port, protocol) for one in ports)


def _is_port(one: Obj, port: int, protocol: str) -> bool:
    if (one.get("protocol") or "TCP") != protocol:
        return False
    if "port" not in one:
        return True
    first = whole_of(str(one["port"]))
    last = whole_of(str(one.get("endPort"))) or first
    # A name of a port is one of the pod's, which is not known.
    return first is not None and last is not None and first <= port <= last


def _has_peer(raw: object, own: Endpoint, other: Endpoint) -> bool:
    peers = maps(raw)
    return not peers or any(_is_peer(one, own, other) for one in peers)


def _is_peer(peer: Obj, own: Endpoint, other: Endpoint) -> bool:
    block = string_keys(peer.get("ipBlock"))
    if block:
        return _is_in(block, other.address)
    if not other.namespace:
        return False
    if "namespaceSelector" in peer:
        namespaces = label_selector(peer["namespaceSelector"] or {})
        if namespaces is None or not namespaces.matches(other.namespace_labels):
            return False
    elif other.namespace != own.namespace:
        return False
    pods = label_selector(peer.get("podSelector") or {})
    return pods is not None and pods.matches(other.labels)


def _is_in(block: Obj, address: str) -> bool:
    if not address:
        return False
    try:
        found = ip_address(address)
        return found in ip_network(str(block.get("cidr"))) and not any(
            found in ip_network(one) for one in strings(block.get("except"))
        )
    except ValueError:
        return False
