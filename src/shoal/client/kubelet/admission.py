"""Decides whether a node admits a pod that was bound to it, with the kubelet's messages.

`NodeGpus` handles GPUs; this module handles counted resources and the node's labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.client.kubelet.pod_facts import Container, PodFacts
from shoal.devices.pod_refusal import Refused
from shoal.units.numbers import whole_of
from shoal.units.quantity import Quantity

Amounts = dict[str, int]
_NO_MATCH = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"


def amount(resource: str, text: str | int) -> int:
    """Millicores of cpu, whole units of everything else; both rounded up."""
    nano = Quantity.parse(str(text)).nano
    return -(-nano // (1_000_000 if resource == "cpu" else 1_000_000_000))


def needs(facts: PodFacts, counted: Sequence[str]) -> Amounts:
    """The maximum concurrent requests of a pod: of all containers that run together, or of one init container with the
    sidecars before it.
    """
    spec, beside = facts.spec, Amounts()
    most = Amounts()
    for init in spec.init_containers:
        mine = _requests(init, counted)
        if init.restart_policy == "Always":
            _add(beside, mine)
            continue
        for name in counted:
            most[name] = max(most.get(name, 0), beside.get(name, 0) + mine.get(name, 0))
    for container in spec.containers:
        _add(beside, _requests(container, counted))
    overhead = {name: amount(name, text) for name, text in spec.overhead.items() if name in counted}
    return {name: max(most.get(name, 0), beside.get(name, 0)) + overhead.get(name, 0) for name in counted}


class NodeCapacity:
    """The capacity of one node, and the part that its pods use."""

    def __init__(self, allocatable: Mapping[str, str]) -> None:
        self._has = {name: amount(name, text) for name, text in allocatable.items()}
        self._counted = tuple(name for name in self._has if name != "pods")
        self._used: Amounts = {}
        self._held: dict[str, tuple[int, ...]] = {}

    def take(self, uid: str, facts: PodFacts, *, is_forced: bool = False) -> Refused | None:
        """`is_forced`: the pod runs already."""
        if uid in self._held:
            return None
        wanted = needs(facts, self._counted) | {"pods": 1}
        for name, has in self._has.items():
            used = self._used.get(name, 0)
            if not is_forced and wanted[name] and used + wanted[name] > has:
                if "/" in name:
                    return Refused("UnexpectedAdmissionError", _no_device(name, wanted[name], has - used))
                words = f"requested: {wanted[name]}, used: {used}, capacity: {has}"
                return Refused(f"OutOf{name}", f"Node didn't have enough resource: {name}, {words}")
        _add(self._used, wanted)
        self._held[uid] = tuple(wanted[name] for name in self._has)
        return None

    def give(self, uid: str) -> None:
        for name, value in zip(self._has, self._held.pop(uid, ()), strict=False):
            self._used[name] -= value


def misplaced(facts: PodFacts, node: str, labels: Mapping[str, str]) -> Refused | None:
    """The refusal of a pod whose node selector or affinity does not match the node."""
    if any(labels.get(key) != value for key, value in facts.spec.node_selector.items()):
        return Refused("NodeAffinity", _NO_MATCH)
    affinity: Any = (facts.spec.affinity.node_affinity if facts.spec.affinity else None) or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return None
    terms = required.get("nodeSelectorTerms") or []
    return None if any(_matches(term, node, labels) for term in terms) else Refused("NodeAffinity", _NO_MATCH)


def _matches(term: Any, node: str, labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(_holds(one, labels.get(one["key"])) for one in expressions) and all(_holds(one, node) for one in fields)


def _holds(requirement: dict[str, Any], value: str | None) -> bool:
    operator, values = str(requirement["operator"]), list(requirement.get("values") or [])
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if operator in ("In", "NotIn"):
        return (value in values) == (operator == "In")
    number = whole_of((value or "").removeprefix("-"))
    if value is None or number is None:
        return False
    number, bound = -number if value.startswith("-") else number, int(values[0])
    return number > bound if operator == "Gt" else number < bound


def _no_device(name: str, wanted: int, left: int) -> str:
    words = f"Requested: {wanted}, Available: {left}, which is unexpected"
    return f"Allocate failed due to requested number of devices unavailable for {name}. {words}"


def _requests(container: Container, counted: Sequence[str]) -> Amounts:
    said = {**container.resources.limits, **container.resources.requests}
    return {name: amount(name, said[name]) for name in counted if name in said}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value
