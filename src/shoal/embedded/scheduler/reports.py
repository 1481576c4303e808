"""Writes conditions and Events about unschedulable pods, and deletes preempted pods."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.port import Deletion, Patch
from shoal.client.recorder import BINDING, SCHEDULING, Deed, reference_of
from shoal.client.refusals import NotFoundError
from shoal.embedded.scheduler.pod_info import PodInfo


class ScheduledConditionWriter:
    def __init__(self, context: Context) -> None:
        self._api = context.api
        self._clock = context.clock
        self._pods = context.informers.of(PODS)
        self._events = context.events

    def bound(self, pod: PodInfo, node: str) -> None:
        words = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self._events.named(pod.scheduler).record(about(pod), "Scheduled", words, deed=BINDING)

    async def unplaced(self, pod: PodInfo, words: str, nominated: str | None, reason: str = "Unschedulable") -> None:
        """Writes the condition and the Event; `nominated`: "" clears the nomination, None keeps it."""
        item = self._pods.get(*pod.key)
        if item is None or item.uid != pod.uid:
            return
        status = item.obj().get("status", {})
        condition: Obj = {"type": "PodScheduled", "status": "False", "reason": reason, "message": words}
        if pod.generation:
            condition["observedGeneration"] = pod.generation
        body: Obj = {}
        before = next((one for one in status.get("conditions", ()) if one["type"] == "PodScheduled"), None)
        if before is None or any(before.get(name) != value for name, value in condition.items()):
            is_same = before is not None and before["status"] == "False" and before.get("lastTransitionTime")
            since = before["lastTransitionTime"] if before is not None and is_same else self._clock.text()
            condition |= {"lastProbeTime": None, "lastTransitionTime": since}
            body["conditions"] = [condition]
            # An unchanged message is not written again: there may be many tries.
            pen = self._events.named(pod.scheduler)
            pen.record(about(pod), "FailedScheduling", words, type_="Warning", deed=SCHEDULING)
        if nominated is not None and status.get("nominatedNodeName", "") != nominated:
            body["nominatedNodeName"] = nominated or None
        if body:
            patch = Patch("strategic", {"metadata": {"uid": pod.uid}, "status": body})
            await self._api.patch(PODS, pod.namespace, pod.name, patch, "status")

    async def end(self, victims: Sequence[PodInfo], pod: PodInfo, node: str) -> None:
        for victim in victims:
            if victim.is_terminating:
                continue
            try:
                await self._end(victim, pod)
            except NotFoundError:
                continue
            words = f"Preempted by pod {pod.uid} on node {node}"
            deed = Deed("Preempting", reference_of(about(pod)))
            self._events.named(pod.scheduler).record(about(victim), "Preempted", words, deed=deed)

    async def _end(self, victim: PodInfo, pod: PodInfo) -> None:
        condition: Obj = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{pod.scheduler}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": self._clock.text(),
        }
        if victim.generation:
            condition["observedGeneration"] = victim.generation
        body = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        await self._api.patch(PODS, victim.namespace, victim.name, Patch("strategic", body), "status")
        await self._api.delete(PODS, victim.namespace, victim.name, Deletion(uid=victim.uid))


def about(pod: PodInfo) -> Obj:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
    }
