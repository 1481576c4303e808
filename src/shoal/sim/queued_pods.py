"""The pods of queued workloads among manifests: existing ones, those without a controller that makes them, and the pod
set of each.

A workload without pods and without a controller that is known to make them gets the pods that its templates promise,
`<workload>-<pod set>-<n>`, as one gang, less those that have ended and given their quota back (`reclaimablePods`).
Kueue's own scheduling gates are taken off pods of a workload: here the rounds hold them back, and let them go when the
workload is admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from shoal.api.decode import Document, Unknown, meta_of
from shoal.api.kueue import ClusterQueue, Cohort, LocalQueue, Workload
from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.api.pod import Pod, PodTemplate
from shoal.api.resources import effective_requests
from shoal.engine.from_api.membership import KUEUE_GROUP_LABEL, KUEUE_TOTAL_ANNOTATION, group_of
from shoal.engine.queues.facts import PodSet, WorkloadFacts
from shoal.store.inventory import Inventory
from shoal.store.queues import ManifestQueues
from shoal.store.queues.job_kinds import jobs_of
from shoal.store.replicas import MOST_REPLICAS
from shoal.units.errors import UserError, Where

GATES = frozenset({"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology", "kueue.x-k8s.io/elastic-job"})
POD_SET_LABEL = "kueue.x-k8s.io/podset"


@dataclass(slots=True)
class QueuedPods:
    """Documents with all pods, and the pod set of each."""

    documents: list[Document]
    by_set: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Workload -> pod set -> pods, in the order in which they come."""


def speaks_of_queues(inventory: Inventory) -> bool:
    """A label that names a queue is no reason to hold a job back where there are no queues at all."""
    return any(inventory.of(kind) for kind in (ClusterQueue, LocalQueue, Cohort, Workload))


def queued_pods(documents: Sequence[Document], found: ManifestQueues) -> QueuedPods:
    """Documents for readers of pods, once queues have been read."""
    owned = {pod for pods in found.pods.values() for pod in pods}
    read = _jobs_read(documents, found)
    result = QueuedPods([_without_gates(each, owned) for each in documents if id(each.value) not in read])
    places = {placed.value.metadata.key: placed.where for placed in Inventory(documents).of(Workload)}
    pods = {each.value.metadata.key: each.value for each in documents if isinstance(each.value, Pod)}
    for facts in found.workloads:
        keys = found.pods.get(facts.key, ())
        if keys:
            result.by_set[facts.key] = _by_set(facts, [(key, pods.get(key)) for key in keys])
            continue
        made = result.by_set[facts.key] = {}
        for document, name in _made(facts, found.templates, places.get(facts.key, Where())):
            result.documents.append(document)
            made.setdefault(name, []).append(meta_of(document.value).key)
    return result


def _jobs_read(documents: Sequence[Document], found: ManifestQueues) -> set[int]:
    """Objects that only queues read, where a workload was made of them: no warning says that they were skipped."""
    workloads = {facts.key for facts in found.workloads}
    return {
        id(job.placed.value)
        for job in jobs_of(Inventory(documents))
        if isinstance(job.placed.value, Unknown) and f"{job.meta.namespace}/{job.kind.lower()}-{job.name}" in workloads
    }


def _without_gates(document: Document, owned: set[str]) -> Document:
    pod = document.value
    if not isinstance(pod, Pod) or not pod.spec.scheduling_gates or pod.metadata.key not in owned:
        return document
    left = tuple(gate for gate in pod.spec.scheduling_gates if gate.name not in GATES)
    spec = structs.replace(pod.spec, scheduling_gates=left)
    return Document(structs.replace(pod, spec=spec), document.where)


# -- which pod set -------------------------------------------------------------------------------------------


def _by_set(facts: WorkloadFacts, pods: Iterable[tuple[str, Pod | None]]) -> dict[str, list[str]]:
    """By what the pods say, else by what they ask, else in order."""
    sets: dict[str, list[str]] = {each.name: [] for each in facts.pod_sets}
    if len(sets) == 1:
        return {next(iter(sets)): [key for key, _ in pods]}
    unclear = []
    for key, pod in pods:
        said = pod.metadata.labels.get(POD_SET_LABEL, "") if pod is not None else ""
        if said in sets:
            sets[said].append(key)
        else:
            unclear.append((key, pod))
    for key, pod in unclear:
        room = [each for each in facts.pod_sets if len(sets[each.name]) < each.count]
        alike = [each for each in room if pod is not None and _asks_like(pod, each)]
        chosen = (alike or room or list(facts.pod_sets))[:1]
        for each in chosen:
            sets[each.name].append(key)
    return sets


def _asks_like(pod: Pod, pod_set: PodSet) -> bool:
    return effective_requests(pod.spec) == pod_set.on_node


# -- pods without a controller -------------------------------------------------------------------------------


def _made(
    facts: WorkloadFacts, templates: Mapping[tuple[str, str], PodTemplate], where: Where
) -> Iterator[tuple[Document, str]]:
    counts = {each.name: max(0, each.count - facts.reclaimable.get(each.name, 0)) for each in facts.pod_sets}
    total = sum(counts.values())
    if total > MOST_REPLICAS:
        fix = f"at most {MOST_REPLICAS:,} are made"
        raise UserError(f"{total:,} pods of one workload", where=where.with_path("spec.podSets"), fix=fix)
    for each in facts.pod_sets:
        template = templates.get((facts.key, each.name))
        if template is None:
            continue
        for index in range(counts[each.name]):
            yield Document(_pod(facts, each, template, index, total), where), each.name


def _pod(facts: WorkloadFacts, pod_set: PodSet, template: PodTemplate, index: int, total: int) -> Pod:
    namespace, _, name = facts.key.partition("/")
    reference = OwnerReference(kind="Workload", name=name, uid=facts.uid, controller=True)
    meta = ObjectMeta(
        name=f"{name}-{pod_set.name}-{index}",
        namespace=namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=(reference,),
    )
    pod = Pod(metadata=meta, spec=template.spec)
    if total == 1 or group_of(pod, Where()):
        return pod
    labels = {**meta.labels, KUEUE_GROUP_LABEL: name}
    annotations = {**meta.annotations, KUEUE_TOTAL_ANNOTATION: str(total)}
    return structs.replace(pod, metadata=structs.replace(meta, labels=labels, annotations=annotations))
