"""A whole cluster in bad weather: everything that lives in it is refused, delayed, deceived, killed and started again
while work comes and goes and machines break. Whatever happens, the laws hold; and when it is over, all is as asked for.

A seed is a storm. `SHOAL_STORMS=200` runs that many more than usual, from `SHOAL_STORMS_FROM` on.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from build.cluster_laws import Laws
from build.crews import Crew, name_alike
from build.fleets import machine
from build.living_work import Work, remains
from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import CALM, STORM, Weather
from build.virtual_time import in_virtual_time
from shoal.client.item import Obj
from shoal.client.kind import EVENTS, NODES, Kind

_NODES = 3
_PATIENCE_S = 3 * 3600.0
_REST_S = 1200.0
_GALE = Weather(refused=0.25, lost=0.2, stale=0.25, expired=0.3, dropped=0.4, slow_s=2.0, lag_s=4.0)
_LAYOUTS = ("all-disabled", "all-1g.10gb", "no-such-layout")
_HEARTBEATS = ("leases ", "nodes ")
REGRESSIONS: tuple[int, ...] = ()
"""Storms that something does not survive; once it does, what they found is told shorter in a test of its own."""
_FIRST, _MORE = int(os.environ.get("SHOAL_STORMS_FROM", "0")), int(os.environ.get("SHOAL_STORMS", "0"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*REGRESSIONS, *range(_FIRST, _FIRST + (_MORE or 3))])
def test_a_cluster_survives_the_storm(seed: int, tmp_path: Path) -> None:
    in_virtual_time(_storm(seed, tmp_path))


async def _storm(seed: int, folder: Path) -> None:
    draw = random.Random(seed)
    machines = [machine(f"node-{at}", gpus=4, mig_strategy="single") for at in range(_NODES)]
    async with small_cluster(folder, seed=draw.getrandbits(16)) as cluster:
        name_alike(cluster, seed)
        kinds = await _stored(cluster)
        laws = Laws(cluster)
        laws.watch(dict.fromkeys(kinds))
        crew = Crew(cluster, machines, draw, weather=draw.choice([CALM, STORM, STORM, _GALE]))
        work = Work(cluster, draw)
        try:
            await cluster.until(lambda: all(laws.writes[f"nodes /node-{at}"] for at in range(_NODES)), 600)
            for _ in range(30):
                await _disturb(cluster, crew, work, draw)
                await cluster.pass_time(draw.choice([0.0, 0.3, 2.0, 10.0, 45.0]))
                assert not laws.broken, laws.broken
            await _calm(cluster, crew, work)
            await _ends_as_asked(cluster, work, kinds)
            await _rests(cluster, laws)
            assert not laws.broken, laws.broken
            assert not crew.broken()
            _holds_nothing_more(crew)
        finally:
            await crew.end()
            await laws.end()


async def _stored(cluster: SmallCluster) -> list[Kind]:
    """Events once: they are served by two groups."""
    kinds = [one.kind for one in await cluster.api.served() if "watch" in one.verbs]
    return [kind for kind in kinds if kind.plural != "events" or kind == EVENTS]


async def _disturb(cluster: SmallCluster, crew: Crew, work: Work, draw: random.Random) -> None:
    what = draw.choice(["work", "work", "work", "change", "change", "kill", "node", "gpu", "mig", "weather", "expire"])
    node = f"node-{draw.randrange(_NODES)}"
    if what == "work":
        await work.arrive()
    elif what == "change":
        await work.change()
    elif what == "kill":
        name = draw.choice(crew.names())
        for _ in range(draw.randrange(300)):
            await cluster.pass_time(0)
        await crew.kill(name)
        await cluster.pass_time(draw.choice([0.0, 1.0, 60.0]))
        crew.start(name)
    elif what == "node":
        kind = draw.choice(["fail", "partition", "reboot", None])
        fault = None if kind is None else json.dumps({"kind": kind, "id": str(draw.getrandbits(32))})
        await _annotate(cluster, node, {"shoal.dev/fault": fault})
    elif what == "gpu":
        await _annotate(cluster, node, {"shoal.dev/gpu-faults": draw.choice([None, '{"1":79}', '{"0":48,"3":31}'])})
    elif what == "mig":
        labels = {"nvidia.com/mig.config": draw.choice(_LAYOUTS)}
        await cluster.patch(NODES, node, {"metadata": {"labels": labels}})
    elif what == "weather":
        crew.change_weather(draw.choice([CALM, STORM, _GALE]))
    else:
        cluster.plane.faults.expire_watches()


async def _annotate(cluster: SmallCluster, node: str, said: Obj) -> None:
    await cluster.patch(NODES, node, {"metadata": {"annotations": said}})


async def _calm(cluster: SmallCluster, crew: Crew, work: Work) -> None:
    crew.change_weather(CALM)
    for at in range(_NODES):
        await _annotate(cluster, f"node-{at}", {"shoal.dev/fault": None, "shoal.dev/gpu-faults": None})
        await cluster.patch(NODES, f"node-{at}", {"metadata": {"labels": {"nvidia.com/mig.config": "all-disabled"}}})
    await work.settle()


async def _ends_as_asked(cluster: SmallCluster, work: Work, kinds: list[Kind]) -> None:
    ends_s = cluster.clock.seconds() + _PATIENCE_S
    while True:
        lacking = await work.lacks(_NODES)
        lacking += remains({kind: await cluster.all(kind) for kind in kinds})
        if not lacking:
            return
        if cluster.clock.seconds() > ends_s:
            raise AssertionError("\n".join(lacking))
        await cluster.pass_time(60)


async def _rests(cluster: SmallCluster, laws: Laws) -> None:
    """Nobody writes but the hearts that beat."""
    await cluster.pass_time(60)
    laws.writes.clear()
    await cluster.pass_time(_REST_S)
    restless = {what: times for what, times in laws.writes.items() if not what.startswith(_HEARTBEATS)}
    assert not restless, restless


def _holds_nothing_more(crew: Crew) -> None:
    """What the nodes hold is what the server says that runs there."""
    for name in crew.fleet.names():
        node = crew.fleet.node(name)
        assert node is not None
        alive = {uid for uid, run in node.pods.runs.items() if not run.is_over}
        assert set(node.pods.grants) <= alive
        assert all(run.changes == run.written for run in node.pods.runs.values()), name
