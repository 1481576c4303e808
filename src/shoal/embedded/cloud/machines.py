"""Boots the machines of the simulated cloud as nodes of a fleet, and ends them.

A machine registers with a kubelet that is not ready, becomes ready, advertises its devices later, and loses its startup
taints last, at the times of the settings. Before the last two, labels promise GPUs that no resource has yet, as on real
machines. The times count from the request, so a process that is started again continues where they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from shoal.autoscale.nodes.instance_types import SPOT
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import CONFIG_MAPS, NODES
from shoal.client.port import Patch
from shoal.client.refusals import NotFoundError
from shoal.embedded.cloud.chance import Chance
from shoal.embedded.cloud.machine_types import machine_of
from shoal.embedded.cloud.records import InstanceRecord, is_record, record_of
from shoal.embedded.cloud.settings import CloudSettings
from shoal.embedded.cloud.simulated_cloud import provider_id_of, write_deleted
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_software import NodeSoftware, first_software
from shoal.embedded.kubelets.fleet import Fleet
from shoal.embedded.kubelets.simulated_node import SimulatedNode
from shoal.embedded.machines.gpu_software import Layer
from shoal.embedded.machines.machine import Machine
from shoal.units.errors import ConflictError, TemporaryError

_log = logging.getLogger("shoal.cloud")
_STARTING: Final = "container runtime network not ready: cni plugin not initialized"
_BEFORE_DEVICES: Final[frozenset[Layer]] = frozenset({"discovery", "driver", "toolkit", "feature-discovery"})
STARTUP_TAINTS: Final = "shoal.dev/startup-taints"
"""The tag of a request with the keys of its startup taints."""
_AGAIN_S: Final = 2.0


class CloudMachines:
    def __init__(
        self,
        context: Context,
        fleet: Fleet,
        settings: CloudSettings,
        completed: Callable[[Machine], Machine] = lambda machine: machine,
    ) -> None:
        """`completed`: adds to a machine what its fleet knows, such as the address of its endpoint."""
        self.name = "cloud-machines"
        self._context = context
        self._clock = context.clock
        self._fleet = fleet
        self._settings = settings
        self._completed = completed
        self._chance = Chance(settings)
        self._records = context.informers.of(CONFIG_MAPS)
        self._lives: dict[str, asyncio.Task[None]] = {}
        """By instance."""
        self._nodes: dict[str, str] = {}
        """The node of each instance."""
        self._numbers: Counter[str] = Counter()
        """How many machines each zone has had."""
        self._is_running = False
        self._records.on_change(self._changed)

    async def run(self) -> None:
        """Until cancelled."""
        await self._context.informers.synced((CONFIG_MAPS, NODES))
        self._is_running = True
        for item in self._records:
            self._changed(None, item)
        try:
            await asyncio.Event().wait()
        finally:
            self._is_running = False
            for life in tuple(self._lives.values()):
                life.cancel()
            await asyncio.gather(*self._lives.values(), return_exceptions=True)
            self._lives.clear()

    def _changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None or not self._is_running or not is_record(item):
            return
        record = record_of(item)
        if record is None:
            return
        present = frozenset(record.present()) if after is not None else frozenset()
        for instance in record.ids():
            if instance in present:
                self._begin(record, instance)
            else:
                self._end(instance)

    def _begin(self, record: InstanceRecord, instance: str) -> None:
        if instance not in self._lives and self._chance.registers(instance):
            self._lives[instance] = asyncio.ensure_future(self._carefully(record, instance))

    def _end(self, instance: str) -> None:
        life = self._lives.pop(instance, None)
        if life is not None:
            life.cancel()
        node = self._nodes.pop(instance, None)
        if node is not None:
            self._fleet.remove(node)

    async def _carefully(self, record: InstanceRecord, instance: str) -> None:
        try:
            await self._live(record, instance)
        except Exception:  # noqa: BLE001 - the task is not awaited, so no other code would report it
            _log.exception("instance i-%s failed", instance)

    async def _live(self, record: InstanceRecord, instance: str) -> None:
        """Boot, and run until the cloud takes the machine back."""
        lifetime_s = self._chance.lifetime_s(instance) if record.request.capacity_type == SPOT else None
        if lifetime_s is None:
            await self._boot(record, instance)
            return
        booting = asyncio.ensure_future(self._boot(record, instance))
        try:
            await self._clock.sleep(record.created_s + lifetime_s - self._clock.seconds())
        finally:
            booting.cancel()
            await asyncio.gather(booting, return_exceptions=True)
        name = self._nodes.get(instance)
        node = None if name is None else self._fleet.node(name)
        if node is not None:
            node.shut_down()
        self._lives.pop(instance, None)
        self._end(instance)
        await write_deleted(self._context.api, record, frozenset({instance}))

    async def _boot(self, record: InstanceRecord, instance: str) -> None:
        request = record.request
        number = self._numbers[request.zone]
        machine = machine_of(request, instance, provider_id_of(request, instance), number)
        if machine is None:
            return
        machine = self._completed(machine)
        self._numbers[request.zone] += 1
        await self._until(record, "registered")
        self._nodes[instance] = machine.name
        node = await self._registered(record, machine)
        await self._until(record, "ready")
        if node.not_ready == _STARTING:
            node.not_ready = ""
            self._fleet.report(node.name)
        await self._until(record, "devices")
        if isinstance(node.gpus, DeviceManager) and node.gpus.software.layers == _BEFORE_DEVICES:
            node.gpus.set_software(first_software(machine.gpu_software))
            self._fleet.report(node.name)
        await self._until(record, "startup-done")
        await self._remove_startup_taints(record, machine)

    async def _registered(self, record: InstanceRecord, machine: Machine) -> SimulatedNode:
        while True:
            try:
                return await self._fleet.add(machine, self._prepared(record))
            except (ConflictError, TemporaryError):
                await self._clock.sleep(_AGAIN_S)

    def _is_past(self, record: InstanceRecord, phase: str) -> bool:
        return self._clock.seconds() >= record.created_s + self._settings.at_s(phase)

    async def _until(self, record: InstanceRecord, phase: str) -> None:
        await self._clock.sleep(record.created_s + self._settings.at_s(phase) - self._clock.seconds())

    def _prepared(self, record: InstanceRecord) -> _Preparation:
        return _Preparation(self._is_past(record, "ready"), self._is_past(record, "devices"))

    async def _remove_startup_taints(self, record: InstanceRecord, machine: Machine) -> None:
        """What the agents on a real node do once they work."""
        keys = frozenset(filter(None, record.request.tags.get(STARTUP_TAINTS, "").split(",")))
        while keys:
            try:
                found = (await self._context.api.get(NODES, "", machine.name)).obj()
                taints = found["spec"].get("taints") or []
                left = [each for each in taints if each["key"] not in keys]
                if len(left) < len(taints):
                    meta = {"resourceVersion": found["metadata"]["resourceVersion"]}
                    body = {"metadata": meta, "spec": {"taints": left}}
                    await self._context.api.patch(NODES, "", machine.name, Patch("merge", body))
            except NotFoundError:
                return
            except (ConflictError, TemporaryError):
                await self._clock.sleep(_AGAIN_S)
            else:
                return


class _Preparation(msgspec.Struct, frozen=True):
    """What a machine that registers has not done yet."""

    is_ready: bool
    has_devices: bool

    def __call__(self, node: SimulatedNode) -> None:
        if not self.is_ready:
            node.not_ready = _STARTING
        if not self.has_devices and isinstance(node.gpus, DeviceManager) and node.machine.gpu_software == "included":
            node.gpus.begin_with(NodeSoftware(_BEFORE_DEVICES))
