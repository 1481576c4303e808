"""A whole life in bad weather: pods and gangs come and go, yield, are made anew; processes die and nodes go.

In the end everybody has what it can have, nobody ever had what was somebody else's, and no gang is left half.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from build.cluster_laws import Laws
from build.crews import name_alike
from build.depth import seeds
from build.live_schedulers import LiveScheduler, add_node, places, pod, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import CALM, STORM, StormyApi
from build.virtual_time import in_virtual_time
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, PRIORITY_CLASSES
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError

LIGHT = "pod-group.scheduling.sigs.k8s.io"
SIZES = {"g2": 2, "g3": 3, "g5": 5}
WEATHER = structs.replace(STORM, lost=0.25, lag_s=2.0)
"""Many answers are lost, and the watches are late with the truth."""


class Explanation:
    def __init__(self, cluster: SmallCluster, draw: random.Random) -> None:
        self.cluster = cluster
        self.draw = draw
        self.weather = WEATHER
        self.schedulers: list[LiveScheduler] = []
        self.storms: list[StormyApi] = []
        self.number = 0
        self.bereft: set[str] = set()
        """Gangs that lost pods after they had started: these may wait for their replacements."""

    def start(self) -> None:
        api = StormyApi(self.cluster.api, self.cluster.clock, self.draw, self.weather)
        self.storms.append(api)
        self.schedulers.append(start_scheduler(self.cluster, api))

    async def step(self) -> None:
        draw = self.draw
        what = draw.choice(["pod", "pod", "pod", "gang", "gang", "end", "end", "kill", "kill", "node", "again"])
        if what == "pod":
            self.number += 1
            priority = draw.choice(["", "", "high"])
            await self.cluster.create(PODS, self._pod(f"p{self.number}", priorityClassName=priority))
        elif what == "gang":
            name, size = draw.choice(list(SIZES.items()))
            self.number += 1
            for number in range(size):
                await self.cluster.create(PODS, self._member(f"{name}-{self.number}", size, number))
        elif what == "end":
            await self._end()
        elif what == "kill":
            await self.schedulers.pop().kill()
            self.start()
        elif what == "node":
            await self._lose_node()
        elif what == "again":
            await self._again()
        await self.cluster.pass_time(draw.choice([0.0, 0.1, 0.5, 2.0]))

    async def bury(self) -> None:
        """Who was told to end has ended; of gangs another comes in its place."""
        for one in await self.cluster.pods():
            meta = one["metadata"]
            if "deletionTimestamp" in meta:
                await self.cluster.delete(PODS, meta["name"], Deletion(grace_s=0))
                if group := meta.get("labels", {}).get(f"{LIGHT}/name"):
                    size = int(meta["labels"][f"{LIGHT}/min-available"])
                    await self.cluster.create(PODS, self._member(group, size, int(meta["name"].rpartition("-")[2])))

    def _pod(self, name: str, **spec: Any) -> Obj:
        return pod(name, gpus=self.draw.choice([1, 2, 4]), **{key: value for key, value in spec.items() if value})

    def _member(self, group: str, size: int, number: int) -> Obj:
        labels = {f"{LIGHT}/name": group, f"{LIGHT}/min-available": str(size)}
        return pod(f"{group}-{number}", gpus=2, labels=labels)

    async def _end(self) -> None:
        """A pod on its own, or a whole gang."""
        there = sorted(await places(self.cluster))
        if there:
            name = self.draw.choice(there)
            group = name.rpartition("-")[0]
            for other in there:
                if other == name or (group and other.rpartition("-")[0] == group):
                    await self.cluster.delete(PODS, other, Deletion(grace_s=0))

    async def _again(self) -> None:
        """A pod is made anew under its name at once."""
        there = [name for name in sorted(await places(self.cluster)) if "-" not in name]
        if there:
            name = self.draw.choice(there)
            await self.cluster.delete(PODS, name, Deletion(grace_s=0))
            await self.cluster.create(PODS, self._pod(name))

    async def _lose_node(self) -> None:
        """With the pods on it; it comes back later."""
        name = f"n{self.draw.randrange(4)}"
        try:
            await self.cluster.delete(NODES, name)
        except NotFoundError:
            await add_node(self.cluster, name, gpus=4)
            return
        for other, node in (await places(self.cluster)).items():
            if node == name:
                self.bereft.add(other.rpartition("-")[0])
                await self.cluster.delete(PODS, other)


async def life(seed: int, folder: Path) -> None:
    draw = random.Random(seed)
    async with small_cluster(folder, seed=seed) as cluster:
        name_alike(cluster, seed)
        laws = Laws(cluster)
        laws.watch({PODS: None, NODES: None})
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
        for number in range(4):
            await add_node(cluster, f"n{number}", gpus=4)
        story = Explanation(cluster, draw)
        story.start()
        for _ in range(60):
            await story.step()
            if draw.random() < 0.3:
                await story.bury()
        for api in story.storms:
            api.weather = CALM
        for number in range(4):
            if not any(one["metadata"]["name"] == f"n{number}" for one in await cluster.all(NODES)):
                await add_node(cluster, f"n{number}", gpus=4)
        for _ in range(30):
            await cluster.pass_time(10)
            await story.bury()
        await _check(cluster, story.bereft)
        assert laws.broken == []
        await laws.end()


async def _check(cluster: SmallCluster, bereft: set[str]) -> None:
    bound: Counter[str] = Counter()
    room = {f"n{number}": 4 for number in range(4)}
    waiting: list[int] = []
    for one in await cluster.pods():
        name, node = one["metadata"]["name"], one["spec"].get("nodeName", "")
        gpus = int(one["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
        if node:
            bound[name.rpartition("-")[0]] += 1
            room[node] -= gpus
        elif "-" not in name:
            waiting.append(gpus)
            told = [each for each in one["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
            assert [each["status"] for each in told] == ["False"], name
    for group, count in bound.items():
        assert not group or group in bereft or count == SIZES[group.partition("-")[0]], (group, count)
    assert all(gpus > free for gpus in waiting for free in room.values()), (waiting, room)


@pytest.mark.parametrize("seed", seeds(6))
def test_whatever_happens_all_is_well_in_the_end(seed: int, tmp_path: Path) -> None:
    in_virtual_time(life(seed, tmp_path))
