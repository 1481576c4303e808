"""Creates the workloads that Kueue would create for jobs, replicas and pods, where the manifests contain none for them.

A job is one workload, as is a StatefulSet; the pods of a pod group of any project share a workload, and any other pod
has its own.
Keys are readable names, `<namespace>/job-<name>`, without the hash that Kueue appends.

Running jobs without an admission get no workload. Kueue would stop and restart them, but it is more likely that the
manifests come from a cluster and lack its Workloads. They are reported, and their pods count as used capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.api.kueue import Workload
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod, PodTemplate
from shoal.api.workloads import Deployment, StatefulSet
from shoal.engine.from_api.membership import KUEUE_GROUP_LABEL
from shoal.engine.from_api.queues import ExpectedWorkload, TemplatePods
from shoal.store.inventory import Inventory, Placed
from shoal.store.queues.group_facts import group_workload_name
from shoal.store.queues.group_members import OtherPodGroups
from shoal.store.queues.job_kinds import AnyJob, jobs_of
from shoal.store.queues.members import Members, Owner, is_running, owner_of
from shoal.store.queues.pod_groups import PodGroups
from shoal.store.queues.queue_names import QueueNames
from shoal.store.replicas import KUEUE_QUEUE_LABEL, name_of

PREBUILT_LABEL = "kueue.x-k8s.io/prebuilt-workload-name"
JOB_UID_LABEL = "kueue.x-k8s.io/job-uid"

_NOT_ADMITTED = "runs without an admission: its Workload is not among the manifests, and it is left as it is"


@dataclass(frozen=True, slots=True)
class Made:
    """A workload to be created."""

    unmade: ExpectedWorkload
    placed: Placed[Any]
    """The object that it represents."""
    pods: tuple[str, ...]


@dataclass(slots=True)
class Maker:
    """Creates workloads for all objects that request a queue."""

    inventory: Inventory
    objects: Mapping[str, Workload]
    """The existing workloads, by key."""
    members: Members
    names: QueueNames
    is_managed: Callable[[str], bool]
    """By namespace: whether its jobs are queued."""
    queues_everything: bool = False
    """Whether jobs that request no queue are suspended."""
    claimed: dict[Owner, str] = field(default_factory=dict)
    """The objects that have a workload, and those for which one was created."""
    warnings: list[str] = field(default_factory=list)
    _made: dict[str, Made] = field(default_factory=dict)

    def make(self) -> list[Made]:
        jobs = list(jobs_of(self.inventory))
        self._claim(jobs)
        self._jobs(jobs)
        self._stateful_sets()
        self._pods()
        return list(self._made.values())

    def _claim(self, jobs: list[AnyJob]) -> None:
        by_uid = {job.meta.uid: (job.meta.namespace, job.kind, job.name) for job in jobs if job.meta.uid}
        for key, workload in self.objects.items():
            meta = workload.metadata
            for reference in meta.owner_references:
                self.claimed.setdefault((meta.namespace, reference.kind, reference.name), key)
            owner = by_uid.get(meta.labels.get(JOB_UID_LABEL, ""))
            if owner is not None:
                self.claimed.setdefault(owner, key)

    def _jobs(self, jobs: list[AnyJob]) -> None:
        kinds = {(job.meta.namespace, job.kind, job.name) for job in jobs}
        for job in jobs:
            owner = (job.meta.namespace, job.kind, job.name)
            above = set(self.members.above(owner))
            if not self.is_managed(job.meta.namespace) or above & (kinds | self.claimed.keys()):
                continue
            prebuilt = f"{job.meta.namespace}/{job.meta.labels.get(PREBUILT_LABEL, '')}"
            if prebuilt in self.objects:
                self.claimed.setdefault(owner, prebuilt)
            if owner in self.claimed or job.is_finished:
                continue
            queue = self.names.asked_by(job.meta, job.placed)
            if queue or self.queues_everything:
                key = f"{job.meta.namespace}/{job.kind.lower()}-{job.name}"
                unmade = ExpectedWorkload(key, queue, job.meta, job.batches, job.longest_s, job.deadline_s)
                self._add(unmade, job.placed, owner, is_held=job.is_suspended)

    def _stateful_sets(self) -> None:
        for placed in self.inventory.of(StatefulSet):
            meta, spec = placed.value.metadata, placed.value.spec
            owner = owner_of(placed.value, name_of(placed.value))
            if owner in self.claimed or not self.is_managed(meta.namespace):
                continue
            grouped = any(KUEUE_GROUP_LABEL in pod.value.metadata.labels for pod in self.members.of(owner))
            queue = "" if grouped else self.names.asked_by(meta, placed)
            if queue:
                key = f"{meta.namespace}/statefulset-{owner[2]}"
                self._add(
                    ExpectedWorkload(key, queue, meta, (TemplatePods(spec.template, spec.replicas),)), placed, owner
                )

    def _add(self, unmade: ExpectedWorkload, placed: Placed[Any], owner: Owner, *, is_held: bool = False) -> None:
        """`is_held`: its pods must not run, even where some still do."""
        self.claimed[owner] = unmade.key
        if is_held or not any(is_running(pod.value) for pod in self.members.of(owner)):
            self._put(unmade, placed, self.members.keys_of(owner))
        elif _says_queue(unmade.meta):
            self.warnings.append(f"{placed.where}: {_NOT_ADMITTED}")

    def _put(self, unmade: ExpectedWorkload, placed: Placed[Any], pods: tuple[str, ...]) -> None:
        """Create the workload, unless a Workload of its name exists; that one counts as the object's, with or without
        an owner reference.
        """
        if unmade.key in self.objects:
            return
        if unmade.key in self._made:
            raise placed.wrong("metadata.name", f"makes a workload {unmade.key}, which already exists")
        self._made[unmade.key] = Made(unmade, placed, pods)

    def _pods(self) -> None:
        """Pods without a job."""
        of_keepers = self._queues_of_keepers()
        groups, others = PodGroups(), OtherPodGroups(self.inventory)
        for key, placed in self.members.pods.items():
            pod = placed.value
            meta = pod.metadata
            owners = list(self.members.owners(pod))
            itself = (meta.namespace, "Pod", meta.name)
            group = meta.labels.get(KUEUE_GROUP_LABEL, "")
            has_workload = itself in self.claimed or f"{meta.namespace}/{group}" in self.objects
            if has_workload or any(owner in self.claimed or owner[1] == "Job" for owner in owners):
                continue
            queue = self._queue_of_pod(placed, owners, of_keepers)
            if not queue or not self.is_managed(meta.namespace):
                continue
            other = others.group_of(placed)
            if other and f"{meta.namespace}/{group_workload_name(other)}" in self.objects:
                continue
            if group:
                groups.add(group, queue, placed)
            elif other:
                others.add(other, queue, placed)
            elif is_running(pod):
                if _says_queue(meta):
                    self.warnings.append(f"{placed.where}: {_NOT_ADMITTED}")
            elif not pod.is_terminating():
                batch = TemplatePods(PodTemplate(meta, pod.spec), 1, path="")
                made = ExpectedWorkload(f"{meta.namespace}/pod-{meta.name}", queue, meta, (batch,))
                self.claimed[itself] = made.key
                self._put(made, placed, (key,))
        for found in (*groups.each(self.warnings), *others.each(self.warnings)):
            self._put(found.unmade, found.placed, found.pods)

    def _queues_of_keepers(self) -> dict[Owner, str]:
        """A Deployment passes its queue name on to its pods; a ReplicaSet does not."""
        found = {}
        for placed in self.inventory.of(Deployment):
            meta = placed.value.metadata
            if self.is_managed(meta.namespace) and not _says_queue(placed.value.spec.template.metadata):
                found[owner_of(placed.value, name_of(placed.value))] = self.names.asked_by(meta, placed)
        return found

    def _queue_of_pod(self, placed: Placed[Pod], owners: list[Owner], of_keepers: Mapping[Owner, str]) -> str:
        handed = next((of_keepers[owner] for owner in owners if owner in of_keepers), None)
        if handed is not None and not _says_queue(placed.value.metadata):
            return handed
        if owners and not _says_queue(placed.value.metadata):
            return ""
        return self.names.asked_by(placed.value.metadata, placed)


def _says_queue(meta: ObjectMeta) -> bool:
    return KUEUE_QUEUE_LABEL in meta.labels or KUEUE_QUEUE_LABEL in meta.annotations
