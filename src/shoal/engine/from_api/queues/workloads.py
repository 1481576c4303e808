"""Converts workloads to facts: existing objects, and those that Kueue would create for jobs and pods.

Both come out alike, so that a folder of jobs is decided as the cluster would decide it once they are applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.api.kueue import Workload
from shoal.api.kueue.priority_classes import PRIORITY_CLASS_LABEL
from shoal.api.meta import ObjectMeta
from shoal.api.pod import PodSpec, PodTemplate
from shoal.engine.from_api.checkpoints import saved_s
from shoal.engine.from_api.queues.expected import expected_s
from shoal.engine.from_api.queues.pod_sets import CountedPodSet, CountingRules, PodSetSize, QuotaScope, pod_set_of
from shoal.engine.from_api.queues.progress import gates_of, progress_of
from shoal.engine.from_api.queues.topology_requests import topology_of_annotations, topology_of_request
from shoal.engine.from_api.queues.workload_priorities import WorkloadPriorities
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.settings import Settings
from shoal.units.errors import Where

REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
"""An annotation: the key of the workload whose place this one takes."""
SLICE_NAME = "kueue.x-k8s.io/workload-slice-name"
"""An annotation: the name of the first workload of the same work."""
IS_GROUP = "kueue.x-k8s.io/is-group-workload"
"""An annotation, `true` on workloads of pod groups."""
_ANNOTATIONS = "metadata.annotations"


class TemplatePods(msgspec.Struct, frozen=True):
    """Pods of one template, of a job that has no workload yet."""

    template: PodTemplate
    count: int
    name: str = "main"
    least: int | None = None
    path: str = "spec.template"
    """The path of the template in the object; empty for a pod, which is its own template."""


class ExpectedWorkload(msgspec.Struct, frozen=True):
    """A workload that does not exist yet."""

    key: str
    queue: str
    """Name of its local queue; empty where it names none and has to."""
    meta: ObjectMeta
    """The metadata of the object that it represents."""
    batches: tuple[TemplatePods, ...]
    longest_s: float | None = None
    """Its workload is stopped after so long."""
    deadline_s: float | None = None
    """It gives up by itself after so long."""
    fault: str = ""
    """Why it cannot be queued as it is."""


class WorkloadReader:
    """Reads workloads against the classes, rules and queues that are there."""

    def __init__(
        self,
        settings: Settings,
        counting: CountingRules,
        priorities: WorkloadPriorities,
        covered: Mapping[str, frozenset[str]],
    ) -> None:
        """`covered`: by local queue, the resources that its cluster queue covers."""
        self._settings = settings
        self._counting = counting
        self._priorities = priorities
        self._covered = covered

    def of_object(self, workload: Workload) -> WorkloadFacts:
        """Places in complaints are those in the workload."""
        meta, spec = workload.metadata, workload.spec
        queue = f"{meta.namespace}/{spec.queue_name}" if spec.queue_name else ""
        home = QuotaScope(meta.namespace, self._covered.get(queue, frozenset()))
        counted = [
            pod_set_of(
                each.template,
                PodSetSize(each.name, each.count, each.min_count, topology_of_request(each.topology_request)),
                home,
                self._counting,
                Where(path=f"spec.podSets[{index}].template"),
            )
            for index, each in enumerate(spec.pod_sets)
        ]
        pod_sets = tuple(each.pod_set for each in counted)
        annotations = [(meta.annotations, Where(path=_ANNOTATIONS))]
        annotations += [
            (each.template.metadata.annotations, Where(path=f"spec.podSets[{index}].template.{_ANNOTATIONS}"))
            for index, each in enumerate(spec.pod_sets)
        ]
        return WorkloadFacts(
            key=meta.key,
            queue=queue,
            priority=self._priorities.of_workload(workload),
            created_s=_created(meta),
            uid=meta.uid,
            pod_sets=pod_sets,
            active=spec.active,
            fault=_fault(counted),
            saved_s=_saved(annotations),
            duration_s=_expected(annotations),
            longest_s=spec.maximum_execution_time_seconds,
            ran_before_s=float(workload.status.accumulated_past_execution_time_seconds),
            replaces=_replaced(meta),
            owner=_owner(meta),
            **progress_of(workload, pod_sets),
        )

    def of_unmade(self, unmade: ExpectedWorkload) -> WorkloadFacts:
        """Errors name fields of the object that the workload represents."""
        meta = unmade.meta
        queue = f"{meta.namespace}/{unmade.queue}" if unmade.queue else ""
        home = QuotaScope(meta.namespace, self._covered.get(queue, frozenset()))
        counted = [
            pod_set_of(batch.template, _sized(batch), home, self._counting, Where(path=batch.path))
            for batch in unmade.batches
        ]
        first = next(iter(unmade.batches), None)
        annotations = [(meta.annotations, Where(path=_ANNOTATIONS))]
        annotations += [
            (batch.template.metadata.annotations, _annotations_of(batch)) for batch in unmade.batches if batch.path
        ]
        return WorkloadFacts(
            key=unmade.key,
            queue=queue,
            priority=self._priorities.of_job(
                meta.labels.get(PRIORITY_CLASS_LABEL, ""),
                first.template.spec if first is not None else PodSpec(),
                Where(path="metadata.labels").key(PRIORITY_CLASS_LABEL),
                Where(path=first.path if first is not None else "").below("spec"),
            ),
            created_s=_created(meta),
            uid=meta.uid,
            pod_sets=tuple(each.pod_set for each in counted),
            fault=unmade.fault or (_fault(counted) if counted else "asks for no pods"),
            closed_gates=gates_of(meta.annotations),
            saved_s=_saved(annotations),
            duration_s=_expected(annotations, unmade.deadline_s),
            longest_s=unmade.longest_s,
        )


def _sized(batch: TemplatePods) -> PodSetSize:
    topology = topology_of_annotations(batch.template.metadata.annotations, _annotations_of(batch))
    return PodSetSize(batch.name, batch.count, batch.least, topology)


def _annotations_of(batch: TemplatePods) -> Where:
    return Where(path=batch.path).below(_ANNOTATIONS)


def _replaced(meta: ObjectMeta) -> str:
    """Only if it has an owner, who ends the other one."""
    said = meta.annotations.get(REPLACES, "")
    is_near = said.rpartition("/")[0] == meta.namespace and said != meta.key
    return said if is_near and _owner(meta) else ""


def _owner(meta: ObjectMeta) -> str:
    """Whose workload it is. The pods of a group have none above them: the group counts, by the name of its first
    Workload.
    """
    controller = meta.controller()
    if controller is not None:
        return controller.uid
    is_group = meta.annotations.get(IS_GROUP) == "true"
    return f"{meta.namespace}/{meta.annotations.get(SLICE_NAME, meta.name)}" if is_group else ""


def _created(meta: ObjectMeta) -> float:
    return meta.creation_timestamp.timestamp() if meta.creation_timestamp is not None else 0.0


def _fault(counted: Iterable[CountedPodSet]) -> str:
    return next((each.fault for each in counted if each.fault), "")


def _saved(annotations: Iterable[tuple[Mapping[str, str], Where]]) -> float | None:
    return next((found for each, where in annotations if (found := saved_s(each, where)) is not None), None)


def _expected(annotations: Iterable[tuple[Mapping[str, str], Where]], deadline_s: float | None = None) -> float | None:
    """The declared duration, at most until the deadline, which counts if nothing is declared."""
    said = next((found for each, where in annotations if (found := expected_s(each, where)) is not None), None)
    return min((each for each in (said, deadline_s) if each is not None), default=None)
