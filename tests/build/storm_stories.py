"""A story of Shoal in bad weather, told by a seed: what comes, changes, breaks and dies, and how it has to end."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from build.cluster_laws import Laws
from build.crews import name_alike
from build.fleets import machine
from build.foreign_kinds import established
from build.small_clusters import SmallCluster, small_cluster
from build.storm_changes import StormChanges
from build.storm_crews import NEEDED, ShoalCrew
from build.storm_ends import lacks
from build.storm_ground import furnish, furnish_widely
from build.storm_laws import StormLaws, unrest
from build.storm_replicas import Replica
from build.storm_work import RUNS, StormWork
from build.stormy_api import CALM, STORM, Weather
from shoal.client.ecosystem_kinds import KUEUE
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, JOBS, NODES, PODS
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.machines.machine import Machine

GALE = Weather(refused=0.25, lost=0.2, stale=0.25, expired=0.3, dropped=0.4, slow_s=2.0, lag_s=4.0)
_GROUPS = {KUEUE, "scheduling.x-k8s.io"}
_NODES = ("node-0", "node-1", "node-2")
MACHINES = (
    *(machine(name, gpus=4) for name in _NODES[:2]),
    machine(_NODES[2], gpus=2, mig_strategy="mixed", mig_config="all-1g.10gb"),
)
STEPS = 20
_PATIENCE_S = 3600.0
_QUIET_S = 300.0
"""Five times as long as anybody sleeps before looking again."""


class Complaints(logging.Handler):
    """What was logged as a failure."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(logging.Formatter().format(record))


async def storm(seed: int, folder: Path, steps: int = STEPS) -> StormLaws:
    """Raises what was seen of broken laws; what it returns says how much happened."""
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    try:
        async with small_cluster(folder, seed=seed) as cluster:
            story = Explanation(cluster, seed)
            try:
                await story.begin()
                for _ in range(steps):
                    await story.happen()
                    story.check(complaints)
                await story.clear_up()
                await story.end()
                story.check(complaints)
            finally:
                await story.leave()
            return story.laws
    finally:
        logging.getLogger().removeHandler(complaints)


class Explanation:
    def __init__(
        self,
        cluster: SmallCluster,
        seed: int,
        *,
        runs: Sequence[str] = RUNS,
        machines: Sequence[Machine] = MACHINES,
        needed: Sequence[str] = NEEDED,
        takes_events: bool = True,
    ) -> None:
        """`runs`: how long its work may take; `needed`: controllers beside Shoal."""
        draw = self.draw = random.Random(seed)
        self.cluster = cluster
        name_alike(cluster, seed)
        self.laws, self.plain_laws = StormLaws(cluster), Laws(cluster)
        self.plain_laws.watch(dict.fromkeys((PODS, NODES, JOBS)))
        self.weather = draw.choice([CALM, STORM, STORM, GALE])
        self.crew = ShoalCrew(cluster, machines, draw, needed=needed, takes_events=takes_events)
        self.is_wide = seed % 3 == 0
        self.work = StormWork(cluster, draw, runs, is_wide=self.is_wide)
        self.changes = StormChanges(cluster, draw, self.work, is_wide=self.is_wide)
        self.replicas = [Replica(self.crew, name) for name in ("one", "two")]

    async def begin(self) -> None:
        for one in definitions():
            if one["spec"]["group"] in _GROUPS:
                await self.cluster.create(DEFINITIONS, one)
        await established(self.cluster)
        await furnish(self.cluster)
        if self.is_wide:
            await furnish_widely(self.cluster, _NODES[:2])
        for replica in self.replicas[: self.draw.randint(1, 2)]:
            replica.start()
        await self.cluster.pass_time(8)
        self.crew.change_weather(self.weather)

    async def leave(self) -> None:
        for replica in self.replicas:
            await replica.kill(is_hard=False)
        await self.crew.end()
        await self.laws.end()
        await self.plain_laws.end()

    def check(self, complaints: Complaints) -> None:
        broken = [*self.laws.broken, *self.plain_laws.broken, *complaints.found]
        broken += [repr(error) for error in (*self.crew.heard, *self.crew.broken())]
        assert not broken, "\n".join(broken)

    # -- what happens ---------------------------------------------------------------------------------------------

    async def happen(self) -> None:
        does: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (6, self._come), (6, self.changes.change), (3, self.kill), (2, self.flap), (2, self._break_node),
            (1, self._restart), (1, self._turn), (1, self.expire), (1, self.cordon),
        ]  # fmt: skip
        weights = [weight for weight, _ in does]
        ((_, do),) = self.draw.choices(does, weights)
        await do()
        await self.cluster.pass_time(self.draw.choice([0.0, 0.1, 1.0, 5.0, 20.0]))

    async def _come(self) -> None:
        for _ in range(self.draw.randint(1, 4)):
            await self.work.arrive()

    async def kill(self) -> None:
        """At any step of whatever it does; somebody follows, sooner or later."""
        replica = self.draw.choice(self.replicas)
        for _ in range(self.draw.randrange(400)):
            await self.cluster.pass_time(0)
        await replica.kill(is_hard=self.draw.random() < 0.7)
        await self.cluster.pass_time(self.draw.choice([0.0, 0.5, 20.0]))
        replica.start()

    async def flap(self) -> None:
        replica = self.draw.choice(self.replicas)
        replica.lose_lease()
        await self.cluster.pass_time(self.draw.choice([3.0, 11.0, 16.0]))
        replica.find_lease()

    async def _break_node(self) -> None:
        kind = self.draw.choice(["fail", "reboot", None])
        fault = None if kind is None else json.dumps({"kind": kind, "id": str(self.draw.getrandbits(32))})
        await self._annotate(self.draw.choice(_NODES), fault)
        await self.cluster.pass_time(self.draw.choice([1.0, 60.0]))

    async def _restart(self) -> None:
        name = self.draw.choice(["controllers", "nodes"])
        await self.crew.kill(name)
        await self.cluster.pass_time(self.draw.choice([0.0, 5.0]))
        self.crew.start(name)

    async def _turn(self) -> None:
        self.crew.change_weather(self.draw.choice([CALM, STORM, GALE]))

    async def expire(self) -> None:
        self.cluster.plane.faults.expire_watches()

    async def cordon(self) -> None:
        node = self.draw.choice(_NODES)
        is_away = self.draw.random() < 0.5
        await self.cluster.patch(NODES, node, {"spec": {"unschedulable": is_away}})
        for pod in await self.cluster.pods() if is_away else ():
            if pod["spec"].get("nodeName") == node:
                await self.cluster.delete(PODS, pod["metadata"]["name"])

    async def _annotate(self, node: str, fault: str | None) -> None:
        await self.cluster.patch(NODES, node, {"metadata": {"annotations": {"shoal.dev/fault": fault}}})

    # -- how it ends ----------------------------------------------------------------------------------------------

    async def clear_up(self) -> None:
        self.crew.change_weather(CALM)
        for replica in self.replicas:
            replica.start()
            replica.find_lease()
        for node in _NODES:
            await self._annotate(node, None)
            await self.cluster.patch(NODES, node, {"spec": {"unschedulable": None}})
        await self.changes.restore()
        await self._until("rests", self._unrest, 600.0)

    async def _unrest(self) -> list[str]:
        await self.work.tend()
        return await unrest(self.cluster)

    async def end(self) -> None:
        await self.finish(_PATIENCE_S)
        await self.rest()

    async def finish(self, within_s: float) -> None:
        async def lacking() -> list[str]:
            await self.work.settle()
            return await lacks(self.cluster, self.work.jobs)

        await self.finish_with(lacking, within_s)

    async def finish_with(self, lacking: Callable[[], Awaitable[list[str]]], within_s: float) -> None:
        await self._until("ends", lacking, within_s)

    async def rest(self) -> None:
        """Nobody writes anything any more."""
        await self.cluster.pass_time(30)
        before = await self._versions()
        await self.cluster.pass_time(_QUIET_S)
        after = await self._versions()
        restless = [name for name in after if after[name] != before.get(name)]
        assert not restless, restless

    async def _until(self, what: str, lacking: Callable[[], Awaitable[list[str]]], within_s: float) -> None:
        ends_s = self.cluster.clock.seconds() + within_s
        while found := await lacking():
            if self.cluster.clock.seconds() > ends_s:
                raise AssertionError(f"it never {what}: " + "\n".join(found))
            await self.cluster.pass_time(10)

    async def _versions(self) -> dict[str, str]:
        """Of everything but what hearts beat into."""
        found: dict[str, str] = {}
        for one in await self.cluster.api.served():
            if "list" in one.verbs and one.kind.plural not in ("nodes", "leases", "events"):
                objects: list[Obj] = await self.cluster.all(one.kind)
                for each in objects:
                    meta = each["metadata"]
                    found[f"{one.kind.plural} {meta.get('namespace')}/{meta['name']}"] = meta["resourceVersion"]
        return found
