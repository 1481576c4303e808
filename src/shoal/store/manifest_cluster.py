"""Converts a set of manifests to the events that build the engine's facts; each object comes after the objects that it
refers to.

Guarantees: every error names file, document, object and field; skipped kinds are reported once each; equal documents
give equal events in any distribution over files, except for the order of pods with equal creation times.

A pod that ended uses nothing and is left out. A pod with scheduling gates has not arrived; it is listed separately.
Pods that wait come last, the oldest first, as in a queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shoal.api.claims import ResourceClaim, ResourceClaimTemplate
from shoal.api.decode import Document
from shoal.api.device_classes import DeviceClass
from shoal.api.disruption import PodDisruptionBudget, PriorityClass
from shoal.api.hyper_nodes import HyperNode
from shoal.api.meta import Namespace
from shoal.api.node import Node
from shoal.api.node_affinity import NodeAffinity
from shoal.api.node_resource_topology import NodeResourceTopology
from shoal.api.pod import Pod
from shoal.api.slices import ResourceSlice
from shoal.api.stated_capacity import on_stated_capacity
from shoal.api.topology import KaiTopology, KueueTopology
from shoal.api.workloads import DaemonSet
from shoal.data.gpus import PRODUCT_LABEL
from shoal.engine.asks import Ask
from shoal.engine.device_demand import PARTS
from shoal.engine.device_notation.names import OWN_DEVICES
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.events import (
    BudgetSeen,
    DaemonSetSeen,
    Event,
    GroupSeen,
    NamespaceSeen,
    OthersSeen,
    PodArrived,
    PodBound,
    TopologySeen,
)
from shoal.engine.from_api import (
    HyperTree,
    Priorities,
    Topologies,
    ask_of_pod,
    budget_facts_of,
    daemon_set_ask,
    ids_of_nodes,
    positions_of_pods,
)
from shoal.store.dra import Dra, dra_of
from shoal.store.gangs import GangMember, Gangs, gangs_of
from shoal.store.held_pods import HeldPod, Hold
from shoal.store.inventory import Inventory, Placed
from shoal.store.manifest_pods import FIRST, ManifestPods
from shoal.store.manifest_volumes import ManifestVolumes
from shoal.store.nodes import node_seen
from shoal.store.operator_pods import OperatorPods
from shoal.store.pod_warnings import PodWarnings
from shoal.store.running_kueue import runs_kueue
from shoal.units.errors import UserError

_OWN_SCHEDULERS = ("shoal", "kai-scheduler", "volcano")
"""The scheduler name whose pods `shoal run` places by default."""

Affinities = Mapping[str, NodeAffinity | None]
"""Affinity that a scheduler adds to its pods, by scheduler name."""


@dataclass(slots=True)
class ManifestCluster:
    """The cluster that the manifests describe."""

    events: list[Event] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    gated: dict[str, Hold] = field(default_factory=dict)
    """Pods that are held back, by scheduling gates or by a queue."""
    held_asks: dict[str, Ask] = field(default_factory=dict)
    """What those of them ask for that have objects."""
    schedulers: list[str] = field(default_factory=list)
    """Names of the schedulers that waiting pods ask for, in order of first mention."""
    waiting: list[Placed[Pod]] = field(default_factory=list)
    """Pods to be scheduled, in the order of the manifests."""
    before_queues: list[Event] = field(default_factory=list)
    """The events with the pods that queues of Volcano and KAI hold back; empty if they hold none."""
    queued: frozenset[str] = frozenset()
    """Pods of Kueue's workloads, which wait for these."""
    now_s: float = 0.0
    """The latest time in the manifests, which is taken as the time of the snapshot."""


def manifest_cluster_of(documents: Iterable[Document], added: Affinities | None = None) -> ManifestCluster:
    """The cluster that the documents describe."""
    return _ManifestReader(Inventory(documents), added or {}).manifests()


class _ManifestReader:
    def __init__(self, inventory: Inventory, added: Affinities) -> None:
        self._inventory = inventory
        self._added = added
        operators = OperatorPods(inventory)
        self._cluster = ManifestCluster(warnings=inventory.skipped(operators.read))
        self._priorities = Priorities(placed.value for placed in inventory.of(PriorityClass))
        self._tree = HyperTree(
            [(placed.value, placed.where) for placed in inventory.of(HyperNode)],
            [(placed.value.metadata.name, placed.value.metadata.labels) for placed in inventory.of(Node)],
        )
        self._cluster.warnings += self._tree.warnings
        self._topologies = Topologies(
            (placed.value for placed in inventory.of(KueueTopology)),
            (placed.value for placed in inventory.of(KaiTopology)),
            self._tree,
        )
        self._pods = ManifestPods(inventory, self._priorities, operators, self._cluster.warnings)
        products = {placed.value.metadata.labels.get(PRODUCT_LABEL, "") for placed in inventory.of(Node)}
        self._warnings = PodWarnings(products)
        self._positions: dict[str, DevicePositions] = {}
        self._dra = Dra()
        self._volumes = ManifestVolumes(inventory, self._cluster.warnings)

    def manifests(self) -> ManifestCluster:
        members = self._pods.there
        self._cluster.gated |= self._pods.refused
        gangs = self._gangs(members)
        self._surroundings(gangs)
        self._nodes()
        self._devices(members)
        self._budgets(members)
        self._place(members)
        self._cluster.warnings += self._warnings.lines()
        return self._cluster

    def _gangs(self, members: list[GangMember]) -> Gangs:
        gangs = gangs_of(
            self._inventory,
            members,
            self._priorities,
            self._topologies,
            self._pods.ended,
            kueue_admits=runs_kueue(self._inventory),
        )
        self._cluster.warnings += gangs.warnings
        return gangs

    def _surroundings(self, gangs: Gangs) -> None:
        for placed in self._inventory.of(Namespace):
            self._say(NamespaceSeen(placed.value.metadata.name, placed.value.labels()))
        for topology in self._topologies.facts():
            self._say(TopologySeen(topology))
        for facts in gangs.facts:
            self._say(GroupSeen(facts))

    def _nodes(self) -> None:
        zones = {placed.value.metadata.name: placed.value for placed in self._inventory.of(NodeResourceTopology)}
        for placed in self._inventory.of(Node):
            name = placed.value.metadata.name
            try:
                self._say(node_seen(placed.value, zones.get(name), self._tree))
            except UserError as error:
                raise placed.reported(error) from error
        for daemon in self._inventory.of(DaemonSet):
            try:
                self._say(DaemonSetSeen(daemon.value.metadata.key, daemon_set_ask(daemon.value)))
            except UserError as error:
                raise daemon.reported(error) from error

    def _devices(self, members: list[GangMember]) -> None:
        """The devices that pods hold and claim, as far as the manifests have them."""
        pods = [member.placed.value for member in members]
        try:
            ids = ids_of_nodes(placed.value for placed in self._inventory.of(Node))
            self._positions = positions_of_pods(pods, ids)
        except UserError as error:
            raise self._with_place(error, members) from error
        of = self._inventory.of
        self._dra = dra_of(
            (placed.value for placed in of(ResourceSlice)),
            (placed.value for placed in of(DeviceClass)),
            (placed.value for placed in of(ResourceClaim)),
            (placed.value for placed in of(ResourceClaimTemplate)),
            pods,
            (placed.value for placed in of(Node)),
        )
        self._cluster.events += self._dra.events

    def _with_place(self, error: UserError, members: list[GangMember]) -> UserError:
        """An error that names its pod only."""
        found = (member.placed for member in members if error.where.obj == f"Pod {member.placed.value.metadata.key}")
        placed = next(found, None)
        return error if placed is None else placed.reported(error)

    def _budgets(self, members: list[GangMember]) -> None:
        pods = [member.placed.value for member in members]
        for budget in self._inventory.of(PodDisruptionBudget):
            self._say(BudgetSeen(budget_facts_of(budget.value, pods)))

    def _place(self, members: list[GangMember]) -> None:
        waiting = []
        bound = []
        running: list[tuple[Pod, PodBound]] = []
        for order, member in enumerate(members):
            pod = member.placed.value
            event = self._event(member)
            self._note_time(pod, event)
            if isinstance(event, PodBound):
                bound.append(event)
                running.append((pod, event))
            elif pod.spec.scheduling_gates:
                self._cluster.gated[event.key] = tuple(gate.name for gate in pod.spec.scheduling_gates)
                self._cluster.held_asks[event.key] = event.ask
            elif pod.is_terminating():
                continue
            elif isinstance(found := self._volumes.within(event, pod), HeldPod):
                self._cluster.gated[event.key] = found
                self._cluster.held_asks[event.key] = event.ask
            else:
                waiting.append((pod.metadata.creation_timestamp or FIRST, order, found))
                self._cluster.waiting.append(member.placed)
                if pod.spec.scheduler_name not in self._cluster.schedulers:
                    self._cluster.schedulers.append(pod.spec.scheduler_name)
        self._warn_of_strays(bound)
        self._tell_of_others(running)
        # Pods that name their devices come before those that get the remaining devices.
        bound.sort(key=lambda event: not event.positions)
        self._cluster.events += bound
        waiting.sort(key=lambda each: each[:2])
        self._cluster.events += [event for _, _, event in waiting]

    def _event(self, member: GangMember) -> PodArrived | PodBound:
        pod = member.placed.value
        spec = pod.spec
        try:
            asking = self._dra.stripped.get(pod.metadata.key, pod)
            claims = self._dra.refs.get(pod.metadata.key, ())
            asking = on_stated_capacity(asking, self._priorities.capacity)
            ask = ask_of_pod(asking, self._added.get(spec.scheduler_name), claims)
        except UserError as error:
            raise member.placed.reported(error) from error
        self._warnings.look_at(member.placed, ask)
        key = pod.metadata.key
        priority = self._pods.ranks[key].value
        daemon_set = _daemon_set(pod)
        if spec.node_name:
            return PodBound(
                key,
                ask,
                spec.node_name,
                priority=priority,
                daemon_set=daemon_set,
                who=member.who,
                terminating=pod.is_terminating(),
                positions=self._positions.get(key, ()),
            )
        return PodArrived(key, ask, priority, daemon_set, member.who, pod.status.nominated_node_name)

    def _warn_of_strays(self, bound: list[PodBound]) -> None:
        nodes = {placed.value.metadata.name for placed in self._inventory.of(Node)}
        strays = Counter(event.node for event in bound if event.node not in nodes)
        for node, count in strays.items():
            pods = "1 pod runs" if count == 1 else f"{count} pods run"
            self._cluster.warnings.append(f"{pods} on node {node}, which is not among the manifests: left out")

    def _tell_of_others(self, running: Iterable[tuple[Pod, PodBound]]) -> None:
        """Whether schedulers that no waiting pod names have placed pods with GPUs. Pods that Shoal placed name their
        devices."""
        ours = {*self._cluster.schedulers, *_OWN_SCHEDULERS}
        for pod, event in running:
            is_seen = event.ask.devices is not None and not isinstance(event.ask.devices, PARTS)
            if is_seen and pod.spec.scheduler_name not in ours and OWN_DEVICES not in pod.metadata.annotations:
                self._say(OthersSeen(place_gpus=True))
                return

    def _note_time(self, pod: Pod, event: PodArrived | PodBound) -> None:
        moments = [
            moment.timestamp()
            for moment in (pod.metadata.creation_timestamp, pod.metadata.deletion_timestamp)
            if moment is not None
        ]
        self._cluster.now_s = max(self._cluster.now_s, event.who.since_s, event.who.saved_s or 0.0, *moments)

    def _say(self, event: Event) -> None:
        self._cluster.events.append(event)


def _daemon_set(pod: Pod) -> str:
    owner = pod.metadata.controller()
    return f"{pod.metadata.namespace}/{owner.name}" if owner is not None and owner.kind == "DaemonSet" else ""
