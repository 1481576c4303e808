"""What a job's controller does to pods: many at once, but not more than a server likes, each failure told.

Creation starts slowly: one pod, then two, four, ... so that a quota that is used up is not asked five hundred times. A
name whose creation may or may not have been done is asked for again, so that a lost answer does not make two pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from shoal.controllers.jobs.claims import adopt_patch, let_go_patch, release_patch
from shoal.controllers.jobs.job import Job, Obj
from shoal.controllers.jobs.pods import JobPod
from shoal.store.live.context import Context
from shoal.store.live.kind import PODS
from shoal.store.live.port import Deletion, Patch, Select
from shoal.store.live.refusals import AlreadyExistsError, BusyError, NotFoundError, RefusedError, StaleError
from shoal.units.errors import ShoalError

T = TypeVar("T")
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX = 58
_MOST_CALLS = 64
_MOST_TOLD = 20
"""Events of pods created or deleted in one go: Kubernetes' own recorder drops the rest of a flood as well."""


class PodWrites:
    def __init__(self, context: Context) -> None:
        self._api = context.api
        self._pods = context.informers.of(PODS)
        self._events = context.events
        self._draw = context.draw
        self.unsure: dict[str, dict[str, list[str]]] = {}
        """By job and beginning of the name."""

    def forget(self, job_uid: str) -> None:
        self.unsure.pop(job_uid, None)

    async def create(self, about: Obj, pods: Sequence[Obj]) -> ShoalError | None:
        """As many as the server takes. `about` is the job, for its Events."""
        done, size = 0, 1
        while done < len(pods):
            batch, is_told = pods[done : done + size], done < _MOST_TOLD
            errors = await _each(batch, partial(self._create, about, is_told))
            if errors:
                return None if _is_namespace_ending(errors[0]) else errors[0]
            done, size = done + len(batch), size * 2
        return None

    async def delete(self, about: Obj, pods: Sequence[JobPod], *, untracked: bool) -> ShoalError | None:
        """`untracked` takes the finalizer first, so that they are not counted as failed."""
        told = {pod.uid for pod in pods[:_MOST_TOLD]}
        errors = await _each(pods, lambda pod: self._delete(about, pod, untracked, pod.uid in told))
        return errors[0] if errors else None

    async def release(self, pods: Sequence[JobPod]) -> ShoalError | None:
        errors = await _each(pods, self._release)
        return errors[0] if errors else None

    async def adopt(self, job: Job, pods: Iterable[JobPod]) -> None:
        for pod in pods:
            await self._patch(pod, adopt_patch(job, pod))

    async def let_go(self, job: Job, pods: Iterable[JobPod]) -> None:
        for pod in pods:
            await self._patch(pod, let_go_patch(job, pod))

    async def _create(self, about: Obj, is_told: bool, pod: Obj) -> None:
        prefix = pod["metadata"]["generateName"]
        job_uid = about["metadata"]["uid"]
        name = pod["metadata"]["name"] = self._unsure_name(job_uid, prefix) or self._name(prefix)
        try:
            await self._make(pod)
        except ShoalError as error:
            if isinstance(error, BusyError):
                self.unsure.setdefault(job_uid, {}).setdefault(prefix, []).append(name)
            if not isinstance(error, StaleError) and not _is_namespace_ending(error):
                self._events.record(about, "FailedCreate", f"Error creating: {error}", type_="Warning")
            raise
        if is_told:
            self._events.record(about, "SuccessfulCreate", f"Created pod: {name}")

    async def _make(self, pod: Obj) -> None:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        try:
            await self._api.create(PODS, pod)
        except AlreadyExistsError:
            # It was done before. What is lacking is another question once the cache knows; this may list pods, not get.
            found = await self._api.list(PODS, namespace, Select(fields=f"metadata.name={name}"))
            for item in found.items:
                self._pods.learn(item)
            raise StaleError(f"pod {namespace}/{name} was there already") from None

    def _unsure_name(self, job_uid: str, prefix: str) -> str:
        """One that is to be asked for again; empty if there is none."""
        names = self.unsure.get(job_uid, {})
        found = names.get(prefix)
        if not found:
            return ""
        name = found.pop()
        if not found:
            del names[prefix]
        return name

    def _name(self, prefix: str) -> str:
        """As the server makes one."""
        return prefix[:_LONGEST_PREFIX] + "".join(self._draw.choices(_LETTERS, k=5))

    async def _delete(self, about: Obj, pod: JobPod, untracked: bool, is_told: bool) -> None:
        if untracked:
            await self._release(pod)
        try:
            await self._api.delete(PODS, pod.namespace, pod.name, Deletion(uid=pod.uid))
        except NotFoundError:
            return
        except ShoalError as error:
            self._events.record(about, "FailedDelete", f"Error deleting: {error}", type_="Warning")
            raise
        if is_told:
            self._events.record(about, "SuccessfulDelete", f"Deleted pod: {pod.name}")

    async def _release(self, pod: JobPod) -> None:
        if pod.is_tracked:
            await self._patch(pod, release_patch(pod))

    async def _patch(self, pod: JobPod, body: Obj) -> None:
        try:
            await self._api.patch(PODS, pod.namespace, pod.name, Patch("strategic", body))
        except NotFoundError:
            # Gone already, and with it whatever was to be changed.
            return


async def _each(things: Sequence[T], act: Callable[[T], Awaitable[None]]) -> list[ShoalError]:
    """All of them, a bounded number at a time; what went wrong."""
    errors: list[ShoalError] = []
    waiting = iter(things)

    async def work() -> None:
        for thing in waiting:
            try:
                await act(thing)
            except ShoalError as error:
                errors.append(error)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(_MOST_CALLS, len(things))):
            group.create_task(work())
    return errors


def _is_namespace_ending(error: ShoalError) -> bool:
    causes = error.details.get("causes") or () if isinstance(error, RefusedError) else ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
