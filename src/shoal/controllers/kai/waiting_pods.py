"""Pods that are kept from the facts: nobody looks for a place for them, so it is said on them why.

A few at a time, after everything else, and only what is not said yet: a queue may have ten thousand of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container

from shoal.controllers.kai.work import Work
from shoal.controllers.kai.works import Works
from shoal.engine.asks import Ask
from shoal.engine.gangs.evidence import GroupEvidence
from shoal.engine.reasons import Code, Evidence
from shoal.store.live.context import Context
from shoal.store.live.kind import PODS
from shoal.store.live.unscheduled import Unscheduled
from shoal.units.errors import ShoalError
from shoal.views.live_refusals import Outlook, gang_words

_log = logging.getLogger("shoal.kai")
_MOST_AT_ONCE = 64


class WaitingPods:
    def __init__(self, context: Context, works: Works, nodes: Callable[[], int]) -> None:
        """`nodes`: how many there are."""
        self._works = works
        self._nodes = nodes
        self._pods = context.informers.of(PODS)
        self._unscheduled = Unscheduled(context.api, context.clock, context.events)
        self._said: dict[str, tuple[str, str]] = {}
        """Pod -> its uid and the words."""

    async def tell(self, refused: Container[str], verdict: Callable[[Work], tuple[str, str]]) -> bool:
        """Works that are `refused` were looked at and not let in, and `verdict` says why. Whether all was said."""
        before, self._said = self._said, {}
        left = _MOST_AT_ONCE
        for work in list(self._works.all.values()):
            words = self._words(work, refused, verdict)
            for pod in list(work.waiting) if words else ():
                item = self._pods.get(*pod.split("/", 1))
                if item is None:
                    continue
                if before.get(pod) != (item.uid, words) and not self._unscheduled.is_told(item, words):
                    if not left:
                        return False
                    left -= 1
                    try:
                        await self._unscheduled.tell(item, words)
                    except ShoalError as error:
                        _log.info("%s could not be told: %s", pod, error)
                        continue
                self._said[pod] = item.uid, words
        return True

    def _words(self, work: Work, refused: Container[str], verdict: Callable[[Work], tuple[str, str]]) -> str:
        if work.there or not work.waiting:
            return ""
        if not work.is_whole:
            code = Code.GANG_TOO_SMALL if work.origin.is_known else Code.GANG_UNKNOWN
            story = GroupEvidence(work.origin.name, code, needs=work.origin.minimum or 0, exist=work.exist)
            return gang_words(story, Outlook(Ask(), Evidence(self._nodes(), ())))
        return ": ".join(verdict(work)) if work.key in refused else ""
