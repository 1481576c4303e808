"""Determines which replicas and fixed MIG instances of a node are in use, from its pods and from recent choices.

They are in the pod's annotation, which its scheduler wrote, or in its status, which the kubelet wrote. Devices that
were chosen for a pod that is not on its node yet count too, until the pod is seen there, gets another choice, or is
deleted.

Rejected: an index over all pods. Few nodes have replicas and fixed instances, and each call concerns one node.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.api.partial import LabeledMeta, PartialPodSpec
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.context import Context
from shoal.client.index import Index
from shoal.client.item import Item, Seen
from shoal.client.kind import PODS
from shoal.engine.device_notation import ids_in, names
from shoal.store.watched.device_ids import Chosen

_INDEX = "pods-with-devices"
_DEVICES = (names.OWN_DEVICES.encode(), b"allocatedResourcesStatus")


class _One(msgspec.Struct, rename="camel", gc=False):
    resource_id: str = msgspec.field(default="", name="resourceID")


class _Entry(msgspec.Struct, gc=False):
    resources: tuple[_One, ...] | None = None


class _ContainerDevices(msgspec.Struct, rename="camel", gc=False):
    allocated_resources_status: tuple[_Entry, ...] | None = None


class _UsedDevicesStatus(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    container_statuses: tuple[_ContainerDevices, ...] | None = None
    init_container_statuses: tuple[_ContainerDevices, ...] | None = None


class _UsedDevicesPod(msgspec.Struct, gc=False):
    metadata: LabeledMeta = msgspec.field(default_factory=LabeledMeta)
    spec: PartialPodSpec = msgspec.field(default_factory=PartialPodSpec)
    status: _UsedDevicesStatus = msgspec.field(default_factory=_UsedDevicesStatus)


class UsedDevices:
    def __init__(self, context: Context) -> None:
        self._pods = context.informers.of(PODS)
        self._seen: Seen[_UsedDevicesPod] = Seen(_UsedDevicesPod)
        self._index: Index | None = None
        self._chosen: dict[str, tuple[Item, str, frozenset[str]]] = {}
        """By the pod's uid."""

    def on(self, node: str, pod: Item) -> frozenset[str]:
        """The ids that other pods hold on the node."""
        if self._index is None:
            self._index = self._pods.index(_INDEX, self._nodes_of)
        self._settle()
        held: set[str] = set()
        for item in self._index[node]:
            if item.uid != pod.uid:
                held.update(_ids_of(self._seen(item)))
        for uid, (_, where, ids) in self._chosen.items():
            if where == node and uid != pod.uid:
                held |= ids
        return frozenset(held)

    def choose(self, node: str, pod: Item, chosen: Chosen) -> None:
        """Record the devices that were chosen for the pod."""
        ids = frozenset(each for resources in chosen.values() for ids in resources.values() for each in ids)
        self._chosen[pod.uid] = (pod, node, ids)

    def _settle(self) -> None:
        for uid, (pod, _, _) in list(self._chosen.items()):
            now = self._pods.get(*pod.key)
            if now is None or now.uid != uid or self._seen(now).spec.node_name:
                del self._chosen[uid]

    def _nodes_of(self, item: Item) -> Iterable[str]:
        if not any(word in item.data for word in _DEVICES):
            return ()
        pod = self._seen(item)
        return (pod.spec.node_name,) if pod.spec.node_name and pod.status.phase not in TERMINAL_PHASES else ()


def _ids_of(pod: _UsedDevicesPod) -> Iterable[str]:
    for resources in ids_in(pod.metadata.annotations.get(names.OWN_DEVICES, "")).values():
        for ids in resources.values():
            yield from ids
    status = pod.status
    for container in (*(status.container_statuses or ()), *(status.init_container_statuses or ())):
        for entry in container.allocated_resources_status or ():
            yield from (one.resource_id for one in entry.resources or ())
