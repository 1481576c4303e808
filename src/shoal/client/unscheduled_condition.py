"""Writes on a pod why it is not considered for scheduling yet, as kube-scheduler does: a condition and an Event.

It is for controllers that hold pods back. Schedulers report the reasons that they find themselves.
"""

from __future__ import annotations

import msgspec

from shoal.api.partial import DeletionMeta, PartialPodSpec
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.clock import Clock
from shoal.client.item import Item, Obj
from shoal.client.kind import PODS
from shoal.client.port import Api, Patch
from shoal.client.recorder import SCHEDULING, Recorder

_SCHEDULED, _UNSCHEDULABLE = "PodScheduled", "Unschedulable"


class _ScheduledCondition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _UnscheduledPodStatus(msgspec.Struct):
    phase: str = ""
    conditions: tuple[_ScheduledCondition, ...] = ()


class _UnscheduledPod(msgspec.Struct):
    metadata: DeletionMeta
    spec: PartialPodSpec = msgspec.field(default_factory=PartialPodSpec)
    status: _UnscheduledPodStatus = msgspec.field(default_factory=_UnscheduledPodStatus)


class Unscheduled:
    def __init__(self, api: Api, clock: Clock, events: Recorder) -> None:
        self._api = api
        self._clock = clock
        self._events = events

    def is_reported(self, item: Item, words: str) -> bool:
        """Whether the condition is already written, or the pod is not one to report on."""
        pod = item.read(_UnscheduledPod)
        is_looking = not (pod.spec.node_name or pod.spec.scheduling_gates or pod.status.phase in TERMINAL_PHASES)
        if not is_looking or pod.metadata.deletion_timestamp is not None:
            return True
        said = _said(pod)
        return said is not None and (said.status, said.message) == ("False", words)

    async def report(self, item: Item, words: str) -> None:
        pod = item.read(_UnscheduledPod)
        said = _said(pod)
        since = said.last_transition_time if said is not None and said.status == "False" else None
        condition: Obj = {
            "type": _SCHEDULED,
            "status": "False",
            "reason": _UNSCHEDULABLE,
            "message": words,
            "lastTransitionTime": since or self._clock.text(),
        }
        body = {"metadata": {"uid": item.uid}, "status": {"conditions": [condition]}}
        await self._api.patch(PODS, *item.key, Patch("strategic", body), "status")
        meta = {"name": item.name, "namespace": item.namespace, "uid": item.uid}
        about = {"kind": PODS.name, "apiVersion": PODS.api_version, "metadata": meta}
        pen = self._events.named(pod.spec.scheduler_name)
        pen.record(about, "FailedScheduling", words, type_="Warning", deed=SCHEDULING)


def _said(pod: _UnscheduledPod) -> _ScheduledCondition | None:
    return next((one for one in pod.status.conditions if one.type == _SCHEDULED), None)
