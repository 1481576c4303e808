"""Keeps the Node objects of a fleet and its simulated machines consistent, including changes by users.

It writes the object at the start (or the differences, if it exists), the status at least every five minutes and when it
changes or is Unknown, and the labels and annotations that depend on the GPUs. A Node that a user deletes stays deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.api.partial import ConditionsStatus, LabeledMeta
from shoal.client.item import Item, Obj
from shoal.client.kind import NODES
from shoal.client.kubelet.node_conditions import conditions
from shoal.client.kubelet.slice_publisher import SlicePublisher
from shoal.client.kubelet.writes import Writes
from shoal.client.port import Api, Patch
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.devices.mig_demand import DYNAMIC
from shoal.devices.names import OWN_MIG_LAYOUT
from shoal.devices.resource_slices import Published
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.kubelets.context import FleetContext
from shoal.embedded.kubelets.node_object import node_of, node_status
from shoal.embedded.kubelets.simulated_node import SimulatedNode

_LAYOUT = "nvidia.com/mig.config"
Differences = dict[str, str | None]


class NodeHead(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Node that users change and its kubelet follows."""

    metadata: LabeledMeta


class _Judged(msgspec.Struct, frozen=True, gc=False):
    status: ConditionsStatus = ConditionsStatus()

    @property
    def is_unknown(self) -> bool:
        return any(one.type == "Ready" and one.status == "Unknown" for one in self.status.conditions or ())


class NodeRegistration:
    def __init__(self, api: Api, context: FleetContext, nodes: Mapping[str, SimulatedNode]) -> None:
        self._api = api
        self._context = context
        self._nodes = nodes
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._published: dict[str, Published] = {}
        """The devices for claims that this process has published."""
        self.writes: Writes[str] = Writes(context.clock, 8, self._write)

    async def register(self, node: SimulatedNode) -> None:
        """When this returns, the Node exists with its status."""
        present = self._context.nodes.get("", node.name)
        if present is None:
            obj = node_of(node.machine, node.gpus)
            obj["status"] = self._status(node, {})
            try:
                await self._api.create(NODES, obj)
            except AlreadyExistsError:
                await self._api.get(NODES, "", node.name)
            else:
                record_node_event(self._context, node, "Starting", "Starting kubelet.")
                await self._publish(node)
                return
        else:
            annotations = present.read(NodeHead).metadata.annotations
            if DYNAMIC in (annotations.get(OWN_MIG_LAYOUT), present.read(NodeHead).metadata.labels.get(OWN_MIG_LAYOUT)):
                node.gpus.recall(annotations)
        await self._write(node.name)

    def see(self, node: SimulatedNode, item: Item) -> None:
        """A node without heartbeats, for example after its machine was suspended, is Unknown and reports its state
        later.
        """
        if node.is_reachable() and item.read(_Judged).is_unknown:
            self.writes.add(node.name)

    def refresh(self, node: SimulatedNode, share: float) -> None:
        """Write the status periodically, the first time after this share of the period."""
        every_s = self._context.settings.status_every_s

        def ring(wait_s: float = every_s) -> None:
            self._timers[node.name] = self._context.clock.call_later(wait_s, ring)
            if wait_s == every_s:
                self.writes.add(node.name)

        ring(every_s * (share + 1.0))

    def stop(self, name: str) -> None:
        """The machine is gone: nothing of it is written any more."""
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
        self._published.pop(name, None)

    async def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        await self.writes.close()

    async def annotate(self, node: str, differences: Differences) -> None:
        await self._api.patch(NODES, "", node, Patch("merge", {"metadata": {"annotations": differences}}))

    async def _write(self, name: str) -> None:
        """Write changed labels and annotations, then the status."""
        node = self._nodes.get(name)
        item = self._context.nodes.get("", name)
        if node is None or item is None or not node.is_reachable():
            return
        try:
            await self._write_head(node, item)
            now = self._context.nodes.get("", name) or item
            status = self._status(node, now.obj().get("status") or {})
            await self._api.patch(NODES, "", name, Patch("strategic", {"status": status}), "status")
            await self._publish(node)
        except NotFoundError:
            node.mode = "gone"

    async def _publish(self, node: SimulatedNode) -> None:
        """Write the ResourceSlices of the node, if its devices have changed and its driver works."""
        is_working = isinstance(node.gpus, DeviceManager) and node.gpus.software.has("device-plugin")
        content = node.claimed.published() if node.claimed is not None and is_working else None
        if content is not None and content != self._published.get(node.name):
            await SlicePublisher(self._api, node.name).publish(content)
            self._published[node.name] = content

    async def _write_head(self, node: SimulatedNode, item: Item) -> None:
        head = item.read(NodeHead).metadata
        wanted = node_of(node.machine, node.gpus)["metadata"]
        # Users choose the layout; the machine's own choice applies only without one.
        chosen = {_LAYOUT} & head.labels.keys()
        follows = {**wanted["labels"], **node.gpus.labels()}
        labels = _differences(head.labels, {key: value for key, value in follows.items() if key not in chosen})
        annotations = _differences(head.annotations, {**wanted["annotations"], **node.gpus.annotations()})
        if labels or annotations:
            body = {"metadata": {"labels": labels, "annotations": annotations}}
            await self._api.patch(NODES, "", node.name, Patch("merge", body))

    def _status(self, node: SimulatedNode, before: Obj) -> Obj:
        context = self._context
        status: Obj = node_status(node.machine, node.gpus, context.settings, node.address, node.boot_id)
        for name in ("capacity", "allocatable"):
            gone = (before.get(name) or {}).keys() - status[name].keys()
            status[name] |= dict.fromkeys(gone)
        old: dict[str, Any] = {one["type"]: one for one in before.get("conditions") or ()}
        others = node.gpu_verdicts()
        status["conditions"] = conditions(old, context.clock.seconds(), not_ready=node.not_ready, others=others)
        return status


def record_node_event(
    context: FleetContext, node: SimulatedNode, reason: str, message: str, type_: str = "Normal"
) -> None:
    """As in the kubelet's Events about a node, the uid is the node's name."""
    about = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": node.name, "uid": node.name}}
    warns = type_ == "Warning"
    context.events.record(about, reason, message, type_="Warning" if warns else "Normal", host=node.name)


def _differences(present: Mapping[str, str], wanted: Mapping[str, str | None]) -> Differences:
    return {key: value for key, value in wanted.items() if present.get(key) != value}
