"""Pods of groups that were let in and wait for their queue's turn, or for more of their like: nobody looks for a place
for them meanwhile, so it is said on them why. After everything else, and only what is not said yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from shoal.engine.asks import Ask
from shoal.engine.gangs.evidence import GroupEvidence
from shoal.engine.reasons import Code, Evidence
from shoal.store.live.context import Context
from shoal.store.live.kind import PODS
from shoal.store.live.unscheduled import Unscheduled
from shoal.units.errors import ShoalError
from shoal.views.live_refusals import Outlook, gang_words

_log = logging.getLogger("shoal.volcano")
_PAUSE_S = 1.0
"""A group is told once it has stood still for so long: most go on at once."""


class KeptWords:
    def __init__(self, context: Context, nodes: Callable[[], int]) -> None:
        """`nodes`: how many there are."""
        self._context = context
        self._nodes = nodes
        self._pods = context.informers.of(PODS)
        self._unscheduled = Unscheduled(context.api, context.clock, context.events)
        self._words: dict[str, str] = {}
        self._news = asyncio.Event()

    def too_small(self, group: str, needs: int, pods: Iterable[str]) -> None:
        keys = list(pods)
        story = GroupEvidence(group, Code.GANG_TOO_SMALL, needs=needs, exist=len(keys))
        self.say(keys, gang_words(story, Outlook(Ask(), Evidence(self._nodes(), ()))))

    def say(self, pods: Iterable[str], words: str) -> None:
        """Unless they go on meanwhile."""
        self._words.update(dict.fromkeys(pods, words))
        self._news.set()

    async def run(self, is_kept: Callable[[str], bool]) -> None:
        """Until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            await self._context.clock.sleep(_PAUSE_S)
            words, self._words = self._words, {}
            for pod, text in words.items():
                if is_kept(pod):
                    await self._tell(pod, text)

    async def _tell(self, pod: str, words: str) -> None:
        item = self._pods.get(*pod.split("/", 1))
        if item is None or self._unscheduled.is_told(item, words):
            return
        try:
            await self._unscheduled.tell(item, words)
        except ShoalError as error:
            _log.info("%s could not be told: %s", pod, error)
