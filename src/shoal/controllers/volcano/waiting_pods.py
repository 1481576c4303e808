"""Pods of groups that were not let in: nobody looks for a place for them, so it is said on them why.

A few at a time, after everything else, and only where it is not said yet: a queue may have ten thousand of them. The
words name no counts, which would change with every pod that comes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from shoal.controllers.volcano.enqueueing import Candidate, Decision
from shoal.controllers.volcano.names import SCHEDULER
from shoal.controllers.volcano.phases import NOT_READY
from shoal.controllers.volcano.sights import pod_of
from shoal.engine.asks import Ask
from shoal.engine.gangs.evidence import GroupEvidence
from shoal.engine.reasons import Code, Evidence
from shoal.store.live.context import Context
from shoal.store.live.index import Index
from shoal.store.live.item import Item
from shoal.store.live.unscheduled import Unscheduled
from shoal.views.live_refusals import Outlook, gang_words

MOST_AT_ONCE = 64
EARLY_S = 2.0
"""By which a pod may be ahead of its group."""
_NOWHERE = Outlook(Ask(), Evidence(0, ()))


class WaitingPods:
    def __init__(self, context: Context, members: Index) -> None:
        self._unscheduled = Unscheduled(context.api, context.clock, context.events)
        self._members = members

    def untold(self, candidates: Iterable[Candidate], decision: Decision) -> Iterator[tuple[Item, str]]:
        for one in candidates:
            refusal = decision.refused.get(one.key)
            if refusal is None or not one.tally.of("Pending"):
                continue
            words = f"{NOT_READY}; {refusal.message}"
            for item in self._members["/".join(one.key)]:
                if not self._unscheduled.is_told(item, words):
                    yield item, words

    def strays(self, groups: Container[str], now_s: float) -> tuple[list[tuple[Item, str]], bool]:
        """Pods of groups that are not there, untold; and whether there are some who may be just ahead of theirs."""
        found: list[tuple[Item, str]] = []
        is_early = False
        for group in [name for name in self._members.values() if name not in groups]:
            items = self._members[group]
            words = gang_words(GroupEvidence(group, Code.GANG_UNKNOWN, exist=len(items)), _NOWHERE)
            for item in items:
                pod = pod_of(item)
                if pod is None or pod.spec.scheduler_name != SCHEDULER or self._unscheduled.is_told(item, words):
                    continue
                if now_s < pod.metadata.created_s + EARLY_S:
                    is_early = True
                else:
                    found.append((item, words))
        return found, is_early

    async def tell(self, item: Item, words: str) -> None:
        await self._unscheduled.tell(item, words)
