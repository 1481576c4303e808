"""Shoal dies at each of its calls in turn, and whoever follows finishes what was begun.

The work is always the same: a job and a group of pods that wait in queues, and a gang beside them that needs the room
of a pod of lower rank. From its n-th write on the first process is heard no more; that write is done and its answer
lost, or it is the last that was answered. `SHOAL_KILL_POINTS=1` takes every write; usual is every seventh.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import msgspec
import pytest

from build.crews import name_alike
from build.fleets import machine
from build.foreign_kinds import established
from build.frozen_api import FrozenApi
from build.small_clusters import SmallCluster, small_cluster
from build.storm_crews import ShoalCrew
from build.storm_ground import GPU, GROUP, LIGHT_GROUP, QUEUE, TOTAL, furnish
from build.storm_laws import StormLaws, unrest
from build.storm_replicas import Replica
from build.virtual_time import in_virtual_time
from shoal.client.ecosystem_kinds import KUEUE, LIGHT_POD_GROUPS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, JOBS, PODS
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError
from shoal.embedded.apiserver.foreign.definitions import definitions

_EVERY = int(os.environ.get("SHOAL_KILL_POINTS", "7"))
_FEWER = 6
"""Most calls are the lists and watches of the beginning."""
_MOST = 1000
_NAMES = [*(f"group-{at}" for at in range(2)), *(f"gang-{at}" for at in range(3)), "humble"]


class _Deaths(msgspec.Struct, frozen=True):
    every: int = _EVERY
    is_lost: bool = False
    counts_reads: bool = False


_ALL_CALLS = _Deaths(_EVERY if _EVERY == 1 else _EVERY * _FEWER, counts_reads=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "deaths", [_Deaths(), _Deaths(is_lost=True), _ALL_CALLS], ids=["before a write", "after a write", "any call"]
)
def test_whoever_follows_finishes_what_was_begun(deaths: _Deaths, tmp_path: Path) -> None:
    in_virtual_time(_sweep(tmp_path, deaths))


async def _sweep(folder: Path, deaths: _Deaths) -> None:
    draw = random.Random(7)
    async with small_cluster(folder, seed=7) as cluster:
        name_alike(cluster, 7)
        crew = ShoalCrew(cluster, [machine("node-0", gpus=4), machine("node-1", gpus=4)], draw)
        for one in definitions():
            if one["spec"]["group"] in (KUEUE, "scheduling.x-k8s.io"):
                await cluster.create(DEFINITIONS, one)
        await established(cluster)
        await furnish(cluster)
        laws = StormLaws(cluster)
        # Who keeps jobs from running without leave is installed before the first dies.
        keeper = Replica(crew, "keeper")
        keeper.start()
        await cluster.pass_time(10)
        await keeper.kill(is_hard=False)
        try:
            for calls in range(0, _MOST, deaths.every):
                if not await _dies_and_is_followed(cluster, crew, calls, deaths):
                    break
                assert not laws.broken, (calls, laws.broken)
                assert not crew.heard, (calls, crew.heard)
            else:
                raise AssertionError("it never ends to call")
            assert calls >= 20, "hardly anything was asked or written"
        finally:
            await crew.end()
            await laws.end()


async def _dies_and_is_followed(cluster: SmallCluster, crew: ShoalCrew, calls: int, deaths: _Deaths) -> bool:
    """Whether it did die in the middle."""
    api = FrozenApi(cluster.api, calls, is_lost=deaths.is_lost, counts_reads=deaths.counts_reads)
    first, second = Replica(crew, f"first-{calls}", api), Replica(crew, f"second-{calls}")
    await _come(cluster, _NAMES[-1:])
    first.start()
    await cluster.pass_time(5)
    await _come(cluster, _NAMES[:-1])
    await cluster.pass_time(15)
    has_died = api.frozen.is_set()
    await first.kill(is_hard=True)
    second.start()
    try:
        await cluster.until(lambda: _runs(cluster), 200)
    except AssertionError:
        raise AssertionError(f"after {calls} calls: {await _told(cluster)}") from None
    await _clear(cluster)
    await second.kill(is_hard=False)
    return has_died


async def _come(cluster: SmallCluster, names: list[str]) -> None:
    if "humble" in names:
        await cluster.create(PODS, _pod("humble", gpus=2))
        return
    job = {"parallelism": 2, "completions": 2, "template": _pod("", gpus=1)}
    await cluster.create(JOBS, {"metadata": {"name": "job", "labels": {QUEUE: "one"}}, "spec": job})
    await cluster.create(LIGHT_POD_GROUPS, {"metadata": {"name": "gang"}, "spec": {"minMember": 3}})
    for name in names:
        if name.startswith("group"):
            await cluster.create(PODS, _pod(name, {QUEUE: "two", GROUP: "group"}, {TOTAL: "2"}, gpus=1))
        else:
            await cluster.create(PODS, _pod(name, {LIGHT_GROUP: "gang"}, gpus=1, rank="high"))


def _pod(name: str, labels: Obj | None = None, notes: Obj | None = None, *, gpus: int, rank: str = "") -> Obj:
    limits = {"limits": {GPU: str(gpus)}, "requests": {"cpu": "1"}}
    spec: Obj = {"schedulerName": "shoal", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    spec["containers"] = [{"name": "main", "image": "trainer", "resources": limits}]
    if rank:
        spec["priorityClassName"] = rank
    meta = {"labels": labels or {}, "annotations": notes or {}}
    return {"metadata": {"name": name, **meta} if name else meta, "spec": spec}


async def _runs(cluster: SmallCluster) -> bool:
    pods = await cluster.pods()
    names = {one["metadata"]["name"] for one in pods if one["spec"].get("nodeName")}
    is_there = len(names) >= 7 and names >= set(_NAMES[:-1])
    return is_there and not await unrest(cluster)


async def _told(cluster: SmallCluster) -> Obj:
    pods = {one["metadata"]["name"]: one["spec"].get("nodeName") for one in await cluster.pods()}
    return {"unrest": await unrest(cluster), "pods": pods}


async def _clear(cluster: SmallCluster) -> None:
    await cluster.delete(JOBS, "job", Deletion(policy="Background"))
    await cluster.delete(LIGHT_POD_GROUPS, "gang")
    await cluster.delete(WORKLOADS, "group")
    for name in _NAMES:
        try:
            await cluster.delete(PODS, name)
        except NotFoundError:
            continue

    async def is_empty() -> bool:
        return not any([await cluster.all(kind) for kind in (PODS, JOBS, WORKLOADS)])

    await cluster.until(is_empty, 120)
