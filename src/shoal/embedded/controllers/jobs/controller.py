"""Runs the sync of each Job when the job or its pods change, and sorts pods by their job.

A job whose pods change is synced after a short delay, which is longer for more pods, so that a thousand pods that
finish together cause a few syncs. A change of a job's spec is handled at once.
"""

from __future__ import annotations

import msgspec

from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key
from shoal.client.kind import JOBS, PODS
from shoal.client.loop import Loop
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.jobs.claims import find_claims
from shoal.embedded.controllers.jobs.job import BatchJob
from shoal.embedded.controllers.jobs.job_sync import JobSync, SyncMemory, job_reference, raise_if
from shoal.embedded.controllers.jobs.pod_index import PodIndex
from shoal.embedded.controllers.jobs.pods import JobPod

_BATCH_S, _BATCH_S_PER_POD, _LONGEST_BATCH_S = 0.1, 0.0002, 1.0


def job_controller(context: Context) -> Controller:
    return JobLoop(context).loop


class _JobHeadMeta(msgspec.Struct, rename="camel"):
    uid: str
    generation: int = 0
    deletion_timestamp: str | None = None


class _HeadSpec(msgspec.Struct, rename="camel"):
    manual_selector: bool = False


class _JobHead(msgspec.Struct):
    metadata: _JobHeadMeta
    spec: _HeadSpec


class JobLoop:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._jobs = context.informers.of(JOBS)
        self.memory = SyncMemory(context)
        self._writes = self.memory.writes
        self._asked: dict[Key, _JobHead] = {}
        """The last seen spec of each job."""
        self.loop = Loop(context, self._reconcile)
        self.loop.need(JOBS, PODS)
        self._book = PodIndex(context.informers.of(PODS), self._wake_later, self._wake_manual_selectors)
        self._jobs.on_change(self._job_changed)

    # -- when -------------------------------------------------------------------------------------------------------

    def _wake_later(self, key: Key, pods: int) -> None:
        self.loop.wake(key, min(_BATCH_S + _BATCH_S_PER_POD * pods, _LONGEST_BATCH_S))

    def _wake_manual_selectors(self, pod: JobPod) -> None:
        """Jobs with a manual selector may adopt pods that do not name them."""
        for key, head in self._asked.items():
            if head.spec.manual_selector and key[0] == pod.namespace:
                self._wake_later(key, 0)

    def _job_changed(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._asked.pop(before.key, None)
                self.memory.forget(before.uid)
                self.loop.wake(before.key)
            return
        head = after.read(_JobHead)
        if head != self._asked.get(after.key):
            self._asked[after.key] = head
            self.loop.wake(after.key)
        else:
            self._wake_later(after.key, self._book.count(after.key))

    # -- one job ----------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: Key) -> float | None:
        item = self._jobs.get(*key)
        if item is None:
            if self._tracked(key) and await self._is_gone(key):
                await self._remove_all_finalizers(key)
            return None
        job = item.read(BatchJob)
        if job.is_elsewhere:
            return None
        if job.status.end is not None:
            self.memory.forget(job.uid)
            await self._remove_all_finalizers(key)
            return None
        if job.spec.completion_mode not in ("NonIndexed", "Indexed"):
            words = "Skipped Job sync because completion mode is unknown"
            self._context.events.record(job_reference(item), "UnknownCompletionMode", words, type_="Warning")
            return None
        await self._claim(key, job)

        def pods() -> list[JobPod]:
            return [pod for pod in self._book.of(key) if pod.owner_uid == job.uid]

        try:
            return await JobSync(self._context, self.memory, item, pods).run()
        finally:
            present = self._jobs.get(*key)
            if present is None or present.uid != job.uid:
                # The job was deleted during the sync, and no other event follows.
                self.memory.forget(job.uid)

    async def _claim(self, key: Key, job: BatchJob) -> None:
        claims = find_claims(job, self._book.of(key), self._book.orphans(key[0]))
        if claims.stale_pods:
            raise_if(await self._writes.remove_finalizers(claims.stale_pods))
        if claims.adopt:
            # The cache may not know yet that the job is being deleted or was created again.
            fresh = (await self._context.api.get(JOBS, *key)).read(BatchJob)
            if fresh.uid == job.uid and not fresh.is_deleting:
                await self._writes.adopt(job, claims.adopt)
        await self._writes.release(job, claims.release)

    async def _remove_all_finalizers(self, key: Key) -> None:
        """Removes the finalizers of pods of a finished or deleted job, which are no longer counted."""
        raise_if(await self._writes.remove_finalizers(self._tracked(key)))

    def _tracked(self, key: Key) -> list[JobPod]:
        orphans = [pod for pod in self._book.orphans(key[0]) if pod.job_name == key[1]]
        return [pod for pod in self._book.of(key) + orphans if pod.is_tracked]

    async def _is_gone(self, key: Key) -> bool:
        """Asks the API server: the cache may have pods of another controller before their job."""
        try:
            await self._context.api.get(JOBS, *key)
        except NotFoundError:
            return True
        return False
