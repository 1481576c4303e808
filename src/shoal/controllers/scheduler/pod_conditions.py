"""Writes the PodScheduled condition and the events of a pod, in kube-scheduler's format.

A condition is written only if it differs from the present one, together with its Event.
"""

from __future__ import annotations

import msgspec

from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.port import Patch
from shoal.client.recorder import BINDING, SCHEDULING, Deed, Recorder
from shoal.store.watched.pod_views import PodView
from shoal.units.errors import ShoalError

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class _PodCondition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class _PodConditionsStatus(msgspec.Struct):
    conditions: tuple[_PodCondition, ...] = ()


class _PodWithConditions(msgspec.Struct):
    status: _PodConditionsStatus = msgspec.field(default_factory=_PodConditionsStatus)


class PodConditionWriter:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._pods = context.informers.of(PODS)
        self._pens: dict[str, Recorder] = {}

    def bound(self, view: PodView, node: str) -> None:
        words = f"Successfully assigned {view.namespace}/{view.name} to {node}"
        self.record(view, "Scheduled", words, deed=BINDING)

    def record(
        self, view: PodView, reason: str, words: str, *, is_warning: bool = False, deed: Deed | None = None
    ) -> None:
        """Record an Event with the pod's scheduler name as reporter."""
        pen = self._pens.get(view.scheduler)
        if pen is None:
            pen = self._pens[view.scheduler] = self._context.events.named(view.scheduler)
        pen.record(about(view), reason, words, type_="Warning" if is_warning else "Normal", deed=deed)

    async def failed(self, view: PodView, error: ShoalError) -> None:
        """The server rejected the binding of the pod."""
        words = str(error)
        if not words.startswith("running "):
            words = f'binding rejected: running Bind plugin "DefaultBinder": {words}'
        await self.waits(view, words, SCHEDULER_ERROR)

    async def waits(self, view: PodView, words: str, reason: str = UNSCHEDULABLE) -> bool:
        """Returns whether the condition was written; it is not if the pod has it already."""
        item = self._pods.get(view.namespace, view.name)
        if item is None or item.uid != view.uid:
            return False
        before = next(
            (one for one in item.read(_PodWithConditions).status.conditions if one.type == "PodScheduled"), None
        )
        if before is not None and before.status == "True":
            return False
        if before is not None and (before.reason, before.message) == (reason, words):
            return False
        since = before.last_transition_time if before is not None and before.status == "False" else None
        condition: Obj = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": words,
            "lastProbeTime": None,
            "lastTransitionTime": since or self._context.clock.text(),
        }
        if view.generation:
            condition["observedGeneration"] = view.generation
        self.record(view, "FailedScheduling", words, is_warning=True, deed=SCHEDULING)
        await self.patch(view, {"conditions": [condition]})
        return True

    async def nominated(self, view: PodView, node: str) -> None:
        """Write the nomination; an empty node removes it."""
        await self.patch(view, {"nominatedNodeName": node or None})

    async def patch(self, view: PodView, status: Obj) -> None:
        """Patch the status of this pod, but not of a later pod with its name."""
        patch = Patch("strategic", {"metadata": {"uid": view.uid}, "status": status})
        await self._context.api.patch(PODS, view.namespace, view.name, patch, "status")


def about(view: PodView) -> Obj:
    meta = {"name": view.name, "namespace": view.namespace, "uid": view.uid}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta}
