"""Determines the pods of each controller: every pod with all controllers above it that are among the manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.api.decode import Unknown, meta_of
from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.pod import Pod
from shoal.api.wire import ApiStruct
from shoal.api.workloads import Job, ReplicaSet
from shoal.store.inventory import Inventory, Placed
from shoal.store.replicas import made_pods

Owner = tuple[str, str, str]
"""(namespace, kind, name)."""

_JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")


def owner_of(value: ApiStruct | Unknown, name: str = "") -> Owner:
    """The object as its pods refer to it: (namespace, kind, name)."""
    meta = meta_of(value)
    if isinstance(value, Unknown):
        # Raw objects have no defaults, unlike typed ones.
        return meta.namespace or DEFAULT_NAMESPACE, value.kind, name or meta.name
    return meta.namespace, type(value).__name__, name or meta.name


class Members:
    """All pods that have not ended, including those that controllers would create."""

    def __init__(self, inventory: Inventory, others: Iterable[Placed[Pod]] = ()) -> None:
        """`others`: further pods that would be created."""
        self.pods: dict[str, Placed[Pod]] = {}
        self._above: dict[Owner, Owner] = {}
        for placed in (*inventory.of(Job), *inventory.of(ReplicaSet)):
            self._note_owner(placed.value)
        for other in inventory.others():
            self._note_owner(other.value)
        self._of: dict[Owner, list[Placed[Pod]]] = {}
        # The reader of pods reports pods that cannot be created.
        for pod in (*inventory.of(Pod), *made_pods(inventory, []), *others):
            if not pod.value.is_finished():
                self.pods[pod.value.metadata.key] = pod
                for owner in self.owners(pod.value):
                    self._of.setdefault(owner, []).append(pod)

    def of(self, owner: Owner) -> list[Placed[Pod]]:
        return self._of.get(owner, [])

    def keys_of(self, owner: Owner) -> tuple[str, ...]:
        return tuple(pod.value.metadata.key for pod in self.of(owner))

    def owners(self, pod: Pod) -> Iterator[Owner]:
        """The controllers of a pod, the nearest first."""
        meta = pod.metadata
        reference = meta.controller()
        if reference is not None:
            owner: Owner | None = (meta.namespace, reference.kind, reference.name)
        else:
            job = next((meta.labels[label] for label in _JOB_LABELS if label in meta.labels), "")
            owner = (meta.namespace, "Job", job) if job else None
        seen: set[Owner] = set()
        while owner is not None and owner not in seen:
            seen.add(owner)
            yield owner
            owner = self._above.get(owner)

    def above(self, owner: Owner) -> Iterator[Owner]:
        """The controller of a controller."""
        seen: set[Owner] = set()
        higher = self._above.get(owner)
        while higher is not None and higher not in seen:
            seen.add(higher)
            yield higher
            higher = self._above.get(higher)

    def _note_owner(self, value: ApiStruct | Unknown) -> None:
        reference = meta_of(value).controller()
        if reference is not None:
            itself = owner_of(value)
            self._above[itself] = (itself[0], reference.kind, reference.name)


def is_running(pod: Pod) -> bool:
    return bool(pod.spec.node_name)
