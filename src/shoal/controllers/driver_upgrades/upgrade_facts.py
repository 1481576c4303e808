"""Reads Nodes, DaemonSets and pods as the facts of a driver upgrade. The functions are pure.

A driver pod is known by the labels that NVIDIA's operator gives it. Its revision is compared with the newest
ControllerRevision of its DaemonSet. While the DaemonSet controller has not seen the newest spec yet, the pod counts as
current, so that no upgrade is decided by an outdated revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import field

from shoal.api.conditions import is_condition_true
from shoal.api.meta import OwnerReference
from shoal.api.partial import ConditionsStatus, ContainerStatus, DeletionMeta, LabeledMeta
from shoal.api.wire import ApiStruct
from shoal.client.item import Item, Seen
from shoal.operator.upgrades.nodes import DriverContainer, DriverPod, UpgradeNode, WorkloadPod
from shoal.operator.upgrades.states import STATE_LABEL, UpgradeState

DRIVER_LABELS = (("app", "nvidia-driver-daemonset"), ("app.kubernetes.io/component", "nvidia-driver"))
VALIDATOR = ("app", "nvidia-operator-validator")
HASH = "controller-revision-hash"
_MARKS = (b"nvidia-driver", VALIDATOR[1].encode())


class _UpgradedNodeSpec(ApiStruct, frozen=True):
    unschedulable: bool = False


class _UpgradedNode(ApiStruct, frozen=True):
    metadata: LabeledMeta
    spec: _UpgradedNodeSpec = _UpgradedNodeSpec()
    status: ConditionsStatus = ConditionsStatus()


class _UpgradePodMeta(DeletionMeta, frozen=True):
    labels: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()


class _UpgradePodSpec(ApiStruct, frozen=True):
    node_name: str = ""


class _UpgradePodStatus(ApiStruct, frozen=True):
    phase: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class _UpgradePod(ApiStruct, frozen=True):
    metadata: _UpgradePodMeta
    spec: _UpgradePodSpec = _UpgradePodSpec()
    status: _UpgradePodStatus = _UpgradePodStatus()


class _SetMeta(ApiStruct, frozen=True):
    generation: int = 0
    owner_references: tuple[OwnerReference, ...] = ()


class _SetPodSpec(ApiStruct, frozen=True):
    node_selector: dict[str, str] = field(default_factory=dict)


class _SetTemplate(ApiStruct, frozen=True):
    metadata: LabeledMeta = field(default_factory=LabeledMeta)
    spec: _SetPodSpec = field(default_factory=_SetPodSpec)


class _SetSpec(ApiStruct, frozen=True):
    template: _SetTemplate = field(default_factory=_SetTemplate)


class _SetStatus(ApiStruct, frozen=True):
    observed_generation: int = 0


class _DriverSet(ApiStruct, frozen=True):
    metadata: _SetMeta = _SetMeta()
    spec: _SetSpec = field(default_factory=_SetSpec)
    status: _SetStatus = _SetStatus()


class _DriverRevisionMeta(ApiStruct, frozen=True):
    labels: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()


class _DriverRevision(ApiStruct, frozen=True):
    metadata: _DriverRevisionMeta = _DriverRevisionMeta()
    revision: int = 0


_node: Seen[_UpgradedNode] = Seen(_UpgradedNode)
_pod: Seen[_UpgradePod] = Seen(_UpgradePod)


class NodeHead(msgspec.Struct, frozen=True):
    """The part of a Node on which decisions depend."""

    labels: dict[str, str]
    annotations: dict[str, str]
    is_unschedulable: bool
    is_ready: bool

    @property
    def state(self) -> str:
        return self.labels.get(STATE_LABEL, "")


def node_head(item: Item) -> NodeHead:
    node = _node(item)
    is_ready = is_condition_true(node.status.conditions, "Ready")
    return NodeHead(node.metadata.labels, node.metadata.annotations, node.spec.unschedulable, is_ready)


def is_component(labels: Mapping[str, str]) -> bool:
    return is_driver(labels) or is_validator(labels)


def is_driver(labels: Mapping[str, str]) -> bool:
    return any(labels.get(key) == value for key, value in DRIVER_LABELS)


def is_validator(labels: Mapping[str, str]) -> bool:
    return labels.get(VALIDATOR[0]) == VALIDATOR[1]


def component_nodes(item: Item) -> tuple[str, ...]:
    """The node of a driver or validator pod, for an index; nothing for other pods."""
    if not any(mark in item.data for mark in _MARKS):
        return ()
    pod = _pod(item)
    is_one = is_component(pod.metadata.labels)
    return (pod.spec.node_name,) if is_one and pod.spec.node_name else ()


def template_labels(item: Item) -> Mapping[str, str]:
    return item.read(_DriverSet).spec.template.metadata.labels


class DriverRevisions:
    """The newest revision of each driver DaemonSet."""

    def __init__(self, sets: Iterable[Item], revisions: Iterable[Item]) -> None:
        self._unsettled: set[str] = set()
        newest: dict[str, tuple[int, str]] = {}
        names: dict[str, str] = {}
        for item in sets:
            found = item.read(_DriverSet)
            if is_driver(found.spec.template.metadata.labels):
                names[item.uid] = item.name
                if found.status.observed_generation < found.metadata.generation:
                    self._unsettled.add(item.uid)
        for item in revisions if names else ():
            one = item.read(_DriverRevision)
            owner = next((ref.uid for ref in one.metadata.owner_references if ref.controller), "")
            if owner in names:
                hashed = one.metadata.labels.get(HASH) or item.name.removeprefix(f"{names[owner]}-")
                newest[owner] = max(newest.get(owner, (0, "")), (one.revision, hashed))
        self._newest = {uid: hashed for uid, (_, hashed) in newest.items()}

    def has_current(self, owner: str, hashed: str) -> bool:
        """`owner`: the uid of the DaemonSet."""
        return owner in self._unsettled or owner not in self._newest or self._newest[owner] == hashed


class DriverOwners:
    """The NVIDIADrivers that have DaemonSets; each DaemonSet is read once."""

    def __init__(self, sets: Iterable[Item]) -> None:
        self._by_uid: dict[str, str] = {}
        self._selecting: list[tuple[str, dict[str, str]]] = []
        for item in sets:
            found = item.read(_DriverSet)
            for ref in found.metadata.owner_references:
                if ref.controller and ref.kind == "NVIDIADriver":
                    self._by_uid[item.uid] = ref.name
                    self._selecting.append((ref.name, found.spec.template.spec.node_selector))

    def owner(self, labels: Mapping[str, str], component_pods: Sequence[Item]) -> str:
        """The NVIDIADriver whose DaemonSet made the driver pod of a node with these labels, or whose DaemonSet selects
        the node; empty if there is none."""
        for item in component_pods if self._by_uid else ():
            pod = _pod(item)
            made_by = next((ref.uid for ref in pod.metadata.owner_references if ref.controller), "")
            if is_driver(pod.metadata.labels) and made_by in self._by_uid:
                return self._by_uid[made_by]
        chosen = (name for name, wanted in self._selecting if wanted and wanted.items() <= labels.items())
        return next(chosen, "")


def upgrade_node(
    name: str, head: NodeHead, component_pods: Sequence[Item], others: Sequence[Item], revisions: DriverRevisions
) -> UpgradeNode:
    """`others`: further pods of the node, where the decision depends on them."""
    drivers = [pod for item in component_pods if is_driver((pod := _pod(item)).metadata.labels)]
    # While a pod is replaced, the old one may still terminate beside the new one.
    drivers.sort(key=lambda pod: pod.metadata.is_terminating())
    return UpgradeNode(
        name=name,
        state=head.state,
        is_unschedulable=head.is_unschedulable,
        is_ready=head.is_ready,
        annotations=head.annotations,
        labels=head.labels,
        driver_pod=_driver_pod(drivers[0], revisions) if drivers else None,
        pods=tuple(_workload(item) for item in others),
    )


def driver_pod_item(component_pods: Sequence[Item]) -> Item | None:
    """The driver pod that a restart deletes."""
    found = [item for item in component_pods if is_driver(_pod(item).metadata.labels)]
    return next((item for item in found if not _pod(item).metadata.is_terminating()), None)


def needs_pods(state: str) -> bool:
    """Whether the decision about a node in this state depends on its other pods."""
    return state in (UpgradeState.WAIT_FOR_JOBS, UpgradeState.VALIDATION_REQUIRED)


def _driver_pod(pod: _UpgradePod, revisions: DriverRevisions) -> DriverPod:
    owner = next((ref.uid for ref in pod.metadata.owner_references if ref.controller), "")
    return DriverPod(
        has_current_revision=bool(owner) and revisions.has_current(owner, pod.metadata.labels.get(HASH, "")),
        is_orphaned=not owner,
        phase=pod.status.phase,
        containers=_containers(pod.status.container_statuses),
        init_containers=_containers(pod.status.init_container_statuses),
        is_terminating=pod.metadata.is_terminating(),
    )


def _containers(statuses: Iterable[ContainerStatus]) -> tuple[DriverContainer, ...]:
    return tuple(DriverContainer(one.ready, one.restart_count) for one in statuses)


def _workload(item: Item) -> WorkloadPod:
    pod = _pod(item)
    statuses = pod.status.container_statuses
    is_ready = bool(statuses) and all(one.ready for one in statuses) and not pod.metadata.is_terminating()
    return WorkloadPod(f"{item.namespace}/{item.name}", pod.metadata.labels, pod.status.phase, is_ready)
