"""Computes how many pods a job should have now, and which pods are created or deleted.

Pods are deleted before others are created: a job that needs both does one now and syncs again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.embedded.controllers.jobs.backoff import Failures, index_failures
from shoal.embedded.controllers.jobs.indexes import first_free
from shoal.embedded.controllers.jobs.job_snapshot import JobSnapshot
from shoal.embedded.controllers.jobs.pods import JobPod, removal_rank

MAX_PODS_PER_SYNC = 500
"""The maximum number of pods created or deleted in one sync, so that other jobs get their turn."""


class PodChanges(msgspec.Struct, frozen=True):
    remove: tuple[JobPod, ...] = ()
    create: int = 0
    indexes: tuple[int, ...] = ()
    """The index of each pod to create, for an indexed job."""
    wait_s: float | None = None
    """The time until more pods may be created."""


def find_pod_changes(snapshot: JobSnapshot, failures: Failures, now_s: float) -> PodChanges:
    spec, active = snapshot.job.spec, len(snapshot.active)
    if spec.suspend:
        return PodChanges(remove=snapshot.active)
    wanted = _desired_active(snapshot)
    if remove := _surplus(snapshot, max(active - wanted, 0)):
        return PodChanges(remove=tuple(remove[:MAX_PODS_PER_SYNC]))
    ending = sum(pod.is_terminating for pod in snapshot.pods) if spec.replaces_only_failed else 0
    lacking = wanted - ending - active
    if lacking <= 0:
        return PodChanges()
    if spec.backoff_limit_per_index is None and (wait_s := failures.wait_s(now_s)) > 0:
        return PodChanges(wait_s=wait_s)
    lacking = min(lacking, MAX_PODS_PER_SYNC)
    if not spec.is_indexed:
        return PodChanges(create=lacking)
    indexes = first_free(lacking, spec.completions or 0, snapshot.taken)
    waits_s = {index: index_failures(snapshot.held.get(index)).wait_s(now_s) for index in indexes}
    now = tuple(index for index in indexes if waits_s[index] <= 0)
    later_s = [wait_s for wait_s in waits_s.values() if wait_s > 0]
    return PodChanges(create=len(now), indexes=now, wait_s=min(later_s, default=None))


def _desired_active(snapshot: JobSnapshot) -> int:
    spec = snapshot.job.spec
    if spec.completions is None:
        # A work queue: after the first success no work is left to start, and running pods may finish.
        return len(snapshot.active) if snapshot.succeeded else spec.parallelism
    return max(min(spec.completions - snapshot.succeeded, spec.parallelism), 0)


def _surplus(snapshot: JobSnapshot, least: int) -> list[JobPod]:
    """At least `least` pods to delete; for an indexed job also pods with a duplicate or invalid index."""
    spec, kept, gone = snapshot.job.spec, list(snapshot.active), list[JobPod]()
    if spec.is_indexed:
        kept, gone = _one_each([pod for pod in kept if spec.has_index(pod.index)])
        gone = [pod for pod in snapshot.active if not spec.has_index(pod.index)] + gone
    if len(gone) < least:
        gone += sorted(kept, key=removal_rank)[: least - len(gone)]
    return gone


def _one_each(pods: Sequence[JobPod]) -> tuple[list[JobPod], list[JobPod]]:
    best: dict[int | None, JobPod] = {}
    gone: list[JobPod] = []
    for pod in pods:
        other = best.setdefault(pod.index, pod)
        if other is pod:
            continue
        first, second = sorted((other, pod), key=removal_rank)
        best[pod.index] = second
        gone.append(first)
    return list(best.values()), gone
