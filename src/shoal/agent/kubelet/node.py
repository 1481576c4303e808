"""Registers this machine as a Node and keeps its status and its Lease up to date."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from shoal.agent.kubelet.machine import ThisMachine
from shoal.client.clock import Clock
from shoal.client.kind import NODES
from shoal.client.kubelet.leases import Leases
from shoal.client.kubelet.node_conditions import NodeVerdict, conditions
from shoal.client.port import Api, Patch
from shoal.client.refusals import AlreadyExistsError, ForbiddenError, RefusedError
from shoal.devices.feature_labels import COMING_AND_GOING
from shoal.units.errors import TemporaryError

Obj = dict[str, Any]
_log = logging.getLogger("shoal.agent.kubelet")
KUBELET_VERSION = "v1.36.0"
RUNTIME_LABEL = "shoal.dev/runtime"
"""A label of nodes that run real pods, and the taint that keeps other pods away from a node without containers."""
_UNHEALTHY = "ContainerRuntimeUnhealthy"
_WEB_SOCKETS = "ExtendWebSocketsToKubelet"
_LEASE_S, _STATUS_S = 10.0, 300.0


class NodeDescription(msgspec.Struct, frozen=True):
    machine: ThisMachine
    runtime: str
    """`process`."""
    containers: str = ""
    """The container runtime and its version, such as `containerd://1.6.20`; empty without one."""
    containers_problem: str = ""
    """Why the container runtime does not answer; empty while it does."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    resources: Mapping[str, str] = {}
    """GPUs."""
    healthy: Mapping[str, str] = {}
    """Those that can be given to pods now."""
    kubelet_port: int = 0

    def allocatable(self) -> dict[str, str]:
        return {**self.machine.allocatable(), **self.healthy}

    def head(self) -> Obj:
        machine = self.machine
        labels = {
            **self.labels,
            "kubernetes.io/hostname": machine.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": machine.architecture(),
            RUNTIME_LABEL: self.runtime,
        }
        return {"name": machine.name, "labels": labels, "annotations": dict(self.annotations)}

    def status(self, before: Obj, now_s: float) -> Obj:
        machine = self.machine
        old = {one["type"]: one for one in before.get("conditions") or ()}
        capacity: Obj = {**machine.capacity(), **self.resources}
        allocatable: Obj = self.allocatable()
        # A merge patch removes resources that the node has no longer.
        capacity.update(dict.fromkeys((before.get("capacity") or {}).keys() - capacity.keys()))
        allocatable.update(dict.fromkeys((before.get("allocatable") or {}).keys() - allocatable.keys()))
        return {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": conditions(old, now_s, others=self._runtime_condition()),
            "addresses": [
                {"type": "InternalIP", "address": machine.address},
                {"type": "Hostname", "address": machine.name},
            ],
            "declaredFeatures": [_WEB_SOCKETS],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.kubelet_port}},
            "nodeInfo": {
                "architecture": machine.architecture(),
                "bootID": machine.boot_id,
                "containerRuntimeVersion": self.containers or f"{self.runtime}://1",
                "kernelVersion": machine.kernel,
                "kubeProxyVersion": "",
                "kubeletVersion": KUBELET_VERSION,
                "machineID": machine.machine_id,
                "operatingSystem": "linux",
                "osImage": machine.system,
                "systemUUID": machine.machine_id,
            },
        }

    def taints(self, before: Sequence[Obj]) -> list[Obj]:
        """Pods that need containers are kept away from a node without them."""
        others = [one for one in before if one["key"] != RUNTIME_LABEL]
        own = {"key": RUNTIME_LABEL, "value": self.runtime, "effect": "NoSchedule"}
        return others if self.containers else [*others, own]

    def _runtime_condition(self) -> Sequence[NodeVerdict]:
        if not self.containers:
            return ()
        if self.containers_problem:
            return ((_UNHEALTHY, "True", "ContainerRuntimeUnhealthy", self.containers_problem),)
        words = "Container runtime on the node is functioning properly"
        return ((_UNHEALTHY, "False", "ContainerRuntimeIsHealthy", words),)


class NodeOfThisMachine:
    def __init__(self, api: Api, clock: Clock, describe: Callable[[], NodeDescription]) -> None:
        self._api, self._clock, self._describe = api, clock, describe
        self._uid = ""
        self._written: dict[str, set[str]] = {"labels": set(), "annotations": set()}
        """The names of what this process wrote last."""
        self._due = asyncio.Event()
        self._leases = Leases(api, clock, _LEASE_S, lambda _: self._uid)

    @property
    def name(self) -> str:
        return self._describe().machine.name

    async def register(self) -> None:
        """When this returns, the Node exists with its status, and its Lease is renewed."""
        described = self._describe()
        status = described.status({}, self._clock.seconds())
        body = {"metadata": described.head(), "spec": {"taints": described.taints(())}, "status": status}
        try:
            created = await self._api.create(NODES, body)
            self._uid = created.uid
            self._written = {field: {*described.head()[field]} for field in self._written}
        except AlreadyExistsError:
            await self._correct_taint(described)
            await self.write()
        self._leases.start(described.machine.name, 1.0)

    async def _correct_taint(self, described: NodeDescription) -> None:
        """Add or remove the own taint. Kubernetes allows no node to change its taints once it exists."""
        name = described.machine.name
        before = (await self._api.get(NODES, "", name)).obj().get("spec", {}).get("taints") or []
        taints = described.taints(before)
        if sorted(map(_text, taints)) == sorted(map(_text, before)):
            return
        try:
            await self._api.patch(NODES, "", name, Patch("merge", {"spec": {"taints": taints}}))
        except ForbiddenError:
            change = f"{RUNTIME_LABEL}-" if described.containers else f"{RUNTIME_LABEL}={described.runtime}:NoSchedule"
            _log.warning("an administrator has to change a taint of this node: kubectl taint node %s %s", name, change)

    async def write(self) -> None:
        described, name = self._describe(), self.name
        found = await self._api.get(NODES, "", name)
        self._uid = found.uid
        body = {"metadata": self._own_metadata(described.head(), found.obj()["metadata"])}
        await self._api.patch(NODES, "", name, Patch("merge", body))
        status = described.status(found.obj().get("status") or {}, self._clock.seconds())
        await self._api.patch(NODES, "", name, Patch("strategic", {"status": status}), "status")

    def _own_metadata(self, head: Obj, before: Obj) -> Obj:
        """Labels and annotations, and those that no longer apply as null, which a merge patch removes."""
        written: Obj = {}
        for field in ("labels", "annotations"):
            own, there = head[field], before.get(field) or {}
            by_layout = {one for one in there if one.startswith(COMING_AND_GOING)}
            gone = ((self._written[field] & there.keys()) | by_layout) - own.keys()
            written[field] = {**own, **dict.fromkeys(gone)}
            self._written[field] = {*own}
        return written

    async def run(self) -> None:
        """Write the status periodically until cancelled."""
        try:
            while True:
                await self._due_or_later()
                try:
                    await self.write()
                except (TemporaryError, RefusedError):
                    self._clock.call_later(_LEASE_S, self.wake)
        except asyncio.CancelledError:
            await self._leases.close()
            raise

    def wake(self) -> None:
        """Let `run` write the status now."""
        self._due.set()

    async def _due_or_later(self) -> None:
        waits = [asyncio.ensure_future(self._due.wait()), asyncio.ensure_future(self._clock.sleep(_STATUS_S))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        self._due.clear()


def _text(taint: Obj) -> tuple[str, str, str]:
    return taint["key"], taint.get("value", ""), taint["effect"]
