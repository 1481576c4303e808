"""Holds the nodes that exist, with the pods on them, as rows of the engine's facts.

A node that is starting counts with the resources that it will have: what its kubelet does not report yet is taken from
its instance type, and its startup taints and the taints of nodes that are not ready are left out. So no second node is
provisioned while the device plugin of the first one starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.node import Node, NodeStatus
from shoal.api.pod import Pod
from shoal.api.resources import amounts
from shoal.api.taints import Taint, Toleration, untolerated
from shoal.api.topology import HOSTNAME_LABEL
from shoal.api.workloads import DaemonSet
from shoal.autoscale.nodes.advertised_devices import GPU, advertised, labels_of_machine
from shoal.autoscale.nodes.catalog import allocation, quantities_of
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.planned_devices import NO_DEVICES, PlannedDevices
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.nodes.topology_domains import DomainNode, ResidentPod
from shoal.autoscale.requirements import RequirementSet
from shoal.autoscale.requirements.labels import INSTANCE_TYPE_LABEL, POOL_LABEL
from shoal.autoscale.requirements.requirement_set import requirements_of_labels
from shoal.devices.names import OWN_MIG_LAYOUT
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.events import DaemonSetSeen, NodeSeen, PodBound
from shoal.engine.from_api import ask_of_pod, daemon_set_ask, node_facts_of
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.profile import Profile

_STARTING: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "karpenter.sh/unregistered",
    }
)
_SOFT: Final = frozenset({"PreferNoSchedule"})
_DAEMON_SET: Final = "DaemonSet"


class ExistingNode(msgspec.Struct, frozen=True):
    """A node that exists, with its pods."""

    node: Node
    pods: tuple[Pod, ...] = ()
    is_managed: bool = True
    """Whether a pool provisioned it."""
    is_initialized: bool = True
    """Ready, without startup taints, and with all its devices."""
    is_deleting: bool = False

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def pool(self) -> str:
        return self.node.metadata.labels.get(POOL_LABEL, "")

    @property
    def instance_type(self) -> str:
        return self.node.metadata.labels.get(INSTANCE_TYPE_LABEL, "")


def as_it_will_be(existing: ExistingNode, pool: NodePool | None, instance: InstanceType | None) -> Node:
    """The node once it has started."""
    node = existing.node
    if existing.is_initialized or not existing.is_managed:
        return node
    startup = frozenset((taint.key, taint.effect) for taint in pool.startup_taints) if pool is not None else frozenset()
    taints = tuple(
        taint for taint in node.spec.taints if taint.key not in _STARTING and (taint.key, taint.effect) not in startup
    )
    allocatable = dict(node.allocatable())
    meta = node.metadata
    if instance is not None:
        # The Node may lack the labels of its GPUs as long as it starts.
        labels = labels_of_machine(instance, meta.labels)
        if OWN_MIG_LAYOUT in meta.labels:
            meta = replace(meta, labels=labels)
        promised = quantities_of(advertised(instance.allocatable(), labels))
        if OWN_MIG_LAYOUT in meta.labels or GPU not in promised:
            # GPUs that are not in MIG mode yet are still advertised as whole ones.
            allocatable.pop(GPU, None)
        allocatable |= {name: each for name, each in promised.items() if not amounts(allocatable).get(name)}
    spec = replace(node.spec, taints=taints)
    status = NodeStatus(node.status.capacity, allocatable, node.status.conditions)
    return replace(node, metadata=meta, spec=spec, status=status)


class ExistingNodes:
    """Rows of the nodes that may take pods, in the order in which they are tried."""

    def __init__(
        self,
        nodes: Iterable[ExistingNode],
        pools: Mapping[str, NodePool],
        types: Mapping[str, Mapping[str, InstanceType]],
        daemon_sets: Iterable[DaemonSet] = (),
        devices: PlannedDevices = NO_DEVICES,
    ) -> None:
        """`types`: by pool and name."""
        self.cluster = Cluster()
        self._placement = Placement(self.cluster, Profile("First"))
        self._intake = Intake(self.cluster)
        self._devices = devices
        every = list(nodes)
        self.open: list[ExistingNode] = sorted(
            (each for each in every if not each.is_deleting), key=lambda each: (not each.is_initialized, each.name)
        )
        self.domain_nodes: dict[str, DomainNode] = {}
        self.residents: list[ResidentPod] = []
        self._requirements: dict[int, RequirementSet] = {}
        self._taints: dict[int, tuple[Taint, ...]] = {}
        self._soft: dict[int, tuple[Taint, ...]] = {}
        self._row_names: dict[int, str] = {}
        self._allowed: NDArray[np.bool_] | None = None
        for event in devices.of_nodes():
            self._intake.apply(event)
        for daemon_set in daemon_sets:
            self._intake.apply(DaemonSetSeen(daemon_set.metadata.key, daemon_set_ask(daemon_set)))
        for rank, each in enumerate(self.open):
            node = as_it_will_be(each, pools.get(each.pool), types.get(each.pool, {}).get(each.instance_type))
            self._add(rank, each, node)
        for each in every:
            if each.is_deleting:
                labels = each.node.metadata.labels
                requirements = requirements_of_labels(labels)
                self.domain_nodes[each.name] = DomainNode(each.name, labels, requirements, each.node.spec.taints)
            self._count_residents(each)

    def _add(self, rank: int, existing: ExistingNode, node: Node) -> None:
        labels = dict(node.metadata.labels)
        labels.setdefault(HOSTNAME_LABEL, existing.name)
        facts = replace(node_facts_of(node), rank=rank, labels=labels)
        self._intake.apply(NodeSeen(facts))
        row = self.cluster.row_of[existing.name]
        self._requirements[row] = requirements_of_labels(labels)
        self._taints[row] = node.spec.taints
        self._row_names[row] = existing.name
        soft = tuple(taint for taint in node.spec.taints if taint.effect in _SOFT)
        if soft:
            self._soft[row] = soft
        self.domain_nodes[existing.name] = DomainNode(existing.name, labels, self._requirements[row], node.spec.taints)
        for pod in existing.pods:
            if not pod.is_finished():
                owner = pod.metadata.controller()
                is_daemon = owner is not None and owner.kind == _DAEMON_SET
                daemon = f"{pod.metadata.namespace or DEFAULT_NAMESPACE}/{owner.name}" if owner and is_daemon else ""
                # What claims of a pod on a node hold is in their status; one that is only planned there says it itself.
                claims = None if pod.spec.node_name else self._devices.refs_of(pod)
                ask = ask_of_pod(pod, claims=claims)
                self._intake.apply(PodBound(_key(existing, pod), ask, existing.name, daemon_set=daemon))

    def _count_residents(self, existing: ExistingNode) -> None:
        for pod in existing.pods:
            if pod.is_finished() or pod.is_terminating():
                continue
            affinity = pod.spec.affinity
            apart = affinity.pod_anti_affinity if affinity is not None else None
            self.residents.append(
                ResidentPod(
                    pod.metadata.namespace or DEFAULT_NAMESPACE,
                    pod.metadata.labels,
                    existing.name,
                    apart.required if apart is not None else (),
                )
            )

    def exclude(self, names: Iterable[str]) -> None:
        """These nodes take no pods until others are excluded."""
        rows = [row for name in names if (row := self.cluster.row_of.get(name)) is not None]
        self._allowed = None
        if rows:
            self._allowed = np.ones(self.cluster.rows, np.bool_)
            self._allowed[rows] = False

    def prepare(self, ask: Ask) -> None:
        """Compile the request before the first placement: the record keeps its width from then on."""
        self.cluster.charge(ask)

    def feasible(self, ask: Ask, tolerations: tuple[Toleration, ...]) -> list[int]:
        """The rows on which the engine would place the pod, in the order in which they are tried."""
        rows = self._placement.shape(self.cluster.charge(ask)).feasible()
        if self._allowed is not None:
            rows = rows[self._allowed.take(rows)]
        ordered = rows[np.argsort(self.cluster.rank.take(rows), kind="stable")].tolist()
        if not self._soft:
            return list(ordered)
        return [row for row in ordered if untolerated(self._soft.get(row, ()), tolerations, _SOFT) is None]

    def first(self, ask: Ask) -> int | None:
        """The first of them, where no other rule matters."""
        shape = self._placement.shape(self.cluster.charge(ask))
        row = shape.best() if self._allowed is None else shape.best_where(self._allowed, None)
        return None if row < 0 else row

    @property
    def has_soft_taints(self) -> bool:
        return bool(self._soft)

    def place(self, key: str, row: int, ask: Ask) -> None:
        """Put the pod on the row; the engine chooses its devices."""
        charge = self.cluster.charge(ask)
        chosen = self._placement.choose(charge, 0, within=np.array([row], np.int64))
        assert chosen is not None  # noqa: S101 - the row is one of the feasible ones
        self.cluster.hold(key, allocation(chosen, charge, 0))

    def remove(self, key: str) -> None:
        """The inverse of `place`."""
        self.cluster.release(key)

    def name_of(self, row: int) -> str:
        return self._row_names[row]

    def host_of(self, row: int) -> str:
        """Its label, which is not the name of the Node on every cloud."""
        return self.domain_nodes[self._row_names[row]].labels[HOSTNAME_LABEL]

    def requirements_of(self, row: int) -> RequirementSet:
        return self._requirements[row]

    def taints_of(self, row: int) -> tuple[Taint, ...]:
        return self._taints[row]


def _key(existing: ExistingNode, pod: Pod) -> str:
    return f"{pod.metadata.namespace or DEFAULT_NAMESPACE}/{pod.metadata.name}@{existing.name}"
