"""Creates pods from a template in batches that double in size: one, two, four, and so on.

If the first pod is refused (by a quota or a webhook), the others need not be tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import TypeVar

from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import PODS
from shoal.client.owned_pods.pod_view import PodView
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError, RefusedError
from shoal.units.errors import ShoalError

T = TypeVar("T")


def pod_from_template(template: Obj, owner: Obj, reference: Obj) -> Obj:
    """The API server generates the name from the owner's."""
    meta = template.get("metadata") or {}
    owner_meta = owner["metadata"]
    metadata: Obj = {
        "generateName": f"{owner_meta['name']}-",
        "namespace": owner_meta["namespace"],
        "ownerReferences": [reference],
    }
    for key in ("labels", "annotations", "finalizers"):
        if meta.get(key):
            metadata[key] = deepcopy(meta[key])
    return {"metadata": metadata, "spec": deepcopy(template["spec"])}


async def slow_start_batch(items: Sequence[T], call: Callable[[T], Awaitable[object]]) -> tuple[int, ShoalError | None]:
    """Returns the number of successes and the first failure; no batch is started after a failure."""
    done, size = 0, 1
    while done < len(items):
        group = items[done : done + size]
        answers = await asyncio.gather(*(call(job) for job in group), return_exceptions=True)
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        done += len(group) - len(failures)
        if failures:
            first = failures[0]
            if not isinstance(first, ShoalError):
                raise first
            return done, first
        size *= 2
    return done, None


class PodControl:
    """Creates and deletes pods for an owner, and records Events with the messages of Kubernetes' controllers."""

    def __init__(self, context: Context, owner: Obj) -> None:
        self._context = context
        self._owner = owner

    async def create(self, pod: Obj) -> Item | None:
        """Returns None if the namespace is being deleted, without an Event."""
        try:
            made = await self._context.api.create(PODS, pod)
        except ShoalError as error:
            if is_namespace_ending(error):
                return None
            self._context.events.record(self._owner, "FailedCreate", f"Error creating: {error.what}", type_="Warning")
            raise
        self._context.events.record(self._owner, "SuccessfulCreate", f"Created pod: {made.name}")
        return made

    async def delete(self, pod: PodView) -> None:
        meta = pod.metadata
        try:
            await self._context.api.delete(PODS, meta.namespace, meta.name, Deletion(uid=meta.uid))
        except NotFoundError:
            return
        except ShoalError as error:
            self._context.events.record(self._owner, "FailedDelete", f"Error deleting: {error.what}", type_="Warning")
            raise
        self._context.events.record(self._owner, "SuccessfulDelete", f"Deleted pod: {meta.name}")


def is_namespace_ending(error: ShoalError) -> bool:
    if not isinstance(error, RefusedError):
        return False
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.details.get("causes") or ())
