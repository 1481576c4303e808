"""Two groups of N pods, and quota for N + N - 1: exactly one runs and the other waits whole, in whichever order their
pods and groups are created, whichever calls fail, and whenever a process is killed. `SHOAL_DEEP=10` takes ten times as
many seeds.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from build.depth import examples
from build.queued_groups import LIVE_STYLES, QueuedGroups, group_cluster
from build.small_clusters import SmallCluster
from build.stormy_api import STORM, StormyApi, Weather
from build.virtual_time import in_virtual_time
from shoal.client.kind import PODS
from shoal.client.refusals import NotFoundError

_NAMES = ("one", "two")
_SOFT = Weather(refused=0.05, lost=0.05, stale=0.05, dropped=0.1, slow_s=0.1, lag_s=0.3)


class _Story:
    """One order of events, drawn from a seed. 24 seeds have each style with two of three sizes, in both weathers."""

    def __init__(self, groups: QueuedGroups, draw: random.Random, seed: int) -> None:
        self.groups = groups
        self.draw = draw
        self.style = LIVE_STYLES[seed // 2 % len(LIVE_STYLES)]
        self.size = 2 + (seed // 2 + seed // (2 * len(LIVE_STYLES))) % 3
        self.steps: list[str] = []

    def members(self, name: str) -> set[str]:
        return {f"{name}-{index}" for index in range(self.size)}

    async def play(self) -> None:
        """Create everything in a random order, with pauses, deletions and killed processes in between."""
        todo = [(name, member) for name in _NAMES for member in (None, *sorted(self.members(name)))]
        self.draw.shuffle(todo)
        while todo:
            name, member = todo.pop()
            if member is None:
                await self.groups.group(self.style, name, self.size)
            elif await self.groups.join_if_new(self.style, name, member, self.size):
                self.steps.append(member)
            else:
                # The pod of that name is still ending.
                todo.insert(0, (name, member))
                await self.pass_time(1)
                continue
            if self.draw.random() < 0.5:
                await self.pass_time(self.draw.choice([0.0, 0.01, 0.1, 1.0, 3.0]))
            if self.draw.random() < 0.15:
                await self.groups.process.kill()
                await self.pass_time(self.draw.choice([0.0, 0.1, 2.0]))
                self.groups.restart()
            if member is not None and self.draw.random() < 0.15 and await self.take_away(member):
                todo.insert(self.draw.randint(0, len(todo)), (name, member))

    async def take_away(self, member: str) -> bool:
        """Delete a pod that waits; it is created again later. Kueue keeps a deleted pod until it is replaced."""
        if self.style == "kueue" or member not in await self.groups.held():
            return False
        try:
            await self.groups.cluster.delete(PODS, member)
        except NotFoundError:
            return True
        return True

    async def pass_time(self, seconds: float) -> None:
        await self.groups.cluster.pass_time(seconds)
        await self.check()

    async def check(self) -> None:
        """No group ever has part of what the other one needs."""
        running = {name for name in _NAMES if self.members(name) & await self.groups.bound()}
        assert len(running) <= 1, (running, self.steps)
        assert sum((await self.groups.admitted()).values()) <= 2 * self.size - 1, self.steps

    async def one_runs_whole(self) -> str:
        """Wait until a group runs; returns its name."""
        for _ in range(60):
            bound = await self.groups.bound()
            whole = [name for name in _NAMES if self.members(name) == bound]
            if whole:
                return whole[0]
            await self.pass_time(2)
        held = sorted(await self.groups.held())
        raise AssertionError((self.style, bound, held, await self.groups.admitted(), self.steps))


@pytest.mark.parametrize("seed", range(examples(24)))
def test_of_two_groups_one_runs_and_then_the_other(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    storms: list[StormyApi] = []

    def stormy(cluster: SmallCluster) -> StormyApi:
        storms.append(StormyApi(cluster.api, cluster.clock, draw, draw.choice([STORM, _SOFT])))
        return storms[-1]

    async def run() -> None:
        async with group_cluster(tmp_path, cpu="100", api_of=stormy if seed % 2 else None) as groups:
            story = _Story(groups, draw, seed)
            await groups.set_quota(2 * story.size - 1)
            await story.play()
            for storm in storms:
                storm.calm()
            first = await story.one_runs_whole()
            await story.pass_time(30)
            (second,) = set(_NAMES) - {first}
            assert await groups.bound() == story.members(first)
            assert await groups.held() == story.members(second)
            await groups.succeed(*story.members(first))
            assert await story.one_runs_whole() == second
            await groups.succeed(*story.members(second))
            await groups.cluster.pass_time(10)
            assert await groups.admitted() == {}

    in_virtual_time(run())
