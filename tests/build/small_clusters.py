"""A control plane in memory, in virtual time, with any controllers and simulated kubelets beside it.

    @virtual
    async def test_...(tmp_path):
        async with small_cluster(tmp_path, controllers=[job_controller]) as cluster:
            await cluster.create(JOBS, {...})
            await cluster.until(lambda: cluster.count(PODS) == 3)

Everything runs in one loop; `pass_time` and `until` let it, at no cost.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from shoal.client.clock import LoopClock
from shoal.client.context import Context, Controller
from shoal.client.informers import Informers
from shoal.client.item import Item, Obj
from shoal.client.kind import EVENTS, PODS, Kind
from shoal.client.port import Api, Deletion, Patch
from shoal.client.recorder import Recorder
from shoal.client.write_through import WriteThroughApi
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.server.control_plane import ControlPlane, open_plane
from shoal.embedded.apiserver.settings import AuthorizationMode, Settings
from shoal.embedded.apiserver.storage.memory import MemoryStorage

START_S = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
ADMIN = Actor("admin", ("system:masters", "system:authenticated"))
Make = Callable[[Context], Controller]


class SmallCluster:
    def __init__(self, plane: ControlPlane, clock: LoopClock, seed: int) -> None:
        self.plane = plane
        self.clock = clock
        self.api: Api = InsideApi(plane, ADMIN, "test")
        self.draw = random.Random(seed)
        self.informers = Informers(self.api, clock, self.draw)
        self.tasks: list[asyncio.Task[Any]] = []

    def context(self, name: str = "test", api: Api | None = None) -> Context:
        learning = WriteThroughApi(api or self.api, self.informers)
        return Context(name, learning, self.informers, self.clock, self.draw, Recorder(self.api, self.clock, name))

    def start(self, *makers: Make, api: Api | None = None) -> None:
        for maker in makers:
            context = self.context(api=api)
            self.tasks += [asyncio.ensure_future(maker(context).run()), asyncio.ensure_future(context.events.run())]

    # -- objects ----------------------------------------------------------------------------------------------------

    async def create(self, kind: Kind, obj: Obj, namespace: str = "default") -> Obj:
        if kind.is_namespaced:
            obj.setdefault("metadata", {}).setdefault("namespace", namespace)
        return (await self.api.create(kind, obj)).obj()

    async def get(self, kind: Kind, name: str, namespace: str = "default") -> Obj:
        return (await self.api.get(kind, namespace if kind.is_namespaced else "", name)).obj()

    async def all(self, kind: Kind, namespace: str = "") -> list[Obj]:
        return [item.obj() for item in (await self.api.list(kind, namespace)).items]

    async def delete(self, kind: Kind, name: str, how: Deletion | None = None, namespace: str = "default") -> None:
        await self.api.delete(kind, namespace if kind.is_namespaced else "", name, how or Deletion())

    async def patch(self, kind: Kind, name: str, body: Any, subresource: str = "", namespace: str = "default") -> Item:
        """A merge patch."""
        return await self.api.patch(
            kind, namespace if kind.is_namespaced else "", name, Patch("merge", body), subresource
        )

    async def pods(self, namespace: str = "") -> list[Obj]:
        return await self.all(PODS, namespace)

    async def events(self, name: str) -> list[Obj]:
        """What was recorded about objects of that name."""
        return [event for event in await self.all(EVENTS) if event["involvedObject"]["name"] == name]

    # -- time -------------------------------------------------------------------------------------------------------

    async def pass_time(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def until(self, is_so: Callable[[], Any], within_s: float = 60.0) -> None:
        """Let the cluster run until it is so (`is_so` may be async); fails after that much virtual time."""
        ends = self.clock.seconds() + within_s
        while True:
            answer = is_so()
            if asyncio.iscoroutine(answer):
                answer = await answer
            if answer:
                return
            if self.clock.seconds() >= ends:
                raise AssertionError(f"not so after {within_s:g} s")
            await self.clock.sleep(0.05)


@asynccontextmanager
async def small_cluster(
    folder: Path,
    controllers: Sequence[Make] = (),
    *,
    seed: int = 1,
    speed: float = 1.0,
    authorization: AuthorizationMode = "always-allow",
) -> AsyncIterator[SmallCluster]:
    clock = LoopClock(START_S, speed)
    settings = Settings(None, folder / "kubeconfig", authorization=authorization)
    plane = await open_plane(settings, ("127.0.0.1", 1), MemoryStorage(), clock)
    cluster = SmallCluster(plane, clock, seed)
    following = asyncio.ensure_future(cluster.informers.run())
    cluster.start(*controllers)
    try:
        yield cluster
        broken = [task for task in cluster.tasks if task.done()]
        assert not broken, [task.exception() for task in broken]
    finally:
        for task in (following, *cluster.tasks):
            task.cancel()
        await asyncio.gather(following, *cluster.tasks, return_exceptions=True)
        await plane.close()
