"""Writes the PodScheduled condition of pods that wait for Volcano's queues: the scheduler does not try to place them.

`PendingGroupConditions` covers the pods of groups that were not admitted, and pods of missing groups.
`HeldPodConditions` covers pods of admitted groups that wait for quota or for more members. Both write a few conditions
at a time, after everything else, and only where the message is new: a queue may have ten thousand waiting pods. The
messages contain no counts, which would change with each new pod.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Iterator

from shoal.client.context import Context
from shoal.client.index import Index
from shoal.client.item import Item
from shoal.client.kind import PODS
from shoal.client.unscheduled_condition import Unscheduled
from shoal.controllers.volcano.names import SCHEDULER
from shoal.controllers.volcano.views import pod_of
from shoal.engine.asks import Ask
from shoal.engine.gangs.evidence import GroupEvidence
from shoal.engine.queues.disciplines.volcano.enqueue import EnqueueResult, PodGroupCandidate
from shoal.engine.queues.disciplines.volcano.group_phases import NOT_READY
from shoal.engine.reasons import Code, Evidence
from shoal.units.errors import ShoalError
from shoal.views.live_refusals import Outlook, gang_words

MAX_WRITES = 64
GROUP_DELAY_S = 2.0
"""A pod may be created so long before its group."""
_NO_NODES = Outlook(Ask(), Evidence(0, ()))


class PendingGroupConditions:
    def __init__(self, context: Context, members: Index) -> None:
        self._unscheduled = Unscheduled(context.api, context.clock, context.events)
        self._members = members

    def outdated(self, candidates: Iterable[PodGroupCandidate], decision: EnqueueResult) -> Iterator[tuple[Item, str]]:
        for one in candidates:
            refusal = decision.refused.get(one.key)
            if refusal is None or not one.counts.of("Pending"):
                continue
            words = f"{NOT_READY}; {refusal.message}"
            for item in self._members["/".join(one.key)]:
                if not self._unscheduled.is_reported(item, words):
                    yield item, words

    def without_group(self, groups: Container[str], now_s: float) -> tuple[list[tuple[Item, str]], bool]:
        """Pods of missing groups without the message, and whether some may precede their group."""
        found: list[tuple[Item, str]] = []
        is_too_early = False
        for group in [name for name in self._members.values() if name not in groups]:
            items = self._members[group]
            words = gang_words(GroupEvidence(group, Code.GANG_UNKNOWN, exist=len(items)), _NO_NODES)
            for item in items:
                pod = pod_of(item)
                if pod is None or pod.spec.scheduler_name != SCHEDULER or self._unscheduled.is_reported(item, words):
                    continue
                if now_s < pod.metadata.created_s + GROUP_DELAY_S:
                    is_too_early = True
                else:
                    found.append((item, words))
        return found, is_too_early

    async def write(self, item: Item, words: str) -> None:
        await self._unscheduled.report(item, words)


_log = logging.getLogger("shoal.volcano")
_PAUSE_S = 1.0
"""The delay before a message is written: most pods continue at once."""


class HeldPodConditions:
    def __init__(self, context: Context, nodes: Callable[[], int]) -> None:
        """`nodes` returns the number of nodes."""
        self._context = context
        self._nodes = nodes
        self._pods = context.informers.of(PODS)
        self._unscheduled = Unscheduled(context.api, context.clock, context.events)
        self._messages: dict[str, str] = {}
        self._changed = asyncio.Event()

    def set_gang_too_small(self, group: str, needs: int, pods: Iterable[str]) -> None:
        keys = list(pods)
        evidence = GroupEvidence(group, Code.GANG_TOO_SMALL, needs=needs, exist=len(keys))
        self.set_message(keys, gang_words(evidence, Outlook(Ask(), Evidence(self._nodes(), ()))))

    def set_message(self, pods: Iterable[str], words: str) -> None:
        """Sets the message, which is written later if the pods are still held."""
        self._messages.update(dict.fromkeys(pods, words))
        self._changed.set()

    async def run(self, is_held: Callable[[str], bool]) -> None:
        """Runs until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._context.clock.sleep(_PAUSE_S)
            words, self._messages = self._messages, {}
            for pod, text in words.items():
                if is_held(pod):
                    await self._write(pod, text)

    async def _write(self, pod: str, words: str) -> None:
        item = self._pods.get(*pod.split("/", 1))
        if item is None or self._unscheduled.is_reported(item, words):
            return
        try:
            await self._unscheduled.report(item, words)
        except ShoalError as error:
            _log.info("Failed to write the condition of pod %s: %s", pod, error)
