"""The stored state of one pod. With fifty thousand of them, equal parts are shared objects."""

from __future__ import annotations

from sys import intern

import msgspec

from shoal.api.groups.shoal import RENDEZVOUS
from shoal.client.item import Item
from shoal.engine.asks import Ask
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.events import PodArrived, PodBound
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.store.watched.held_positions import HeldPositions
from shoal.store.watched.pod_annotations import PodAnnotationFields, words_on
from shoal.store.watched.pod_changes import StatusChange
from shoal.store.watched.pod_heads import PodHead, Spec, Status
from shoal.store.watched.pod_views import PodView

KUEUE_WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload"
KUEUE_POD_SET_LABEL = "kueue.x-k8s.io/podset"
_GROUP_ANNOTATIONS = ("kueue.x-k8s.io/podset-", "kai.scheduler/topology", RENDEZVOUS)
_GATED = "waits for its scheduling gates: "

Owner = tuple[str, str, str]
"""(namespace, kind, name)."""


class PodState(msgspec.Struct, gc=False):
    uid: str
    born: int
    """The resourceVersion at which it was first seen: among pods of one second, the lower is the older."""
    scheduler: str = ""
    ask: Ask | None = None
    who: PodIdentity = NO_IDENTITY
    """The identity before its gang completes it."""
    priority: int = 0
    owner: Owner | None = None
    daemon_set: str = ""
    node: str = ""
    nominated: str = ""
    names_devices: PodAnnotationFields | None = None
    """Its devices by name, until they are reported: the ids of the node may become known later."""
    allocated: int = 0
    """A hash of the devices that its kubelet allocated, so that only changed ones are read."""
    positions: DevicePositions = ()
    """The devices that it names, once it was reported."""
    gates: tuple[str, ...] = ()
    fault: str = ""
    waits_for: str = ""
    """A reason to wait, such as missing volumes."""
    workload: str = ""
    pod_set: str = ""
    has_group_annotations: bool = False
    """Whether it has topology annotations, or requests the addresses of its gang."""
    phase: str = ""
    is_finished: bool = False
    lacked: str | None = None
    """The resource that its node lacks according to the kubelet that rejected it (`Status.lacked`)."""
    has_waited: bool = False
    """Whether it was seen without a node, so that its scheduler bound it and not its creator."""
    is_terminating: bool = False
    is_ready: bool = False
    generation: int = 0
    created_s: float = 0.0
    bound_s: float = 0.0
    reported: PodArrived | PodBound | None = None

    @property
    def has_succeeded(self) -> bool:
        return self.phase == "Succeeded"

    @property
    def held(self) -> str:
        """Why it is not reported to the engine though it is pending."""
        if self.fault:
            return self.fault
        return _GATED + ", ".join(self.gates) if self.gates else self.waits_for

    def note(self, change: StatusChange) -> bool:
        """Update the parts that change without the specification; returns whether a decision depends on them."""
        status = change.status
        is_terminating, is_ready = change.is_terminating, status.is_ready()
        before = (self.phase, self.nominated, self.is_terminating, self.is_ready)
        if before == (status.phase, status.nominated_node_name, is_terminating, is_ready):
            return False
        self.phase = intern(status.phase)
        self.nominated = intern(status.nominated_node_name)
        self.is_terminating = is_terminating
        self.is_ready = is_ready
        self.is_finished = status.is_finished
        self.lacked = status.lacked
        return True

    def knows(self, status: Status) -> bool:
        """Whether the stored start time, which is part of the identity, and the stored devices equal those of the
        status.
        """
        start = status.start_time
        is_start_known = start is None or start.timestamp() == self.who.since_s
        return is_start_known and (not self.node or self.allocated == hash(status.allocated()))

    def asks_on(self, spec: Spec) -> bool:
        """Whether the stored ask is kept for the pod, which is now on a node. The pod holds what it was bound with.
        Later only resources may change, so the claims and volumes of a pod that has any are not looked up again.
        """
        return self.ask is not None and (not self.node or spec.claims_devices or spec.mounts_claims)

    def view(self, key: str, item: Item, *, is_ours: bool) -> PodView:
        is_kept = is_ours and not self.node and not self.is_finished
        return PodView(
            key,
            item.namespace,
            item.name,
            self.uid,
            item.version,
            self.scheduler,
            self.reported,
            self.held if is_kept else "",
            self.node,
            self.nominated,
            self.generation,
            self.created_s,
            self.bound_s,
            self.workload,
            self.pod_set,
            self.has_succeeded,
        )


def state_of(item: Item, head: PodHead, before: PodState | None) -> PodState:
    """The state of a pod from its own fields; its ask and identity also depend on other objects."""
    meta, spec = head.metadata, head.spec
    words = words_on(head)
    state = PodState(item.uid, item.version if before is None else before.born)
    state.scheduler = intern(spec.scheduler_name)
    state.node = intern(spec.node_name)
    state.gates = tuple([intern(gate.name) for gate in spec.scheduling_gates])
    state.generation = meta.generation
    state.created_s = meta.creation_timestamp.timestamp() if meta.creation_timestamp is not None else 0.0
    state.owner = _owner(item, head)
    if state.owner is not None and state.owner[1] == "DaemonSet":
        state.daemon_set = intern(f"{state.owner[0]}/{state.owner[2]}")
    _read_words(state, item.namespace, words)
    state.note(StatusChange(head.status, meta.deletion_timestamp is not None))
    state.bound_s = head.status.bound_s() if state.node else 0.0
    if before is not None:
        state.reported, state.has_waited = before.reported, before.has_waited
        state.positions = before.positions if before.node == state.node else ()
    state.allocated = hash(words.allocated)
    if state.node and HeldPositions.has_any(words):
        state.names_devices = words
    return state


def _read_words(state: PodState, namespace: str, words: PodAnnotationFields) -> None:
    if words.labels:
        state.pod_set = intern(words.labels.get(KUEUE_POD_SET_LABEL, ""))
    if words.annotations:
        workload = words.annotations.get(KUEUE_WORKLOAD_ANNOTATION)
        state.workload = intern(f"{namespace}/{workload}") if workload else ""
        state.has_group_annotations = any(name.startswith(_GROUP_ANNOTATIONS) for name in words.annotations)


def _owner(item: Item, head: PodHead) -> Owner | None:
    for owner in head.metadata.owner_references:
        if owner.controller:
            return intern(item.namespace), intern(owner.kind), intern(owner.name)
    return None
