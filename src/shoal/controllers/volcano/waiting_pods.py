"""Pods of groups that were not let in: nobody looks for a place for them, so it is said on them why.

A few at a time, after everything else, and only where it is not said yet: a queue may have ten thousand of them. The
words name no counts, which would change with every pod that comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.controllers.volcano.enqueueing import Candidate, Decision
from shoal.controllers.volcano.phases import NOT_READY
from shoal.controllers.volcano.sights import GroupPod, pod_of
from shoal.store.live.context import Context
from shoal.store.live.informer import Index
from shoal.store.live.item import Item, Obj
from shoal.store.live.kind import PODS
from shoal.store.live.port import Patch

MOST_AT_ONCE = 64
_SCHEDULED, _UNSCHEDULABLE = "PodScheduled", "Unschedulable"


class WaitingPods:
    def __init__(self, context: Context, members: Index) -> None:
        self._context = context
        self._members = members

    def untold(self, candidates: Iterable[Candidate], decision: Decision) -> Iterator[tuple[Item, str]]:
        for one in candidates:
            refusal = decision.refused.get(one.key)
            if refusal is None or not one.tally.of("Pending"):
                continue
            words = f"{NOT_READY}; {refusal.message}"
            for item in self._members["/".join(one.key)]:
                pod = pod_of(item)
                if pod is not None and _is_looking(pod) and not _says(pod, words):
                    yield item, words

    async def tell(self, item: Item, words: str) -> None:
        condition: Obj = {
            "type": _SCHEDULED,
            "status": "False",
            "reason": _UNSCHEDULABLE,
            "message": words,
            "lastTransitionTime": self._context.clock.text(),
        }
        body = {"metadata": {"uid": item.uid}, "status": {"conditions": [condition]}}
        await self._context.api.patch(PODS, *item.key, Patch("strategic", body), "status")


def _is_looking(pod: GroupPod) -> bool:
    return not (pod.spec.node_name or pod.is_leaving or pod.has_ended or pod.spec.scheduling_gates)


def _says(pod: GroupPod, words: str) -> bool:
    return any(one.type == _SCHEDULED and one.message == words for one in pod.status.conditions)
