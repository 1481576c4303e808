"""Runs all simulated nodes of one process, as an ordinary client of any API server.

One loop runs one node or thousands: with shared caches, a timer only for each pod with a due action, and a bounded
number of concurrent writes. All state is in the objects, so that a fleet that is killed and started again with the same
machines continues: registered nodes are kept, and running pods continue to run.

Rejected: a task for each node and pod. A thousand nodes would be ten thousand tasks that wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from zlib import crc32

import msgspec

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.context import Context
from shoal.client.informer import Handler, Informer
from shoal.client.item import Item, Obj
from shoal.client.kind import CONFIG_MAPS, NODES, PODS, RESOURCE_CLAIMS, Kind
from shoal.client.kubelet.leases import Leases
from shoal.client.kubelet.pod_facts import PartialPod, summary_of
from shoal.client.kubelet.writes import Writes
from shoal.devices.config_maps import NAMESPACES
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.kubelets.addresses import NETWORK, SIZE, Addresses
from shoal.embedded.kubelets.context import FleetContext
from shoal.embedded.kubelets.node_faults import NodeFaults
from shoal.embedded.kubelets.node_registration import NodeRegistration
from shoal.embedded.kubelets.pod_writer import PodWriter
from shoal.embedded.kubelets.policy_watch import PolicyWatch
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.embedded.kubelets.simulated_node import SimulatedNode
from shoal.embedded.kubelets.stage_files import read_stages
from shoal.embedded.kubelets.timetable import Timetable
from shoal.embedded.machines.machine import Machine
from shoal.units.errors import UserError

_log = logging.getLogger("shoal.kubelets")


class Fleet:
    def __init__(
        self,
        context: Context,
        machines: Sequence[Machine],
        settings: FleetSettings | None = None,
        summary_of: Callable[[Item], PartialPod] = summary_of,
    ) -> None:
        """Raises UserError for stage files that cannot be read, and for two machines of one name."""
        self._settings = settings or FleetSettings()
        self._summary_of = summary_of
        informers = context.informers
        self.name = context.name
        self._context = context
        self._clock = context.clock
        self._pods, self._node_items = informers.of(PODS), informers.of(NODES)
        self._config_maps = informers.of(CONFIG_MAPS)
        gives_by_claims = any(machine.gives_by_claims for machine in machines)
        self._claims = informers.of(RESOURCE_CLAIMS) if gives_by_claims else None
        self._followed: set[Kind] = set()
        stages = read_stages(self._settings.stage_folders)
        self._timetable = Timetable(stages, self._settings.pull_s, context.draw.getrandbits(32))
        self._machines: dict[str, Machine] = {}
        for machine in machines:
            if machine.name in self._machines:
                raise UserError(f"two machines are called {machine.name}")
            self._machines[machine.name] = machine
        self._is_running = self._has_run = False
        self._begun = asyncio.Event()
        """Set while machines can be added."""
        self._make()

    def _make(self) -> None:
        """Create the state of one run. The next run creates it again, regardless of how this one ended."""
        context, settings = self._context, self._settings
        self._configs: dict[str, Obj] = {}
        self._nodes: dict[str, SimulatedNode] = {}
        self._fleet_context = FleetContext(
            context.clock,
            self._pods,
            self._node_items,
            self._timetable,
            Addresses(),
            settings,
            context.events.named("kubelet"),
            lambda node, uid: self._pod_writes.add((node, uid)),
            lambda node: self._registration.writes.add(node),  # noqa: PLW0108 - `_registration` does not exist yet
            self._software_changed,
            self._claims,
            self._summary_of,
        )
        make = settings.gpus or DeviceManager
        for machine in self._machines.values():
            self._nodes[machine.name] = SimulatedNode(machine, make(machine), self._fleet_context)
        writer = PodWriter(context.api, self._fleet_context, self._nodes)
        self._pod_writes: Writes[tuple[str, str]] = Writes(context.clock, settings.writers, writer.write)
        self._registration = NodeRegistration(context.api, self._fleet_context, self._nodes)
        self._leases = Leases(context.api, context.clock, settings.lease_every_s, self._owner_uid)
        self._faults = NodeFaults(context.api, self._fleet_context, self._registration, self._leases)
        self._policies = PolicyWatch(context, self._configs_changed)

    def names(self) -> Sequence[str]:
        return tuple(self._nodes)

    def node(self, name: str) -> SimulatedNode | None:
        return self._nodes.get(name)

    async def run(self) -> None:
        """Runs until cancelled. All nodes are registered before any pod is read. It may be called again after its end,
        and then continues as another process would.
        """
        if self._has_run:
            self._make()
        self._has_run = True
        try:
            claims = () if self._claims is None else (RESOURCE_CLAIMS,)
            await self._context.informers.synced((PODS, NODES, CONFIG_MAPS, *claims))
            self._give_addresses()
            for node in self._nodes.values():
                node.recall_components()
            await self._register()
            self._is_running = True
            self._configs = {_name(item): item.obj() for item in self._config_maps if _is_config(item)}
            self._follow(self._config_maps, self._on_config)
            self._follow(self._node_items, self._on_node)
            self._take_over()
            self._follow(self._pods, self._on_pod)
            self._policies.start()
            self._begun.set()
            await asyncio.Event().wait()
        finally:
            self._is_running = False
            self._begun.clear()
            for node in self._nodes.values():
                node.pods.silence()
            for part in (self._policies, self._pod_writes, self._registration, self._leases, self._faults):
                await part.close()

    # -- nodes that come and go ---------------------------------------------------------------------------------------

    async def add(self, machine: Machine, prepare: Callable[[SimulatedNode], None]) -> SimulatedNode:
        """Start a machine beside the others; returns once its Node exists. `prepare` is called before. A machine that
        is there already is left as it is."""
        await self._begun.wait()
        if machine.gives_by_claims and self._fleet_context.claims is None:
            self._claims = self._context.informers.of(RESOURCE_CLAIMS)
            await self._context.informers.synced((RESOURCE_CLAIMS,))
            self._fleet_context = msgspec.structs.replace(self._fleet_context, claims=self._claims)
        present = self._nodes.get(machine.name)
        if present is not None:
            return present
        make = self._settings.gpus or DeviceManager
        node = SimulatedNode(machine, make(machine), self._fleet_context)
        item = self._node_items.get("", machine.name)
        addresses = self._fleet_context.addresses
        address = "" if item is None else item.read(_NodeWithAddresses).internal_ip()
        if not (address and addresses.claim(address, machine.name)):
            address = self._settings.kubelet_address or machine_address(addresses, machine.name)
        node.pods.host_ip = address
        prepare(node)
        self._machines[machine.name] = machine
        self._nodes[machine.name] = node
        node.recall_components()
        try:
            await self._registration.register(node)
        except BaseException:
            self.remove(machine.name)
            raise
        self._leases.start(node.name, 0.0)
        self._registration.refresh(node, 0.0)
        if (now := self._node_items.get("", machine.name)) is not None:
            self._on_node(None, now)
        _tell(self._on_pod, self._fleet_context.pods_on(machine.name))
        return node

    def remove(self, name: str) -> None:
        """The machine ends at once; its Node stays until the control plane deletes it."""
        node = self._nodes.pop(name, None)
        self._machines.pop(name, None)
        if node is None:
            return
        node.mode = "gone"
        node.pods.silence()
        self._leases.stop(name)
        self._registration.stop(name)
        self._fleet_context.addresses.give(node.pods.host_ip, name)

    def report(self, name: str) -> None:
        """Write the status of a node whose state was changed."""
        self._registration.writes.add(name)

    # -- the start ----------------------------------------------------------------------------------------------------

    async def _register(self) -> None:
        """When this returns, every node is registered and sends heartbeats."""
        left = set(self._nodes)
        done = asyncio.Event()

        async def register(name: str) -> None:
            await self._registration.register(self._nodes[name])
            left.discard(name)
            if not left:
                done.set()

        registrations: Writes[str] = Writes(self._clock, self._fleet_context.settings.writers, register)
        try:
            for name in self._nodes:
                registrations.add(name)
            if left:
                await done.wait()
        finally:
            await registrations.close()
        for index, node in enumerate(self._nodes.values()):
            share = index / len(self._nodes)
            self._leases.start(node.name, share)
            self._registration.refresh(node, share)

    def _give_addresses(self) -> None:
        """Assign addresses to nodes: the existing address of a Node, else a free one. Existing objects keep their
        addresses.
        """
        addresses = self._fleet_context.addresses
        here = sorted((item for item in self._node_items if item.name in self._nodes), key=lambda item: item.name)
        there = [item for item in self._node_items if item.name not in self._nodes]
        if there:
            addresses.start_at(crc32(min(self._nodes, default="").encode()))
        for item in (*there, *here):
            address = item.read(_NodeWithAddresses).internal_ip()
            if addresses.claim(address, item.name) and item.name in self._nodes:
                self._nodes[item.name].pods.host_ip = address
        for node in self._nodes.values():
            known = self._settings.kubelet_address or node.address
            node.pods.host_ip = known or machine_address(addresses, node.name)
        for item in self._pods:
            # Unreadable objects are skipped here; a later step logs them.
            with suppress(msgspec.DecodeError):
                self._note_address(item.uid, self._summary_of(item))

    def _note_address(self, uid: str, summary: PartialPod, *, is_gone: bool = False) -> None:
        """Record the address of a pod that no node of this process runs at the moment."""
        status = summary.status
        if is_gone or status.phase in TERMINAL_PHASES:
            self._fleet_context.addresses.give(status.pod_ip, uid)
        elif status.pod_ip:
            self._fleet_context.addresses.claim(status.pod_ip, uid)

    def _take_over(self) -> None:
        """Running pods get their devices back before new pods get any."""
        ours = (item for name in self._nodes for item in self._fleet_context.pods_on(name))
        begun = [(item, summary) for item in ours if (summary := self._summary_of(item)).status.start_time is not None]
        _tell(self._on_pod, (item for item, _ in begun))

    def _follow(self, informer: Informer, handler: Handler) -> None:
        """A cache keeps its handlers permanently: a handler of an earlier run only gets the existing objects again."""
        if informer.kind in self._followed:
            _tell(handler, informer)
        else:
            self._followed.add(informer.kind)
            informer.on_change(handler)

    def _owner_uid(self, name: str) -> str:
        node = self._nodes.get(name)
        item = self._node_items.get("", name) if node is not None and node.is_reachable() else None
        return "" if item is None else item.uid

    # -- changes from the server
    # ------------------------------------------------------------------------------------------

    def _on_pod(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None or not self._is_running:
            return
        summary = self._summary_of(item)
        node = self._nodes.get(summary.spec.node_name)
        if node is None:
            # Another process may assign addresses of the same range.
            self._note_address(item.uid, summary, is_gone=after is None)
            return
        if not node.is_reachable():
            if item.uid not in node.pods.runs:
                self._note_address(item.uid, summary, is_gone=after is None)
            return
        if after is None:
            node.pods.lose(item.uid)
        else:
            node.pods.see(after, summary)

    def _on_node(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        node = self._nodes.get(item.name) if item is not None and self._is_running else None
        if node is None:
            return
        if after is None:
            node.mode = "gone"
            node.pods.silence()
        else:
            self._faults.see(node, after, self._configs)
            self._registration.see(node, after)

    def _on_config(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None or not self._is_running or not _is_config(item):
            return
        found = None if after is None else after.obj()
        if found == self._configs.get(_name(item)):
            return
        if found is None:
            del self._configs[_name(item)]
        else:
            self._configs[_name(item)] = found
        self._configs_changed()

    def _software_changed(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            return
        node.follow_software()
        # A component that works now follows the labels of the Node.
        self._see_again(node)
        self._registration.writes.add(name)

    def _see_again(self, node: SimulatedNode) -> None:
        present = self._node_items.get("", node.name)
        if present is not None:
            self._faults.see(node, present, self._configs)

    def _configs_changed(self) -> None:
        self._faults.policy = self._policies.policy
        for node in self._nodes.values():
            self._see_again(node)
        self._policies.remark([one.labels() for one in self._nodes.values() if one.machine.gpus], self._configs)


class _KubeletAddress(msgspec.Struct, frozen=True, gc=False):
    type: str
    address: str = ""


class _NodeAddressStatus(msgspec.Struct, frozen=True, gc=False):
    addresses: tuple[_KubeletAddress, ...] | None = None


class _NodeWithAddresses(msgspec.Struct, frozen=True, gc=False):
    status: _NodeAddressStatus = _NodeAddressStatus()

    def internal_ip(self) -> str:
        return next((one.address for one in self.status.addresses or () if one.type == "InternalIP"), "")


def machine_address(addresses: Addresses, name: str) -> str:
    """A free address; raises UserError if there is none."""
    chosen = addresses.take_for_node(name)
    if not chosen:
        raise UserError(f"there are more nodes than addresses: {NETWORK} has {SIZE}")
    return chosen


def _tell(handler: Handler, items: Iterable[Item]) -> None:
    for item in items:
        try:
            handler(None, item)
        except Exception:  # noqa: BLE001 - an error for one object must not stop the others
            _log.exception("%s/%s is passed over", *item.key)


def _is_config(item: Item) -> bool:
    return item.namespace in NAMESPACES


def _name(item: Item) -> str:
    return f"{item.namespace}/{item.name}"
