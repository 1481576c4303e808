"""Creates, deletes and patches the pods of a job: in parallel up to a limit, with an Event for each failure.

Creation starts slowly with one pod, then two, four, and so on, so that an exhausted quota is not hit five hundred
times. A name whose creation has an unknown result is used again, so that a lost response does not create two pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from shoal.client.context import Context
from shoal.client.kind import PODS
from shoal.client.port import Deletion, Patch, Select
from shoal.client.refusals import AlreadyExistsError, BusyError, NotFoundError, RefusedError, StaleError
from shoal.embedded.controllers.jobs.claims import adopt_patch, release_patch, remove_finalizer_patch
from shoal.embedded.controllers.jobs.job import BatchJob, Obj
from shoal.embedded.controllers.jobs.pods import JobPod
from shoal.units.errors import ShoalError

T = TypeVar("T")
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX = 58
_MAX_PARALLEL_CALLS = 64
_MAX_EVENTS = 20
"""The maximum number of Events per batch; the recorder of Kubernetes also drops the rest."""


class PodWrites:
    def __init__(self, context: Context) -> None:
        self._api = context.api
        self._pods = context.informers.of(PODS)
        self._events = context.events
        self._draw = context.draw
        self.unsure: dict[str, dict[str, list[str]]] = {}
        """By job and name prefix."""

    def forget(self, job_uid: str) -> None:
        self.unsure.pop(job_uid, None)

    async def create(self, regarding: Obj, pods: Sequence[Obj]) -> ShoalError | None:
        """Creates pods until the first error. `regarding`: the job, for its Events."""
        done, size = 0, 1
        while done < len(pods):
            batch, has_event = pods[done : done + size], done < _MAX_EVENTS
            errors = await _each(batch, partial(self._create, regarding, has_event))
            if errors:
                return None if _is_namespace_ending(errors[0]) else errors[0]
            done, size = done + len(batch), size * 2
        return None

    async def delete(self, regarding: Obj, pods: Sequence[JobPod], *, untracked: bool) -> ShoalError | None:
        """`untracked`: the finalizer is removed first, so that the pods are not counted as failed."""
        with_event = {pod.uid for pod in pods[:_MAX_EVENTS]}
        errors = await _each(pods, lambda pod: self._delete(regarding, pod, untracked, pod.uid in with_event))
        return errors[0] if errors else None

    async def remove_finalizers(self, pods: Sequence[JobPod]) -> ShoalError | None:
        errors = await _each(pods, self._remove_finalizer)
        return errors[0] if errors else None

    async def adopt(self, job: BatchJob, pods: Iterable[JobPod]) -> None:
        for pod in pods:
            await self._patch(pod, adopt_patch(job, pod))

    async def release(self, job: BatchJob, pods: Iterable[JobPod]) -> None:
        for pod in pods:
            await self._patch(pod, release_patch(job, pod))

    async def _create(self, regarding: Obj, has_event: bool, pod: Obj) -> None:
        prefix = pod["metadata"]["generateName"]
        job_uid = regarding["metadata"]["uid"]
        name = pod["metadata"]["name"] = self._unsure_name(job_uid, prefix) or self._name(prefix)
        try:
            await self._make(pod)
        except ShoalError as error:
            if isinstance(error, BusyError):
                self.unsure.setdefault(job_uid, {}).setdefault(prefix, []).append(name)
            if not isinstance(error, StaleError) and not _is_namespace_ending(error):
                self._events.record(regarding, "FailedCreate", f"Error creating: {error}", type_="Warning")
            raise
        if has_event:
            self._events.record(regarding, "SuccessfulCreate", f"Created pod: {name}")

    async def _make(self, pod: Obj) -> None:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        try:
            await self._api.create(PODS, pod)
        except AlreadyExistsError:
            # The pod exists already. The controller may list pods but not get them; the cache will have the pod.
            found = await self._api.list(PODS, namespace, Select(fields=f"metadata.name={name}"))
            for item in found.items:
                self._pods.learn(item)
            raise StaleError(f"Pod {namespace}/{name} already exists") from None

    def _unsure_name(self, job_uid: str, prefix: str) -> str:
        """A name whose creation has an unknown result; empty if there is none."""
        names = self.unsure.get(job_uid, {})
        found = names.get(prefix)
        if not found:
            return ""
        name = found.pop()
        if not found:
            del names[prefix]
        return name

    def _name(self, prefix: str) -> str:
        """A name as the API server generates it."""
        return prefix[:_LONGEST_PREFIX] + "".join(self._draw.choices(_LETTERS, k=5))

    async def _delete(self, regarding: Obj, pod: JobPod, untracked: bool, has_event: bool) -> None:
        if untracked:
            await self._remove_finalizer(pod)
        try:
            await self._api.delete(PODS, pod.namespace, pod.name, Deletion(uid=pod.uid))
        except NotFoundError:
            return
        except ShoalError as error:
            self._events.record(regarding, "FailedDelete", f"Error deleting: {error}", type_="Warning")
            raise
        if has_event:
            self._events.record(regarding, "SuccessfulDelete", f"Deleted pod: {pod.name}")

    async def _remove_finalizer(self, pod: JobPod) -> None:
        if pod.is_tracked:
            await self._patch(pod, remove_finalizer_patch(pod))

    async def _patch(self, pod: JobPod, body: Obj) -> None:
        try:
            await self._api.patch(PODS, pod.namespace, pod.name, Patch("strategic", body))
        except NotFoundError:
            # The pod is deleted already.
            return


async def _each(things: Sequence[T], act: Callable[[T], Awaitable[None]]) -> list[ShoalError]:
    """Runs `act` for all, a limited number at a time; returns the errors."""
    errors: list[ShoalError] = []
    waiting = iter(things)

    async def work() -> None:
        for thing in waiting:
            try:
                await act(thing)
            except ShoalError as error:
                errors.append(error)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(_MAX_PARALLEL_CALLS, len(things))):
            group.create_task(work())
    return errors


def _is_namespace_ending(error: ShoalError) -> bool:
    causes = error.details.get("causes") or () if isinstance(error, RefusedError) else ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
