"""Indexes the pods of all jobs by job, decoding each version of a pod once.

Rejected: an index of the cache by owner. It stores bytes, and each sync of a job would decode its two thousand pods
again.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.informer import Informer
from shoal.client.item import Item, Key
from shoal.embedded.controllers.jobs.pods import JobPod, job_pod

Wake = Callable[[Key, int], None]


class PodIndex:
    """`wake` is called with each job that a changed pod may belong to, and its number of pods."""

    def __init__(self, pods: Informer, wake: Wake, wake_orphan: Callable[[JobPod], None]) -> None:
        self._wake = wake
        self._wake_orphan = wake_orphan
        self._pods: dict[Key, JobPod] = {}
        self._of_job: dict[Key, dict[Key, JobPod]] = {}
        self._orphans: dict[str, dict[Key, JobPod]] = {}
        pods.on_change(self._changed)

    def of(self, job: Key) -> list[JobPod]:
        """The pods controlled by a job of that name, now or earlier."""
        return list(self._of_job.get(job, {}).values())

    def orphans(self, namespace: str) -> list[JobPod]:
        """The pods without a controller."""
        return list(self._orphans.get(namespace, {}).values())

    def count(self, job: Key) -> int:
        return len(self._of_job.get(job, ()))

    def _changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        key = item.key
        old = self._pods.pop(key, None)
        new = job_pod(after) if after is not None else None
        if old is not None:
            self._drop(key, old)
        if new is not None and (new.job_name or not new.owner_uid):
            self._put(key, new)
        for pod in (old, new):
            if pod is not None and pod.job_name:
                job = (pod.namespace, pod.job_name)
                self._wake(job, self.count(job))
        if new is not None and not new.owner_uid:
            self._wake_orphan(new)

    def _put(self, key: Key, pod: JobPod) -> None:
        self._pods[key] = pod
        if pod.owner_uid:
            self._of_job.setdefault((pod.namespace, pod.job_name), {})[key] = pod
        else:
            self._orphans.setdefault(pod.namespace, {})[key] = pod

    def _drop(self, key: Key, pod: JobPod) -> None:
        if pod.owner_uid:
            pods, place = self._of_job, (pod.namespace, pod.job_name)
            pods[place].pop(key)
            if not pods[place]:
                del pods[place]
        else:
            self._orphans[pod.namespace].pop(key)
            if not self._orphans[pod.namespace]:
                del self._orphans[pod.namespace]
