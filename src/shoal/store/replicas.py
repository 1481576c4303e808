"""Generates the pods that controllers would create, because manifests contain the Job and not its pods.

A controller with any pod among the manifests gets no further pods: the manifests then come from a cluster in which the
controller runs. Pods are named `<controller>-<n>`, and have an owner reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.api.pod import Pod, PodTemplate
from shoal.api.workloads import Deployment, Job, ReplicaSet, StatefulSet
from shoal.store.inventory import Inventory, Placed

KUEUE_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

MOST_REPLICAS = 100_000
"""The maximum number of pods of one controller; more is a typing error and would exhaust the memory."""

Keeper = Deployment | ReplicaSet | StatefulSet
Maker = Job | Keeper

_JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")


def made_pods(inventory: Inventory, warnings: list[str]) -> Iterator[Placed[Pod]]:
    """Creates the pods of all controllers that have none."""
    found = Owned(inventory)
    for job in inventory.of(Job):
        if job.value.is_finished() or found.has_pods(job.value):
            continue
        count = job.value.pods_at_once()
        if job.value.spec.suspend:
            # A queue suspended it; its pods are needed nevertheless.
            if KUEUE_QUEUE_LABEL not in job.value.metadata.labels:
                warnings.append(f"{job.where}: is suspended and makes no pods")
                continue
            count = structs.replace(job.value, spec=structs.replace(job.value.spec, suspend=False)).pods_at_once()
        yield from _pods(job, job.value.spec.template, count)
    for owner in _keepers(inventory):
        if not found.has_pods(owner.value):
            yield from _pods(owner, owner.value.spec.template, owner.value.spec.replicas)


def makers(inventory: Inventory) -> Iterator[Placed[Maker]]:
    """All controllers."""
    yield from inventory.of(Job)
    yield from _keepers(inventory)


def name_of(maker: Maker) -> str:
    """The name of an object; the prefix of `generateName` for an object without a name."""
    return maker.metadata.name or maker.metadata.generate_name.rstrip("-")


def _keepers(inventory: Inventory) -> Iterator[Placed[Keeper]]:
    """Controllers that keep a number of pods permanently."""
    yield from inventory.of(StatefulSet)
    yield from inventory.of(ReplicaSet)
    yield from inventory.of(Deployment)


class Owned:
    """Owners that have pods among the manifests, or whose own controller would create the pods."""

    def __init__(self, inventory: Inventory) -> None:
        self._pods: dict[str, list[Pod]] = {}
        self._named: set[tuple[str, str, str]] = set()
        """(namespace, kind, name) of the controllers that pods name, by owner reference or by the labels of a Job."""
        for placed in inventory.of(Pod):
            meta = placed.value.metadata
            self._pods.setdefault(meta.namespace, []).append(placed.value)
            owner = meta.controller()
            if owner is not None:
                self._named.add((meta.namespace, owner.kind, owner.name))
            self._named |= {(meta.namespace, "Job", meta.labels[key]) for key in _JOB_LABELS if key in meta.labels}
        self._inner = {
            (placed.value.metadata.namespace, owner.kind, owner.name)
            for placed in inventory.of(ReplicaSet)
            if (owner := placed.value.metadata.controller()) is not None
        }

    def has_pods(self, maker: Maker) -> bool:
        meta = maker.metadata
        itself = meta.namespace, type(maker).__name__, meta.name
        if itself in self._inner or itself in self._named:
            return True
        if isinstance(maker, Job):
            return False
        return any(maker.spec.selector.matches(pod.metadata.labels) for pod in self._pods.get(meta.namespace, ()))


def _pods(owner: Placed[Maker], template: PodTemplate, count: int) -> Iterator[Placed[Pod]]:
    if count > MOST_REPLICAS:
        raise owner.wrong("spec", f"{count:,} pods of one controller", fix=f"at most {MOST_REPLICAS:,} are made")
    meta = owner.value.metadata
    kind = type(owner.value).__name__
    name = name_of(owner.value)
    reference = OwnerReference(kind=kind, name=name, uid=meta.uid, controller=True)
    labels = dict(template.metadata.labels)
    if isinstance(owner.value, Job):
        labels |= dict.fromkeys(_JOB_LABELS, name)
    for number in range(count):
        pod_meta = ObjectMeta(
            name=f"{name}-{number}",
            namespace=meta.namespace,
            labels=labels,
            annotations=template.metadata.annotations,
            owner_references=(reference,),
            creation_timestamp=meta.creation_timestamp,
        )
        # Faults of the template are reported with the controller's name, where the user wrote them.
        yield Placed(Pod(metadata=pod_meta, spec=template.spec), owner.where, "spec.template")
