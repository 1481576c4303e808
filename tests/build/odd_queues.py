"""The same work behind Volcano's queues and behind KAI's, and what a desk's book says of it.

Of GPUs the queues `a` and `b` own two each; `c` owns none and may never have more than one. Whoever is told to end is
made anew, as its owner would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from build.kai_clusters import GROUP, QUEUE_LABEL, add_kai_queue, kai_cluster
from build.live_schedulers import LiveScheduler, pod
from build.small_clusters import SmallCluster
from build.volcano_scenes import VolcanoScene, bare_volcano, volcano
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.port import Deletion
from shoal.controllers.kai.admission import KaiAdmission
from shoal.controllers.scheduling_loop.disciplines import Disciplines
from shoal.controllers.volcano.admission import VolcanoAdmission
from shoal.store.watched.cluster import WatchSettings

_GPU = "nvidia.com/gpu"
_OWN = {"a": 2, "b": 2, "c": 0}
_MOST = {"c": 1}


class QueuedWork(Protocol):
    cluster: SmallCluster
    live: LiveScheduler

    @property
    def discipline(self) -> Any: ...
    async def make_queues(self) -> None: ...
    async def gang(self, name: str, queue: str, count: int) -> None: ...
    async def bound(self) -> set[str]: ...
    async def one_of_two(self) -> set[str]:
        """Who of the two that queue `c` has room for one of is bound."""
        ...

    def book(self) -> set[str]:
        """Pods that hold room, as the desk knows it."""
        ...

    def charged(self) -> dict[str, int]:
        """GPUs by queue, as its discipline counts them; empty where there is none."""
        ...


class _Work:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.wanted: dict[str, Obj] = {}

    async def pods(self) -> dict[str, Obj]:
        return {one["metadata"]["name"]: one for one in await self.cluster.pods()}

    async def bound(self) -> set[str]:
        return {name for name, one in (await self.pods()).items() if one["spec"].get("nodeName")}

    async def one_of_two(self) -> set[str]:
        return await self.bound() & {"one-0", "two-0"}

    async def keep(self) -> None:
        """Bound pods run, who is told to end has ended, and who is missing is made anew."""
        while True:
            there = await self.pods()
            for name, one in there.items():
                if one["metadata"].get("deletionTimestamp"):
                    await self.cluster.delete(PODS, name, Deletion(grace_s=0))
            for name in self.wanted.keys() - there.keys():
                await self.cluster.create(PODS, {**self.wanted[name], "metadata": {**self.wanted[name]["metadata"]}})
            await self.cluster.pass_time(0.7)


class VolcanoWork(_Work):
    def __init__(self, scene: VolcanoScene, *, has_shares: bool) -> None:
        super().__init__(scene.cluster)
        self._scene = scene
        self._has_shares = has_shares
        self.discipline: Any = None
        self.live = _scheduling(self.cluster, self._make, "volcano")

    def _make(self, live: LiveScheduler, onward: Any) -> VolcanoAdmission:
        self.discipline = VolcanoAdmission(live.context, live.served, live.loop, onward=onward)
        return self.discipline  # type: ignore[no-any-return]

    @classmethod
    @asynccontextmanager
    async def begun(cls, folder: Path, *, has_shares: bool = True) -> AsyncIterator[QueuedWork]:
        async with bare_volcano(folder) as scene:
            scene.cluster.start(volcano)
            work = cls(scene, has_shares=has_shares)
            work.live.start()
            scene.cluster.tasks.append(asyncio.ensure_future(work.keep()))
            yield work

    @classmethod
    def without_shares(cls, folder: Path) -> Any:
        return cls.begun(folder, has_shares=False)

    async def make_queues(self) -> None:
        for name, own in _OWN.items():
            most = {"capability": {_GPU: _MOST[name]}} if name in _MOST else {}
            shares = {"deserved": {_GPU: own}} if self._has_shares else {}
            await self._scene.queue(name, **most, **shares)

    async def gang(self, name: str, queue: str, count: int) -> None:
        await self._scene.group(name, minMember=count, queue=queue)
        for at in range(count):
            made = await self._scene.pod(f"{name}-{at}", name, gpus=1)
            self.wanted[f"{name}-{at}"] = _again(made)

    def book(self) -> set[str]:
        session = self.discipline.discipline.session
        return {_name(key) for job in session.jobs.values() for key in job.ready}

    def charged(self) -> dict[str, int]:
        accounts = self.discipline.discipline.session.accounts
        found = {name: int(accounts.allocated(name).get(_GPU, 0)) // 1000 for name in _OWN}
        return {name: amount for name, amount in found.items() if amount}


class KaiWork(_Work):
    def __init__(self, cluster: SmallCluster) -> None:
        super().__init__(cluster)
        self.discipline: Any = None
        self.live = _scheduling(cluster, self._make, "shoal")

    def _make(self, live: LiveScheduler, onward: Any) -> KaiAdmission:
        self.discipline = KaiAdmission(live.context, live.served, live.loop, onward)
        return self.discipline  # type: ignore[no-any-return]

    @classmethod
    @asynccontextmanager
    async def begun(cls, folder: Path) -> AsyncIterator[QueuedWork]:
        async with kai_cluster(folder) as cluster:
            work = cls(cluster)
            work.live.start()
            cluster.tasks.append(asyncio.ensure_future(work.keep()))
            yield work

    async def make_queues(self) -> None:
        for name, own in _OWN.items():
            await add_kai_queue(self.cluster, name, own, limit=_MOST.get(name, -1))

    async def gang(self, name: str, queue: str, count: int) -> None:
        await self.cluster.create(
            KAI_POD_GROUPS, {"metadata": {"name": name}, "spec": {"queue": queue, "minMember": count}}
        )
        for at in range(count):
            body = pod(f"{name}-{at}", gpus=1, labels={QUEUE_LABEL: queue}, annotations={GROUP: name})
            self.wanted[f"{name}-{at}"] = _again(await self.cluster.create(PODS, body))

    def book(self) -> set[str]:
        return {
            _name(key) for job in self.discipline.discipline.disciplines[""].last.jobs.values() for key in job.active
        }

    def charged(self) -> dict[str, int]:
        nodes = self.discipline.discipline.disciplines[""].last.tree.nodes
        return {name: nodes[name].allocated[0] // 1000 for name in _OWN if nodes[name].allocated[0]}


def _scheduling(cluster: SmallCluster, make: Any, scheduler: str) -> LiveScheduler:
    live = LiveScheduler(cluster, watch=WatchSettings(schedulers=frozenset({scheduler})))
    disciplines = Disciplines(live.loop.intake, live.loop.clock)

    def added(onward: Any) -> Any:
        made = make(live, onward)
        live.loop.queue_steps.add(made)
        return made

    disciplines.add(added)
    live.loop.discipline = disciplines
    return live


def _again(made: Obj) -> Obj:
    """The same pod once more."""
    meta = {key: made["metadata"][key] for key in ("name", "labels", "annotations") if key in made["metadata"]}
    return {"metadata": meta, "spec": {key: value for key, value in made["spec"].items() if key != "nodeName"}}


def _name(key: str) -> str:
    return key.partition("/")[2]
