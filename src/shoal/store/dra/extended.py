"""Computes the claims of pods for extended resources that device classes serve: a pod requests `nvidia.com/gpu: 2` and
gets two devices of a class.

Nodes that advertise the resource themselves have a device plugin for it, and Kubernetes prefers the device plugin, node
by node. Here one rule applies to all nodes: while any node advertises the resource, device classes do not serve it. The
implicit name of a class, `deviceclass.resource.kubernetes.io/<class>`, cannot be advertised by a device plugin.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from msgspec import structs

from shoal.api.container import Container, Resources
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.resources import effective_requests
from shoal.engine.dra.requests import ClaimAsk, ClaimRef, Option, Request
from shoal.store.dra.sets import DeviceSets

_ALWAYS = "deviceclass.resource.kubernetes.io/"
EXTENDED = "extended-resources"
"""The name of the pod's claim for extended resources."""


class Served(NamedTuple):
    """A pod without the resources that a claim provides, and the claim."""

    pod: Pod
    ref: ClaimRef


def advertised_by(node: Node) -> frozenset[str]:
    """Resources for which the node has a device plugin."""
    return frozenset(name for name, amount in node.allocatable().items() if amount and "/" in name)


class Extended:
    """The resources that each class serves. `advertised`: the resources for which some node has a device plugin."""

    def __init__(self, sets: DeviceSets, advertised: AbstractSet[str] = frozenset()) -> None:
        self._sets = sets
        self._class_of: dict[str, str] = {}
        self.renew(advertised)

    def renew(self, advertised: AbstractSet[str]) -> set[str]:
        """Read the classes again; returns the resources whose class changed."""
        classes, before = self._sets.classes, self._class_of
        named = {each.spec.extended_resource_name: name for name, each in sorted(classes.items(), reverse=True)}
        served = {resource: name for resource, name in named.items() if resource and resource not in advertised}
        self._class_of = {_ALWAYS + name: name for name in classes} | served
        return {name for name in before.keys() | self._class_of if before.get(name) != self._class_of.get(name)}

    def class_of(self, resource: str) -> str:
        """The class that serves a resource, if one does."""
        return self._class_of.get(resource, "")

    def served(self, pod: Pod) -> Served | None:
        """The part of the pod's requests that devices serve; None when devices serve nothing."""
        if not any(name in self._class_of for container in _containers(pod) for name in _names(container)):
            return None
        requests, fault = [], ""
        for resource, amount in effective_requests(pod.spec).items():
            class_name = self._class_of.get(resource)
            if class_name is not None and amount:
                meant = self._sets.meant(class_name, ())
                fault = fault or meant.fault
                requests.append(Request(resource, (Option(meant.name, amount),)))
        if not requests:
            return None
        return Served(self._stripped(pod), ClaimRef(EXTENDED, own=ClaimAsk(tuple(requests)), trouble=fault))

    def _stripped(self, pod: Pod) -> Pod:
        spec = pod.spec
        fields = {
            name: tuple(self._without(container) for container in getattr(spec, name))
            for name in ("containers", "init_containers")
        }
        return structs.replace(pod, spec=structs.replace(spec, **fields))

    def _without(self, container: Container) -> Container:
        resources = container.resources
        kept = {
            name: {key: amount for key, amount in getattr(resources, name).items() if key not in self._class_of}
            for name in ("requests", "limits")
        }
        return structs.replace(container, resources=Resources(**kept, claims=resources.claims))


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.spec.containers, *pod.spec.init_containers)


def _names(container: Container) -> set[str]:
    return {*container.resources.requests, *container.resources.limits}
