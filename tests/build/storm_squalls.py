"""Hundreds of squalls one after another in one cluster, each a few objects and a moment of bad luck: a gang or two, a
pod, one kill or one lost lease in weather of its own. No kubelets and no jobs: a pod has come to its end when it has a
node, and is taken away.

What a squall begins with is what the one before has left: nothing of its work, but Shoal as it was then, with whatever
it has come to believe. One is found again by its seed and its number, after those before it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

from build.live_schedulers import add_node
from build.small_clusters import SmallCluster, small_cluster
from build.storm_changes import StormChanges
from build.storm_ground import GPU, MIG
from build.storm_laws import StormLaws
from build.storm_stories import GALE, Complaints, Explanation
from build.storm_work import StormWork
from build.stormy_api import CALM, STORM
from shoal.client.ecosystem_kinds import LIGHT_POD_GROUPS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, Kind
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError

_AT_ONCE = Deletion(grace_s=0)
_NEEDED = ("garbagecollector", "podgc", "resourceclaim")


async def squalls(seed: int, folder: Path, count: int) -> StormLaws:
    """Raises what was seen of broken laws, and in which squall."""
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    number = -1
    try:
        async with small_cluster(folder, seed=seed) as cluster:
            story = Explanation(cluster, seed, machines=(), needed=_NEEDED, takes_events=False)
            squall = _Squall(cluster, story, seed)
            try:
                await squall.begin()
                for number in range(count):
                    await squall.play(number)
                    story.check(complaints)
                await story.rest()
                story.check(complaints)
            finally:
                await story.leave()
            return story.laws
    except AssertionError as error:
        raise AssertionError(f"in squall {number} of {seed}: {error}") from error
    finally:
        logging.getLogger().removeHandler(complaints)


class _Squall:
    def __init__(self, cluster: SmallCluster, story: Explanation, seed: int) -> None:
        self._cluster = cluster
        self._story = story
        self._seed = seed
        self._work = _Pods(cluster, story.draw, is_wide=story.is_wide)
        story.work = self._work
        story.changes = StormChanges(cluster, story.draw, self._work, is_wide=story.is_wide)

    async def begin(self) -> None:
        for name, kind, count in (("node-0", GPU, 4), ("node-1", GPU, 4), ("node-2", MIG, 7)):
            await add_node(self._cluster, name, cpu="32")
            has = {"cpu": "32", "pods": "110", kind: str(count)}
            status = {"status": {"capacity": has, "allocatable": has}}
            await self._cluster.patch(NODES, name, status, "status")
        await self._story.begin()
        for replica in self._story.replicas:
            replica.start()

    async def play(self, number: int) -> None:
        story, draw = self._story, self._story.draw
        # Everybody draws from it: a squall is the same whatever was drawn before.
        draw.seed(f"{self._seed}/{number}")
        story.crew.change_weather(draw.choice([CALM, STORM, STORM, GALE]))
        for _ in range(draw.randint(1, 2)):
            await self._work.arrive()
        for _ in range(draw.randint(1, 2)):
            await self._cluster.pass_time(draw.choice([0.0, 0.05, 0.5, 2.0]))
            await self._happen(draw)
        await story.clear_up()
        await story.finish_with(self._work.lacks, 300.0)

    async def _happen(self, draw: random.Random) -> None:
        story = self._story
        does: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (8, story.kill), (2, story.flap), (2, story.expire), (4, story.changes.change), (1, story.cordon),
        ]  # fmt: skip
        ((_, do),) = draw.choices(does, [weight for weight, _ in does])
        await do()


class _Pods(StormWork):
    """Without jobs, and without anybody who runs them."""

    async def arrive(self) -> None:
        makes = [self._queued_pod, self._queued_group, self._queued_group, self._light_gang, self._single]
        await self.arrive_as([*makes, self._claiming] if self._is_wide else makes)

    async def lacks(self) -> list[str]:
        """Whoever has a node goes; so do those of whom somebody took a part away."""
        pods = {one["metadata"]["name"]: one for one in await self._cluster.pods()}
        for name, members in list(self.sets.items()):
            there = [pods[each] for each in members if each in pods and not _is_ending(pods[each])]
            if len(there) < len(members) or all(one["spec"].get("nodeName") for one in there):
                await self._take_away(name)
        await self.tend()
        left = [one for kind in (PODS, WORKLOADS) for one in await self._cluster.all(kind)]
        return [f"{one['kind']} {one['metadata']['name']} is there: {one.get('status')}" for one in left]

    async def tend(self) -> None:
        """As kubelets would."""
        for pod in await self._cluster.pods():
            if _is_ending(pod):
                await self._end(pod["metadata"]["name"])

    async def _end(self, name: str) -> None:
        try:
            await self._cluster.patch(PODS, name, {"status": {"phase": "Failed"}}, "status")
            await self._cluster.delete(PODS, name, _AT_ONCE)
        except NotFoundError:
            return

    async def _take_away(self, name: str) -> None:
        for kind, names in ((PODS, self.sets.pop(name)), (LIGHT_POD_GROUPS, [name]), (WORKLOADS, [name])):
            for each in names:
                await self._be_gone(kind, each)

    async def _be_gone(self, kind: Kind, name: str) -> None:
        try:
            await self._cluster.delete(kind, name, _AT_ONCE)
        except NotFoundError:
            return


def _is_ending(pod: Obj) -> bool:
    return "deletionTimestamp" in pod["metadata"]
