"""Applies the faults and GPU layouts that annotations of Nodes request to simulated nodes.

All state is read from the objects whenever they change, so a fault that was requested while this process did not run is
found at its next start. The id of a reboot is part of the node's bootID, so that a reboot is not repeated.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from shoal.client.item import Item, Obj
from shoal.client.kind import NODES
from shoal.client.kubelet.leases import Leases
from shoal.client.kubelet.times import written
from shoal.client.port import Api, Deletion, Patch
from shoal.client.refusals import NotFoundError
from shoal.devices.mig_demand import settings_of
from shoal.devices.names import OWN_MIG_LAYOUT
from shoal.embedded.gpus.mig_manager import STATE
from shoal.embedded.gpus.node_gpus import Complaint
from shoal.embedded.kubelets.cluster_policy import ClusterPolicy
from shoal.embedded.kubelets.context import FleetContext
from shoal.embedded.kubelets.faults import (
    COMPONENT_FAULTS,
    FAULT,
    GPU_FAULTS,
    ComponentFault,
    Fault,
    component_faults_of,
    fault_of,
    gpu_faults_of,
)
from shoal.embedded.kubelets.node_object import boot_id_of
from shoal.embedded.kubelets.node_registration import NodeHead, NodeRegistration, record_node_event
from shoal.embedded.kubelets.simulated_node import SimulatedNode
from shoal.units.errors import ConflictError, ShoalError, TemporaryError, UserError

_log = logging.getLogger("shoal.kubelets")
_SPOT_TAINT = "aws-node-termination-handler/spot-itn"
_NO_LABEL = re.compile(r"[^A-Za-z0-9_.-]")
_AGAIN_S = 2.0
_LEAVE_S = 40.0
"""The maximum time that a leaving node waits for its pods."""
T = TypeVar("T")


class NodeFaults:
    def __init__(self, api: Api, context: FleetContext, keeper: NodeRegistration, leases: Leases) -> None:
        self._api = api
        self._context = context
        self._registration = keeper
        self._leases = leases
        self._faults: dict[str, Fault] = {}
        self._component_faults: dict[str, dict[str, ComponentFault]] = {}
        self._complained: dict[tuple[str, str], str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.policy: ClusterPolicy | None = None
        """The policy that applies to nodes in addition to their labels."""

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def see(self, node: SimulatedNode, item: Item, configs: Mapping[str, Obj]) -> None:
        """Handle a new or changed Node."""
        head = item.read(NodeHead).metadata
        before = self._faults.get(node.name)
        fault = self._read(node, FAULT, lambda: fault_of(head.annotations), before)
        gpus = len(node.machine.gpus)
        gpu_faults = self._read(node, GPU_FAULTS, lambda: gpu_faults_of(head.annotations, gpus), node.gpu_faults)
        if fault != before:
            if fault is None:
                del self._faults[node.name]
                self._heal(node, before)
            else:
                self._faults[node.name] = fault
                self._begin(node, fault, item)
        if node.is_reachable():
            self._follow_components(node, head.annotations)
            settings = {**head.labels, **settings_of(head.annotations)}
            self._follow_gpus(node, settings, gpu_faults, configs)

    def _read(self, node: SimulatedNode, annotation: str, read: Callable[[], T], present: T) -> T:
        """An annotation that cannot be parsed changes nothing and is reported once."""
        key = (node.name, annotation)
        try:
            found = read()
        except UserError as error:
            if self._complained.get(key) != str(error):
                self._complained[key] = str(error)
                record_node_event(self._context, node, "InvalidAnnotation", str(error), "Warning")
            return present
        self._complained.pop(key, None)
        return found

    def _follow_components(self, node: SimulatedNode, annotations: Mapping[str, str]) -> None:
        present: dict[str, ComponentFault] = self._component_faults.get(node.name, {})
        found = self._read(node, COMPONENT_FAULTS, lambda: component_faults_of(annotations), present)
        self._component_faults[node.name] = found
        node.set_component_faults(found)

    def _follow_gpus(
        self, node: SimulatedNode, labels: Mapping[str, str], gpu_faults: dict[int, int], configs: Mapping[str, Obj]
    ) -> None:
        changed = False
        if gpu_faults != node.gpu_faults:
            changed = True
            for words in node.set_gpu_faults(gpu_faults):
                type_ = "Normal" if words.endswith("again") else "Warning"
                record_node_event(self._context, node, "XidError" if type_ == "Warning" else "GpuMended", words, type_)
        if node.machine.gpus:
            if labels.get(STATE) == "failed" or OWN_MIG_LAYOUT in labels:
                node.recall_devices()
            before = dict(node.gpus.labels())
            if self.policy is not None:
                labels, configs = self.policy.applied(labels, configs)
            said = node.gpus.configure(labels, configs)
            for words in said:
                type_ = "Warning" if isinstance(words, Complaint) else "Normal"
                record_node_event(self._context, node, "GpuConfigChanged", words, type_)
            changed = changed or bool(said) or before != dict(node.gpus.labels())
        if changed:
            self._registration.writes.add(node.name)

    # -- faults of whole nodes ----------------------------------------------------------------------------------------

    def _begin(self, node: SimulatedNode, fault: Fault, item: Item) -> None:
        if fault.kind == "fail":
            node.fail()
        elif fault.kind == "partition":
            # A node without power stays without power when it is disconnected.
            node.mode = "down" if node.mode == "down" else "cut"
        elif fault.kind == "reboot":
            self._run(node, self._reboot(node, fault, item))
        else:
            self._run(node, self._interrupt(node, fault))

    def _heal(self, node: SimulatedNode, before: Fault | None) -> None:
        if before is not None and before.kind == "spot-interrupt" and node.mode != "gone":
            self._run(node, self._surely(lambda: self._notice(node, None)))
        if node.mode == "down":
            node.boot(before.id if before is not None and before.id else str(self._context.clock.seconds()))
            self._back(node)
        elif node.mode == "cut":
            node.join()
            self._back(node)
        elif node.not_ready:
            node.not_ready = ""
            self._back(node)

    def _back(self, node: SimulatedNode) -> None:
        self._leases.now(node.name)
        self._registration.writes.add(node.name)

    async def _reboot(self, node: SimulatedNode, fault: Fault, item: Item) -> None:
        context = self._context
        boot_id = boot_id_of(node.name, fault.id)
        known: Any = (item.obj().get("status") or {}).get("nodeInfo") or {}
        if not self._is_on(node, fault):
            return
        if known.get("bootID") != boot_id:
            node.not_ready = "node is shutting down"
            self._registration.writes.add(node.name)
            await context.clock.sleep(1.0)
            if not self._is_on(node, fault):
                return
            node.fail()
            await context.clock.sleep(context.settings.reboot_s)
            if not self._is_on(node, fault):
                return
            node.boot(fault.id)
            self._back(node)
            words = f"Node {node.name} has been rebooted, boot id: {boot_id}"
            record_node_event(context, node, "Rebooted", words, "Warning")
            await context.clock.sleep(1.0)
        node.boot_id = boot_id
        await self._surely(lambda: self._registration.annotate(node.name, {FAULT: None}))

    async def _interrupt(self, node: SimulatedNode, fault: Fault) -> None:
        """The interruption of a spot machine: two minutes of notice, then the machine is removed."""
        if not self._is_on(node, fault):
            return
        context = self._context
        notice_s = context.settings.spot_notice_s
        at = written(context.clock.seconds() + notice_s)
        record_node_event(
            context, node, "SpotInterruption", f"Spot ITN received. Instance will be interrupted at {at} ", "Normal"
        )
        taint = {"key": _SPOT_TAINT, "value": _NO_LABEL.sub("-", fault.id)[:63].strip("-_."), "effect": "NoSchedule"}
        await self._surely(lambda: self._notice(node, taint))
        await context.clock.sleep(notice_s)
        if not self._is_on(node, fault):
            return
        node.not_ready = "node is shutting down"
        node.shut_down()
        self._registration.writes.add(node.name)
        ends = context.clock.seconds() + _LEAVE_S
        while context.clock.seconds() < ends and not node.pods.is_quiet():
            await context.clock.sleep(1.0)
        if not self._is_on(node, fault):
            return
        node.mode = "gone"
        node.pods.silence()
        await self._surely(lambda: self._api.delete(NODES, "", node.name, Deletion()))

    async def _notice(self, node: SimulatedNode, taint: Obj | None) -> None:
        """Add or remove the taint that keeps new pods away. The list is written as a whole, so it is read first."""
        found = (await self._api.get(NODES, "", node.name)).obj()
        others = [one for one in found["spec"].get("taints") or () if one["key"] != _SPOT_TAINT]
        spec = {"unschedulable": True if taint else None, "taints": [*others, *([taint] if taint else ())]}
        body = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "spec": spec}
        await self._api.patch(NODES, "", node.name, Patch("merge", body))

    def _is_on(self, node: SimulatedNode, fault: Fault) -> bool:
        """Whether the fault was neither removed nor replaced during the wait."""
        return self._faults.get(node.name) == fault

    async def _surely(self, write: Callable[[], Awaitable[object]]) -> None:
        """Retries until the server has the change, because no other event ends a fault."""
        while True:
            try:
                await write()
            except (TemporaryError, ConflictError):
                await self._context.clock.sleep(_AGAIN_S)
            else:
                return

    def _run(self, node: SimulatedNode, work: Any) -> None:
        async def carefully() -> None:
            try:
                await work
            except NotFoundError:
                return
            except ShoalError as error:
                record_node_event(self._context, node, "FaultFailed", str(error), "Warning")
            except Exception as error:  # noqa: BLE001 - the task is not awaited, so no other code would report it
                _log.exception("a fault of node %s could not be carried out", node.name)
                record_node_event(self._context, node, "FaultFailed", f"{type(error).__name__}: {error}", "Warning")

        task = asyncio.ensure_future(carefully())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
