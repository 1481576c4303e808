"""Reads what node planning depends on from objects: pools, NodeClaims, nodes with their pods, and volumes.

A pool that cannot be read is left out, with its error; the others are planned. A node counts as starting until it is
ready, its startup taints are gone and its devices are advertised; a GPU label without the resource is a node that
starts, and no reason to provision another, until it has had the time that a node may take.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from shoal.api.decode import Unknown, convert
from shoal.api.disruption import PodDisruptionBudget, PriorityClass
from shoal.api.meta import DEFAULT_NAMESPACE, Namespace
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.resources import amounts
from shoal.api.stated_capacity import StatedCapacity, stated_by_classes
from shoal.api.workloads import DaemonSet
from shoal.autoscale.disruption.candidates import DisruptableNode
from shoal.autoscale.disruption.protection import DisruptionLimit
from shoal.autoscale.nodes.advertised_devices import advertised
from shoal.autoscale.nodes.catalog import quantities_of
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pool_reading import duration_s, pool_of
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.nodes.volumes import Volumes
from shoal.autoscale.requirements.labels import INSTANCE_TYPE_LABEL, POOL_LABEL, ZONE_LABEL
from shoal.autoscale.requirements.requirement_set import requirements_of_labels
from shoal.engine.from_api import budget_facts_of
from shoal.store.inventory import Inventory
from shoal.store.planned_devices import published_nodes, with_claim_labels
from shoal.units.errors import UserError, Where

GROUP: Final = "karpenter.sh"
_POOLS: Final = frozenset({"NodePool", "Provisioner"})
_CLAIM: Final = "NodeClaim"
_INITIALIZED: Final = "karpenter.sh/initialized"
_REGISTERED: Final = "karpenter.sh/registered"
_GPU_LABELS: Final = ("nvidia.com/gpu.present", "nvidia.com/gpu.product", "k8s.amazonaws.com/accelerator")
_LEAVING: Final = frozenset({"karpenter.sh/disrupted", "karpenter.sh/disruption", "ToBeDeletedByClusterAutoscaler"})
MOST_START_S: Final = 900.0
"""How long a node may take to start."""

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScalingObjects:
    """The objects, apart from nodes and pods."""

    pools: tuple[NodePool, ...]
    claims: Mapping[str, Raw]
    """NodeClaims by the node that they belong to."""
    unregistered: Sequence[Raw]
    """NodeClaims whose node has not registered."""
    daemon_sets: tuple[DaemonSet, ...]
    volumes: Volumes
    namespace_labels: Mapping[str, Mapping[str, str]]
    published: frozenset[str] = frozenset()
    """Nodes whose GPUs are published as devices of resource claims."""
    warnings: list[str] = field(default_factory=list)
    errors: list[UserError] = field(default_factory=list)


def has_pools(inventory: Inventory) -> bool:
    """Whether there is any node pool."""
    return any(_group(each.value) == GROUP and each.value.kind in _POOLS for each in inventory.others())


def scaling_objects(inventory: Inventory) -> ScalingObjects:
    """Everything of the objects that the planning reads, apart from nodes and pods."""
    raw = [(each.value, each.where) for each in inventory.others()]
    warnings: list[str] = []
    errors: list[UserError] = []
    pools: list[NodePool] = []
    for value, where in raw:
        if _group(value) == GROUP and value.kind in _POOLS:
            try:
                pools.append(pool_of(value.raw, warnings=warnings))
            except UserError as error:
                errors.append(UserError(error.what, where=where.below(error.where.path), fix=error.fix))
    claims = [value.raw for value, _ in raw if _group(value) == GROUP and value.kind == _CLAIM]
    by_node = {name: claim for claim in claims if (name := (claim.get("status") or {}).get("nodeName"))}
    return ScalingObjects(
        pools=with_claim_labels(pools, inventory),
        claims=by_node,
        unregistered=[claim for claim in claims if not (claim.get("status") or {}).get("nodeName")],
        daemon_sets=tuple(each.value for each in inventory.of(DaemonSet)),
        volumes=Volumes(*(_raw(raw, kind) for kind in ("PersistentVolumeClaim", "PersistentVolume", "StorageClass"))),
        namespace_labels={each.value.metadata.name: each.value.labels() for each in inventory.of(Namespace)},
        published=published_nodes(inventory),
        warnings=warnings,
        errors=errors,
    )


def _raw(objects: Iterable[tuple[Unknown, Where]], kind: str) -> list[Raw]:
    return [value.raw for value, _ in objects if value.kind == kind]


def _group(value: Unknown) -> str:
    return value.api_version.partition("/")[0]


def zones_of(inventory: Inventory) -> tuple[str, ...]:
    """The zones in which the cluster has nodes."""
    labels = (each.value.metadata.labels for each in inventory.of(Node))
    return tuple(sorted({zone for each in labels if (zone := each.get(ZONE_LABEL))}))


def capacity_of_classes(inventory: Inventory) -> dict[str, StatedCapacity]:
    """The capacity types that PriorityClasses state for their pods, by the names of the classes."""
    return stated_by_classes(each.value for each in inventory.of(PriorityClass))


def limits_of(inventory: Inventory, pods: Sequence[Pod]) -> tuple[DisruptionLimit, ...]:
    """What the disruption budgets allow now."""
    found = []
    for each in inventory.of(PodDisruptionBudget):
        meta, spec = each.value.metadata, each.value.spec
        facts = budget_facts_of(each.value, pods)
        found.append(DisruptionLimit(meta.name, meta.namespace or DEFAULT_NAMESPACE, spec.selector, facts.allowed))
    return tuple(found)


class ScalingNodes:
    """The nodes that exist, and those that were ordered."""

    def __init__(
        self,
        objects: ScalingObjects,
        types: Mapping[str, Mapping[str, InstanceType]],
        now: datetime,
    ) -> None:
        """`types`: by pool and name."""
        self._objects = objects
        self._pools = {pool.name: pool for pool in objects.pools}
        self._types = types
        self._now = now

    def node(self, node: Node, pods: Iterable[Pod]) -> DisruptableNode:
        """A node that has registered, with its pods."""
        labels = node.metadata.labels
        claim = self._objects.claims.get(node.metadata.name, {})
        pool = self._pools.get(labels.get(POOL_LABEL, ""))
        spec: Raw = claim.get("spec") or {}
        where = Where(obj=f"NodeClaim {(claim.get('metadata') or {}).get('name', '')}")
        existing = ExistingNode(
            node,
            tuple(pods),
            is_managed=pool is not None,
            is_initialized=self._is_initialized(node, claim),
            is_deleting=self._is_leaving(node, claim),
        )
        grace = duration_s(spec.get("terminationGracePeriod"), where)
        expiry = duration_s(spec.get("expireAfter"), where)
        return DisruptableNode(
            existing=existing,
            is_ready=node.is_ready(),
            is_consolidatable=_condition(claim, "Consolidatable") if claim else None,
            last_pod_event=_time((claim.get("status") or {}).get("lastPodEventTime")),
            drifted_since=self._drifted_since(node, claim, pool),
            termination_grace_s=pool.termination_grace_s if grace is None and pool is not None else grace,
            created=node.metadata.creation_timestamp,
            expire_after_s=pool.expire_after_s if not claim and pool is not None else expiry,
        )

    def ordered(self, registered: Container[str] = ()) -> list[DisruptableNode]:
        """Nodes that have not registered yet, as far as their NodeClaims tell what they will be. One that is deleted
        takes no pods, but counts until its instance is gone. `registered`: provider ids of Nodes that are there.
        """
        found = []
        for claim in self._objects.unregistered:
            meta, status = claim.get("metadata") or {}, claim.get("status") or {}
            if status.get("providerID") and status["providerID"] in registered:
                continue
            capacity = status.get("capacity") or self._promised(meta.get("labels") or {})
            if not capacity:
                continue
            raw = {
                "metadata": {"name": meta.get("name", ""), "labels": meta.get("labels") or {}},
                "spec": {"taints": (claim.get("spec") or {}).get("taints") or []},
                "status": {"capacity": capacity, "allocatable": status.get("allocatable") or {}},
            }
            node = convert(raw, Node, Where(obj=f"NodeClaim {meta.get('name', '')}"))
            is_deleting = bool(meta.get("deletionTimestamp"))
            existing = ExistingNode(node, is_initialized=False, is_deleting=is_deleting)
            found.append(DisruptableNode(existing, is_ready=False))
        return found

    def _promised(self, labels: Mapping[str, str]) -> dict[str, str]:
        """The capacity of a NodeClaim that is not launched yet, by the instance type that was planned for it."""
        instance = self._types.get(labels.get(POOL_LABEL, ""), {}).get(labels.get(INSTANCE_TYPE_LABEL, ""))
        if instance is None:
            return {}
        return {name: str(each) for name, each in quantities_of(advertised(instance.capacity, labels)).items()}

    def _is_initialized(self, node: Node, claim: Raw) -> bool:
        labels = node.metadata.labels
        if not node.is_ready():
            return False
        if labels.get(_INITIALIZED) != "true" and (claim or _REGISTERED in labels):
            return _condition(claim, "Initialized")
        return self._has_devices(node) or self._is_overdue(node)

    def _has_devices(self, node: Node) -> bool:
        """Whether GPUs are advertised where the node has some by its type or its labels."""
        labels = node.metadata.labels
        if node.metadata.name in self._objects.published:
            return True
        instance = self._types.get(labels.get(POOL_LABEL, ""), {}).get(labels.get(INSTANCE_TYPE_LABEL, ""))
        promised = [name for name in (instance.capacity if instance is not None else ()) if "/" in name]
        if not promised and not any(label in labels for label in _GPU_LABELS):
            return True
        vendors = {name.partition("/")[0] for name in promised} or {"nvidia.com"}
        there = {name.partition("/")[0] for name, amount in amounts(node.allocatable()).items() if amount}
        return vendors <= there

    def _is_overdue(self, node: Node) -> bool:
        created = node.metadata.creation_timestamp
        return created is None or (self._now - created).total_seconds() > MOST_START_S

    def _is_leaving(self, node: Node, claim: Raw) -> bool:
        is_deleted = node.metadata.deletion_timestamp is not None or (claim.get("metadata") or {}).get(
            "deletionTimestamp"
        )
        return bool(is_deleted) or any(taint.key in _LEAVING for taint in node.spec.taints)

    def _drifted_since(self, node: Node, claim: Raw, pool: NodePool | None) -> datetime | None:
        """By its NodeClaim; without one, as soon as its labels are none that its pool would give it."""
        condition = _find(claim, "Drifted")
        if condition is not None:
            return _time(condition.get("lastTransitionTime")) if condition.get("status") == "True" else None
        if pool is None:
            return None
        labels = requirements_of_labels(node.metadata.labels)
        wanted = pool.requirements.with_all(requirements_of_labels(pool.labels))
        has_drifted = any(key in labels and not labels.get(key).is_compatible(each) for key, each in wanted.items())
        return self._now if has_drifted else None


def _find(claim: Raw, name: str) -> Raw | None:
    conditions = (claim.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == name), None)


def _condition(claim: Raw, name: str) -> bool:
    found = _find(claim, name)
    return found is not None and found.get("status") == "True"


def _time(text: Any) -> datetime | None:
    return datetime.fromisoformat(str(text)) if text else None
