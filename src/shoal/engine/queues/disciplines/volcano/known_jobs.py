"""Keeps the queues and pod groups of a cluster as sessions read them, and which groups were admitted.

The same for manifests and for a running cluster. A group that a session admitted counts as admitted from then on,
before its object says so; the object says so after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.engine.queues.disciplines.volcano.jobs import JobFacts
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, Queue, QueuedPodGroup
from shoal.engine.queues.disciplines.volcano.plugins.arguments import duration_s
from shoal.engine.queues.disciplines.volcano.plugins.sla import WAITING_TIME
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest, engine_amounts, scheduler_queue
from shoal.engine.queues.disciplines.volcano.session import VolcanoFacts
from shoal.engine.queues.disciplines.volcano.ungrouped_pods import UngroupedPods

_RESERVING = ("", "Pending", "Inqueue", "Running", "Unknown")
"""Phases of a group for which quota is kept, once it is admitted."""


def job_facts(group: QueuedPodGroup, *, is_enqueued: bool) -> JobFacts:
    """A group as the discipline reads it."""
    least = group.min_resources()
    return JobFacts(
        "/".join(group.metadata.key),
        group.queue,
        None,
        group.metadata.created_s,
        engine_amounts(least) if least else None,
        is_enqueued=is_enqueued,
        reserves=group.status.phase in _RESERVING,
        waiting_time_s=duration_s(group.metadata.annotations.get(WAITING_TIME)),
        has_failed=group.status.failed > 0,
    )


class KnownJobs:
    """`facts` returns the same object as long as nothing changed that a session reads."""

    def __init__(
        self,
        queues: Iterable[Queue] = (),
        groups: Iterable[QueuedPodGroup] = (),
        pods: Iterable[GroupPod] = (),
    ) -> None:
        """`pods`: those that may run without a group."""
        self._forest = QueueForest(map(scheduler_queue, queues))
        self._groups: dict[str, QueuedPodGroup] = {}
        self._jobs: dict[str, JobFacts] = {}
        self._admitted: dict[str, str] = {}
        """Group -> the uid of the one that a session admitted, until its object says so."""
        self._facts: VolcanoFacts | None = None
        self._ungrouped = UngroupedPods()
        for group in groups:
            self.put_group(group)
        for pod in pods:
            self.put_pod(pod)

    def __contains__(self, name: str) -> bool:
        return name in self._jobs

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._jobs)

    def put_queues(self, queues: Iterable[Queue]) -> None:
        """All queues there are."""
        forest = QueueForest(map(scheduler_queue, queues))
        if forest.queues != self._forest.queues:
            self._forest, self._facts = forest, None

    def put_group(self, group: QueuedPodGroup) -> None:
        name = "/".join(group.metadata.key)
        if not group.is_waiting or self._admitted.get(name) != group.metadata.uid:
            self._admitted.pop(name, None)
        self._groups[name] = group
        self._ungrouped.group_seen(name)
        self._read(name)

    def put_pod(self, pod: GroupPod) -> bool:
        """Whether a session reads anything else with it."""
        name = f"{pod.metadata.namespace}/{pod.group}"
        is_other = self._ungrouped.put("/".join(pod.metadata.key), pod, is_group_known=name in self._groups)
        if is_other:
            self._facts = None
        return is_other

    def drop_pod(self, key: str) -> bool:
        is_other = self._ungrouped.drop(key)
        if is_other:
            self._facts = None
        return is_other

    def drop_group(self, name: str) -> None:
        self._admitted.pop(name, None)
        if self._groups.pop(name, None) is not None:
            del self._jobs[name]
            self._facts = None

    def admit(self, names: Iterable[str]) -> None:
        """A session admitted these."""
        for name in names:
            group = self._groups.get(name)
            if group is not None and group.is_waiting and name not in self._admitted:
                self._admitted[name] = group.metadata.uid
                self._read(name)

    def is_admitted(self, name: str) -> bool:
        job = self._jobs.get(name)
        return job is not None and job.is_enqueued

    def facts(self) -> VolcanoFacts:
        if self._facts is None:
            self._facts = VolcanoFacts(self._forest, dict(sorted(self._jobs.items())), ungrouped=self._ungrouped.queues)
        return self._facts

    def _read(self, name: str) -> None:
        group = self._groups[name]
        job = job_facts(group, is_enqueued=not group.is_waiting or name in self._admitted)
        if self._jobs.get(name) != job:
            self._jobs[name], self._facts = job, None
