"""Processes that compete for a lease: each with a server of its own to lose, and a record of who worked when."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from build.small_clusters import START_S
from shoal.client.clock import LoopClock
from shoal.client.election import LeaderElection
from shoal.client.item import Item, Obj
from shoal.client.kind import Kind
from shoal.client.lease_lock import Lock
from shoal.client.port import EVERYTHING, Api, Batches, Select


class Stage:
    """Where leaders work."""

    def __init__(self) -> None:
        self.working: list[str] = []
        self.most = 0
        """How many ever worked at once."""
        self._somebody_works = asyncio.Event()
        self.began: list[tuple[str, float]] = []
        self.ended: list[tuple[str, float]] = []

    async def work(self, name: str) -> None:
        self.working.append(name)
        self.began.append((name, now_s()))
        self.most = max(self.most, len(self.working))
        self._somebody_works.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.working.remove(name)
            if not self.working:
                self._somebody_works.clear()
            self.ended.append((name, now_s()))

    async def until_somebody_works(self, within_s: float = 120.0) -> str:
        async with asyncio.timeout(within_s):
            await self._somebody_works.wait()
        return self.working[0]


class Line:
    """The way of one process to the server. Cut, every call hangs for ever; `cut_at` cuts it at that many steps, of
    which each call has two: before it is done and after."""

    def __init__(self, api: Api, on_cut: Callable[[], None] = lambda: None) -> None:
        self.is_cut = False
        self.cut_at: int | None = None
        self.slow_s = 0.0
        self.calls: list[str] = []
        self._api: Any = api
        self._on_cut = on_cut
        self._steps = 0

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        return await self._passed("get", lambda: self._api.get(kind, namespace, name))

    async def create(self, kind: Kind, obj: Obj) -> Item:
        return await self._passed("create", lambda: self._api.create(kind, obj))

    async def update(self, kind: Kind, obj: Obj) -> Item:
        return await self._passed("update", lambda: self._api.update(kind, obj))

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        async with aclosing(self._api.watch(kind, since, namespace, select)) as batches:
            async for changes in batches:
                if self.is_cut or self.slow_s:
                    await asyncio.Event().wait() if self.is_cut else await asyncio.sleep(self.slow_s)
                yield changes

    async def _passed(self, name: str, call: Callable[[], Awaitable[Item]]) -> Item:
        self.calls.append(name)
        await self._step()
        answer = await call()
        await asyncio.sleep(self.slow_s)
        await self._step()
        return answer

    async def _step(self) -> None:
        self._steps += 1
        if self._steps == self.cut_at:
            self.is_cut = True
            self._on_cut()
        if self.is_cut:
            await asyncio.Event().wait()


class Process:
    def __init__(self, api: Api, stage: Stage, name: str, *, ahead_s: float = 0.0, identity: str = "") -> None:
        """`ahead_s`: how wrong its clock is."""
        self.name = name
        self.line = Line(api, self.kill)
        lock = Lock("kube-system", "shoal", identity or name)
        clock = LoopClock(START_S + ahead_s)
        draw = random.Random(name)
        self.election = LeaderElection(self.line, clock, draw, lock)  # type: ignore[arg-type]
        self.task = asyncio.ensure_future(self.election.run(lambda: stage.work(name)))

    def kill(self) -> None:
        """Nothing that it does afterwards reaches anybody."""
        self.line.is_cut = True
        self.task.cancel()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def now_s() -> float:
    return asyncio.get_running_loop().time()
