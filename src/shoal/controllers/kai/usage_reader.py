"""Asks the Prometheus servers that SchedulingShards name for the use of KAI's queues over time.

Guarantees: scheduling waits for no server. While a server does not answer, its last answer counts for the shard's
`stalenessPeriod`; after that, and before the first answer, the use counts that Shoal measures itself in any case. An
Event on the SchedulingShard says when a server stops answering, and when it answers again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KAI_SHARDS
from shoal.client.informer import Informer
from shoal.engine.queues.disciplines.kai.shards import Shard
from shoal.engine.queues.disciplines.kai.usage_record import Usage
from shoal.engine.queues.disciplines.kai.usage_source import questions, usage_of
from shoal.units.errors import one_line

Ask = Callable[[str], Awaitable[str]]
"""The text at an address. Raises OSError or TimeoutError."""
_READ, _NOT_READ = "UsageRead", "UsageNotRead"
_FIRST_S = 1.0
"""After a change of the shards, which come one by one."""


class UsageReader:
    def __init__(self, context: Context, ask: Ask, on_answer: Callable[[], None]) -> None:
        self._context = context
        self._ask = ask
        self._on_answer = on_answer
        self._shards: tuple[Shard, ...] = ()
        self._changed = asyncio.Event()
        self._answers: dict[str, tuple[Shard, float, Usage]] = {}
        """Shard -> its last answer, when it came, and the settings for which it was asked."""
        self._silent: dict[str, bool] = {}
        """Shard -> whether its server did not answer when it was asked last."""

    def put(self, shards: tuple[Shard, ...]) -> None:
        """All shards there are."""
        asked = tuple(shard for shard in shards if shard.usage is not None and shard.source is not None)
        if asked != self._shards:
            self._shards = asked
            self._changed.set()

    def usage(self, shard: Shard, now_s: float) -> Usage | None:
        """What the server of the shard says; None where only what was measured counts."""
        known = self._answers.get(shard.name)
        if known is None or shard.source is None or not _asks_alike(known[0], shard):
            return None
        return known[2] if abs(now_s - known[1]) <= shard.source.stale_s else None

    async def run(self, shards: Callable[[], Informer | None], is_active: Callable[[], bool]) -> None:
        """Asks until cancelled."""
        clock = self._context.clock
        while True:
            self._changed.clear()
            for shard in self._shards if is_active() else ():
                await self._look(shard, shards())
            if not self._shards:
                await self._changed.wait()
                await clock.sleep(_FIRST_S)
            else:
                await clock.sleep(min(shard.measures_every_s for shard in self._shards))

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _look(self, shard: Shard, informer: Informer | None) -> None:
        source, window = shard.source, shard.usage
        if source is None or window is None:
            return
        now_s = self._context.clock.seconds()
        address = f"{source.url.rstrip('/')}/api/v1/query_range"
        try:
            asked = questions(source, window, now_s)
            found = usage_of([(await self._ask(f"{address}?{urlencode(one)}")).encode() for one in asked])
        except (OSError, TimeoutError, ValueError) as error:
            fault = one_line(str(error) or type(error).__name__)
            words = f"{source.url} does not say what queues used: {fault}. The use that Shoal measured counts"
            self._note(shard.name, informer, is_silent=True, words=words)
            return
        self._answers[shard.name] = shard, now_s, found
        self._note(shard.name, informer, is_silent=False, words=f"{source.url} says what queues used")
        self._on_answer()

    def _note(self, name: str, informer: Informer | None, *, is_silent: bool, words: str) -> None:
        """An Event where the server begins or ends to answer."""
        item = informer.get("", name) if informer is not None else None
        if item is None or self._silent.get(name) is is_silent:
            return
        self._silent[name] = is_silent
        about = {"kind": KAI_SHARDS.name, "apiVersion": KAI_SHARDS.api_version, "metadata": item.obj()["metadata"]}
        reason = _NOT_READ if is_silent else _READ
        self._context.events.record(about, reason, words, type_="Warning" if is_silent else "Normal")


def _asks_alike(one: Shard, other: Shard) -> bool:
    return (one.source, one.usage) == (other.source, other.usage)
