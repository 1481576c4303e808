"""Many short storms one after another in one cluster: little work, one or two things that go wrong, and a calm end with
nothing left of it. A cluster of one's own for each would cost ten times as much.

What a storm begins with is what the one before has left: nothing of its work, but Shoal as it was then, with whatever
it has come to believe. A spell is found again by its seed and its number, after those before it.
"""

from __future__ import annotations

import logging
from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.storm_laws import StormLaws
from build.storm_stories import GALE, Complaints, Explanation
from build.stormy_api import CALM, STORM
from shoal.client.ecosystem_kinds import LIGHT_POD_GROUPS, WORKLOADS
from shoal.client.kind import JOBS, PODS
from shoal.client.port import Deletion

_RUNS = ("1s", "5s", "20s")


async def spells(seed: int, folder: Path, count: int) -> StormLaws:
    """Raises what was seen of broken laws, and in which spell."""
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    number = -1
    try:
        async with small_cluster(folder, seed=seed) as cluster:
            story = Explanation(cluster, seed, runs=_RUNS, takes_events=False)
            spelled = _Spells(cluster, story, seed)
            try:
                await story.begin()
                for number in range(count):
                    await spelled.play(number)
                    story.check(complaints)
                await story.rest()
                story.check(complaints)
            finally:
                await story.leave()
            return story.laws
    except AssertionError as error:
        raise AssertionError(f"in spell {number} of storm {seed}: {error}") from error
    finally:
        logging.getLogger().removeHandler(complaints)


class _Spells:
    def __init__(self, cluster: SmallCluster, story: Explanation, seed: int) -> None:
        self._cluster = cluster
        self._story = story
        self._seed = seed

    async def play(self, number: int) -> None:
        story = self._story
        draw = story.draw
        # Everybody draws from it: a spell is the same whatever was drawn before.
        draw.seed(f"{self._seed}/{number}")
        story.crew.change_weather(draw.choice([CALM, STORM, STORM, GALE]))
        for _ in range(draw.randint(1, 3)):
            await story.work.arrive()
        for _ in range(draw.randint(1, 3)):
            await story.happen()
        await story.clear_up()
        await story.finish(300.0)
        await self._sweep()

    async def _sweep(self) -> None:
        cluster = self._cluster
        for kind in (JOBS, LIGHT_POD_GROUPS, PODS, WORKLOADS):
            for one in await cluster.all(kind):
                if not one["metadata"].get("ownerReferences"):
                    await cluster.delete(kind, one["metadata"]["name"], Deletion(policy="Background"))
        self._story.work.forget()

        async def is_empty() -> bool:
            return not any([await cluster.all(kind) for kind in (JOBS, PODS, WORKLOADS)])

        await cluster.until(is_empty, 120)
