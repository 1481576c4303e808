"""Computes the requests and identities of pods, once for all pods with equal templates.

Pods of one template share one ask, and those with equal labels share one identity: thousands are kept while their pods
exist, and a new pod costs a look-up.

Replicas without spread constraints get kube-scheduler's default constraints. These apply only to schedulers that are
expected to do so, and only to pods that request no device: a service should survive the loss of a node, while each node
that a GPU pod occupies without need is lost to pods that need a whole node. The constraint is a preference. Zones are
not included: a node without a zone would not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from msgspec import structs

from shoal.api.affinity import TopologySpreadConstraint
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod, PodSpec, PodStatus
from shoal.api.selectors import LabelSelector
from shoal.api.stated_capacity import CAPACITY_TYPE_LABEL, StatedCapacity, on_stated_capacity, stated_capacity
from shoal.client.item import Item
from shoal.client.kind import PODS
from shoal.engine.asks import Ask
from shoal.engine.device_notation import names
from shoal.engine.from_api import Priorities, Rank, ask_of_pod, identity_metadata, who_of_pod
from shoal.engine.node_rules import both_rules
from shoal.engine.pod_identity import PodIdentity, PodLabels
from shoal.store.watched.parts import Devices, Volumes
from shoal.store.watched.pod_annotations import pod_of
from shoal.store.watched.pod_heads import PodHead, PodHeadMeta, Spec, head_of
from shoal.store.watched.profiles import USUAL, PodProfile
from shoal.store.watched.reading import value_of
from shoal.units.errors import UserError, Where

_Key = tuple[object, ...]
_MOST = 16_384
_SAMPLE = "~"
"""A prefix that no pod name has."""
_UNKNOWN: Any = object()
_ASKED = frozenset(
    {
        names.FRACTION,
        names.FRACTION_MEMORY,
        names.FRACTION_DEVICES,
        names.OWN_ISLAND,
        names.OWN_NUMA_NODE,
    }
)
"""Annotations that change the ask of a pod."""


class PodAsks:
    def __init__(
        self,
        profiles: Mapping[str, PodProfile],
        devices: Devices | None,
        volumes: Volumes | None,
        spreading: frozenset[str] = frozenset(),
    ) -> None:
        """`profiles`: by scheduler name; `spreading`: schedulers that spread replicas without spread rules."""
        self._profiles = profiles
        self._spreading = spreading
        self._devices = devices
        self._volumes = volumes
        self.priorities = Priorities()
        self._asks: dict[_Key, Ask | UserError | None] = {}
        """None: each pod of this template has device claims of its own."""
        self._samples: dict[str, _Key] = {}
        """Templates by the name under which their devices were looked up."""
        self._numbers = count()
        self._equal: dict[Ask, Ask] = {}
        self._identities: dict[_Key, PodIdentity] = {}
        self._whos: dict[tuple[PodLabels, _Key], PodIdentity] = {}
        """Asks of pending pods: thousands of one template may wait."""
        self._ranks: dict[tuple[int | None, str, str], Rank | UserError] = {}

    def put_priorities(self, priorities: Priorities) -> bool:
        """Set the priority classes; returns whether the priority or the ask of any read pod may have changed."""
        before, self._ranks = self._ranks, {}
        if priorities.capacity != self.priorities.capacity:
            self.priorities = priorities
            return True
        self.priorities = priorities
        return any(self._rank(key) != rank for key, rank in before.items())

    def rank(self, spec: Spec) -> Rank:
        rank = self._rank((spec.priority, spec.priority_class_name, spec.preemption_policy))
        if isinstance(rank, UserError):
            raise rank
        return rank

    def _rank(self, key: tuple[int | None, str, str]) -> Rank | UserError:
        rank = self._ranks.get(key)
        if rank is None:
            priority, name, policy = key
            spec = PodSpec(
                priority=priority,
                priority_class_name=name,
                preemption_policy="Never" if policy == "Never" else "PreemptLowerPriority",
            )
            try:
                rank = self.priorities.of_pod(spec, Where(path="spec"))
            except UserError as error:
                rank = error
            self._ranks[key] = rank
        return rank

    # -- asks -------------------------------------------------------------------------------------------------------

    def ask(self, item: Item, head: PodHead, *, is_ours: bool) -> Ask | str:
        """The ask of the pod; a text gives the reason why the pod must wait first."""
        spec = head.spec
        if is_ours and self._volumes is not None and not spec.node_name and spec.mounts_claims:
            rule = self._volumes.rule(value_of(PODS, item, Pod))
            if isinstance(rule, str):
                return rule
            ask = self._ask(item, head, is_ours=is_ours)
            return self._shared(structs.replace(ask, nodes=both_rules(ask.nodes, rule)))
        return self._ask(item, head, is_ours=is_ours)

    def beside_volumes(self, item: Item) -> tuple[Ask, str] | None:
        """The ask of one of Shoal's pods without its volumes, and the message for nodes that only its volumes
        exclude.
        """
        head = head_of(item)
        said = self._volumes.refused(value_of(PODS, item, Pod)) if self._volumes and head.spec.mounts_claims else ""
        return (self._ask(item, head, is_ours=True), said) if said else None

    def _ask(self, item: Item, head: PodHead, *, is_ours: bool) -> Ask:
        meta, spec = head.metadata, head.spec
        profile = self._profiles.get(spec.scheduler_name, USUAL) if is_ours else USUAL
        if spec.claims_devices:
            return self._own(item, profile)
        noted = meta.annotations
        asked = () if _ASKED.isdisjoint(noted) else tuple(noted.get(name) for name in _ASKED)
        labels_key: _Key = (item.namespace, tuple(sorted(meta.labels.items()))) if spec.has_pod_rules else ()
        shared: Shared = ()
        if is_ours and spec.scheduler_name in self._spreading:
            shared = shared_labels(head)
            labels_key = (item.namespace, shared) if shared else labels_key
        key = (
            *spec.key(),
            asked,
            self._stated(meta, spec),
            labels_key,
            is_ours if profile is USUAL else spec.scheduler_name,
        )
        found: Ask | UserError | None = self._asks.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            found = self._read(key, item, shared, profile)
        if isinstance(found, UserError):
            raise found
        return self._own(item, profile) if found is None else found

    def _read(self, key: _Key, item: Item, shared: Shared, profile: PodProfile) -> Ask | UserError | None:
        if len(self._asks) >= _MOST:
            self._asks.clear()
            self._samples.clear()
            self._equal.clear()
        ask: Ask | UserError | None
        try:
            pod = self._on_stated_capacity(value_of(PODS, item, Pod))
            ask = None if self._claims_anyway(key, pod) else ask_of_pod(pod, profile.added, ())
            if shared and ask is not None and is_spread(ask):
                ask = ask_of_pod(with_usual_spread(pod, shared), profile.added, ())
            ask = ask and self._shared(profile.named(ask))
        except UserError as error:
            ask = error.at(Where(path=error.where.path))
        self._asks[key] = ask
        return ask

    def _stated(self, meta: PodHeadMeta, spec: Spec) -> StatedCapacity | None:
        """The capacity type that the pod or its class states."""
        classes = self.priorities.capacity
        stated = None
        if CAPACITY_TYPE_LABEL in meta.annotations or CAPACITY_TYPE_LABEL in meta.labels:
            stated = stated_capacity(ObjectMeta(labels=meta.labels, annotations=meta.annotations))
        return stated or (classes.get(spec.priority_class_name) if classes else None)

    def _on_stated_capacity(self, pod: Pod) -> Pod:
        return on_stated_capacity(pod, self.priorities.capacity)

    def _claims_anyway(self, key: _Key, pod: Pod) -> bool:
        """Whether claims provide some of the resources of a pod that names no claim. Evaluated once for each
        template.
        """
        if self._devices is None:
            return False
        name = f"{_SAMPLE}{next(self._numbers)}"
        sample = structs.replace(pod, metadata=structs.replace(pod.metadata, name=name))
        self._samples[sample.metadata.key] = key
        return bool(self._devices.refs(sample)[0])

    def _own(self, item: Item, profile: PodProfile) -> Ask:
        """The ask of a pod with its own claims."""
        pod = self._on_stated_capacity(value_of(PODS, item, Pod))
        if self._devices is None:
            return self._shared(profile.named(ask_of_pod(pod, profile.added)))
        refs, asking = self._devices.refs(pod)
        return self._shared(profile.named(ask_of_pod(asking, profile.added, refs)))

    def bare(self, item: Item) -> Ask | None:
        """The resources that an invalid pod uses on its node, as far as they can be determined."""
        try:
            pod = value_of(PODS, item, Pod)
            meta = structs.replace(pod.metadata, annotations={})
            spec = structs.replace(pod.spec, affinity=None, topology_spread_constraints=())
            return self._shared(ask_of_pod(structs.replace(pod, metadata=meta, spec=spec), None, ()))
        except UserError:
            return None

    def forget_sample(self, name: str) -> bool:
        """Forget the template of this name, so that it is read again; returns False if the name is that of a pod."""
        key = self._samples.pop(name, None)
        if key is not None:
            self._asks.pop(key, None)
        return key is not None

    def _shared(self, ask: Ask) -> Ask:
        """The shared instance of an equal ask."""
        if len(self._equal) >= _MOST:
            # Asks with claims are not shared, because they would accumulate as pods come and go.
            self._equal.clear()
        return self._equal.setdefault(ask, ask)

    # -- identities --------------------------------------------------------------------------------------------------

    def who(self, item: Item, head: PodHead, rank: Rank) -> PodIdentity:
        meta, spec = head.metadata, head.spec
        has_owner = any(owner.controller for owner in meta.owner_references)
        grouped = bytes(spec.scheduling_group), bytes(spec.workload_ref)
        key = (item.namespace, identity_metadata(meta.labels, meta.annotations), has_owner, rank, *grouped)
        traits = PodLabels.of(item.namespace, meta.labels)
        start = head.status.start_time
        if start is None and (who := self._whos.get((traits, key))) is not None:
            return who
        identity = self._identities.get(key)
        if identity is None:
            if len(self._identities) >= _MOST:
                self._identities.clear()
            # Its start time and the labels that other pods' rules match are its own; all other parts are shared between
            # equal pods.
            pod = structs.replace(pod_of(item, head), status=PodStatus())
            identity = self._identities[key] = who_of_pod(pod, rank)
        if start is not None:
            return structs.replace(identity, traits=traits, since_s=start.timestamp())
        if len(self._whos) >= _MOST:
            self._whos.clear()
        who = self._whos[traits, key] = structs.replace(identity, traits=traits)
        return who


_REPLICAS = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})
_ITS_OWN = frozenset({"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"})
_HOST = "kubernetes.io/hostname"
Shared = tuple[tuple[str, str], ...]


def shared_labels(head: PodHead) -> Shared:
    """The labels that the pod shares with its replicas; none where it is not a replica or has its own constraints."""
    if head.spec.node_name or head.spec.has_pod_rules:
        return ()
    if _REPLICAS.isdisjoint(owner.kind for owner in head.metadata.owner_references):
        return ()
    return tuple(sorted((name, value) for name, value in head.metadata.labels.items() if name not in _ITS_OWN))


def is_spread(ask: Ask) -> bool:
    """Whether it requests no device: the resource names of devices have a domain."""
    return ask.devices is None and not any("/" in name for name, _ in ask.requests)


def with_usual_spread(pod: Pod, shared: Shared) -> Pod:
    rule = TopologySpreadConstraint(3, _HOST, "ScheduleAnyway", LabelSelector(dict(shared)))
    return structs.replace(pod, spec=structs.replace(pod.spec, topology_spread_constraints=(rule,)))
