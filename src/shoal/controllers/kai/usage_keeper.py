"""Measures what the queues of KAI use over time, gives it to the discipline, and keeps it over restarts.

The use is kept in an annotation of the SchedulingShard whose `usageDBConfig` asks for it. It is written at most every
five minutes. A process that starts, or takes over, continues the record: pods that run on are measured from where it
ends. So only the use of pods that ended after the last write is lost by a crash.

A clock that jumps for less than half a minute changes nothing. What was measured by one that ran ahead for longer is
dropped when it is set right.

Where a shard names a Prometheus server, what the server says counts instead. The record is kept all the same, for times
in which the server does not answer.

Rejected: a ConfigMap, which needs a namespace and the permission to write ConfigMaps, and stays when the shard is
deleted; the status of queues, which KAI's definitions limit to their own fields; the history of Shoal, which is
optional and on the disk of one machine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from shoal.api.groups.kai import USAGE_ANNOTATION
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KAI_SHARDS
from shoal.client.informer import Informer
from shoal.client.optimistic_update import OptimisticUpdate
from shoal.controllers.kai.usage_reader import Ask, UsageReader
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.queues.disciplines.kai.clock_jumps import CONFIRM_S, JUMP_S, ClockJumps
from shoal.engine.queues.disciplines.kai.fair_queues import QueueTree
from shoal.engine.queues.disciplines.kai.node_pools import pool_rows
from shoal.engine.queues.disciplines.kai.pod_amounts import offered_amounts
from shoal.engine.queues.disciplines.kai.queue_use import use_until, uses_of
from shoal.engine.queues.disciplines.kai.sharded_fairshare import ShardedFairshare
from shoal.engine.queues.disciplines.kai.shards import Shard
from shoal.engine.queues.disciplines.kai.usage_record import QueueUse, UsageRecord, UsageState
from shoal.engine.queues.disciplines.kai.usage_text import usage_state, usage_text

_log = logging.getLogger("shoal.kai")
_WRITES_EVERY_S = 300.0


class UsageKeeper:
    def __init__(
        self, context: Context, scheduling: SchedulerState, discipline: ShardedFairshare, ask: Ask | None = None
    ) -> None:
        """`ask`: reads what a server of a shard says; without it only what is measured here counts."""
        self._context = context
        self._scheduling = scheduling
        self._discipline = discipline
        self._shards: Informer | None = None
        self._records: dict[str, UsageRecord] = {}
        """By name of the shard, of those whose fair shares depend on time."""
        self._tree = QueueTree(())
        self._ended: list[QueueUse] = []
        self._due_s: dict[str, float] = {}
        self._jumps = ClockJumps()
        self._too_long: set[str] = set()
        """Shards whose records cannot be written."""
        self._measured = asyncio.Event()
        self._update = OptimisticUpdate(context.api, context.clock, self._measured.set)
        self._reader = UsageReader(context, ask, self._answered) if ask is not None else None

    def follow(self, shards: Informer) -> None:
        self._shards = shards

    def next_s(self) -> float | None:
        due_s = min(self._due_s.values(), default=None)
        if due_s is None:
            return None
        # A clock that was set back would let it wait for a long time.
        return min(due_s, self._context.clock.seconds() + self._every_s)

    def pod_gone(self, pod: str) -> None:
        """Called before the pod leaves the facts."""
        if self._records:
            now_s = self._context.clock.seconds()
            use = use_until(self._scheduling.cluster, self._tree, pod, now_s)
            if use is not None:
                self._ended.append(use)

    def shards_changed(self) -> None:
        """Begin or continue the records of the shards that have one now. Called when the queues changed, too."""
        self._tree = QueueTree(self._discipline.queues)
        if self._reader is not None:
            self._reader.put(self._discipline.shards.each)
        before, self._records = self._records, {}
        for shard in self._discipline.shards.each:
            if shard.usage is None:
                self._discipline.disciplines[shard.name].usage = {}
                continue
            record = before.get(shard.name) or UsageRecord(shard.usage, self._kept(shard.name))
            record.window = shard.usage
            self._records[shard.name] = record
            self._give(shard, record)
        self._due_s = {name: self._due_s.get(name, 0.0) for name in self._records}
        if not self._records:
            self._ended.clear()

    def measure(self, now_s: float) -> None:
        """Called in every cycle."""
        latest_s = now_s + self._every_s
        if not any(due_s <= now_s or due_s > latest_s for due_s in self._due_s.values()):
            return
        if not self._is_steady(now_s):
            self._due_s = dict.fromkeys(self._due_s, now_s + CONFIRM_S)
            return
        cluster = self._scheduling.cluster
        uses = [*uses_of(cluster, self._tree), *self._ended]
        pools = {queue.name: queue.pool for queue in self._discipline.queues}
        for shard in self._discipline.shards.each:
            if shard.name in self._records:
                # All of them at once: what ended is in one list.
                pool = shard.pool
                mine = uses if pool is None else [use for use in uses if pools.get(use.path[0], "") == pool.value]
                capacity = offered_amounts(cluster, pool_rows(cluster, pool))
                self._records[shard.name].measure(mine, capacity, now_s)
                self._due_s[shard.name] = now_s + shard.measures_every_s
                self._give(shard, self._records[shard.name])
        self._ended.clear()
        self._measured.set()

    async def run(self, is_active: Callable[[], bool]) -> None:
        """Writes the records, and asks servers while it is active, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_again())
            if self._reader is not None:
                group.create_task(self._reader.run(lambda: self._shards, is_active))

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _write_again(self) -> None:
        while True:
            await self._measured.wait()
            self._measured.clear()
            await self._write()
            await self._context.clock.sleep(_WRITES_EVERY_S)

    @property
    def _every_s(self) -> float:
        """The longest time between two measurements."""
        each = (shard.measures_every_s for shard in self._discipline.shards.each if shard.name in self._records)
        return max(each, default=CONFIRM_S)

    def _is_steady(self, now_s: float) -> bool:
        measured = [record.state.until_s for record in self._records.values() if record.state is not None]
        if not measured:
            return True
        last_s = max(measured)
        # It is measured again some time after the last time.
        if not self._jumps.is_steady(now_s, min(max(now_s, last_s), last_s + self._every_s)):
            return False
        if now_s < last_s - JUMP_S:
            _log.warning(
                "the clock ran ahead until %d seconds from now: what was measured so is dropped", last_s - now_s
            )
            for record in self._records.values():
                record.forget_after(now_s)
        return True

    def _give(self, shard: Shard, record: UsageRecord) -> None:
        told = self._reader.usage(shard, self._context.clock.seconds()) if self._reader is not None else None
        self._discipline.disciplines[shard.name].usage = record.usage() if told is None else told

    def _answered(self) -> None:
        """A server has answered."""
        for shard in self._discipline.shards.each:
            if shard.name in self._records:
                self._give(shard, self._records[shard.name])
        self._scheduling.wake()

    def _kept(self, name: str) -> UsageState | None:
        """The record that an earlier process wrote."""
        item = self._shards.get("", name) if self._shards is not None else None
        text = ((item.obj()["metadata"].get("annotations") or {}).get(USAGE_ANNOTATION, "")) if item is not None else ""
        try:
            return usage_state(text) if text else None
        except ValueError as error:
            _log.warning("SchedulingShard %s: annotation %s: %s: it is begun anew", name, USAGE_ANNOTATION, error)
            return None

    async def _write(self) -> None:
        for name, record in list(self._records.items()):
            item = self._shards.get("", name) if self._shards is not None else None
            text = usage_text(record)
            self._note_length(name, is_too_long=not text and bool(record.usage()))
            if item is None or not text or not record.usage():
                continue
            if (item.obj()["metadata"].get("annotations") or {}).get(USAGE_ANNOTATION) == text:
                continue
            body = {"metadata": {"annotations": {USAGE_ANNOTATION: text}}}
            if not await self._update.merged(KAI_SHARDS, item, body):
                self._measured.set()

    def _note_length(self, name: str, *, is_too_long: bool) -> None:
        """Log once that a record cannot be written."""
        if is_too_long and name not in self._too_long:
            words = "SchedulingShard %s: the use of %d queues is too long for an annotation: a restart forgets it"
            _log.warning(words, name, len(self._discipline.queues))
        if is_too_long:
            self._too_long.add(name)
        else:
            self._too_long.discard(name)
