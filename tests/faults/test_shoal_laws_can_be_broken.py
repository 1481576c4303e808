"""The watcher of Shoal's storms sees what it is there to see: each law is broken once, by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.fleets import pod
from build.foreign_kinds import established
from build.small_clusters import SmallCluster, small_cluster
from build.storm_ends import lacks
from build.storm_ground import GPU, LIGHT_GROUP, furnish
from build.storm_laws import StormLaws, unrest
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import KUEUE, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, JOBS, PODS, RESOURCE_CLAIMS
from shoal.embedded.apiserver.foreign.definitions import definitions

Crime = Callable[[SmallCluster], Awaitable[None]]


@asynccontextmanager
async def _cluster(folder: Path) -> AsyncIterator[SmallCluster]:
    async with small_cluster(folder) as cluster:
        for one in definitions():
            if one["spec"]["group"] == KUEUE:
                await cluster.create(DEFINITIONS, one)
        await established(cluster)
        await furnish(cluster)
        yield cluster


async def _share(cluster: SmallCluster) -> None:
    for name in ("a", "b"):
        one = pod(name)
        one["metadata"]["annotations"]["shoal.dev/devices"] = json.dumps({"main": {GPU: ["GPU-1"]}})
        await cluster.create(PODS, one)


async def _overdraw(cluster: SmallCluster) -> None:
    for name in ("a", "b"):
        await _admitted(cluster, name, gpus=5)


async def _admitted(cluster: SmallCluster, name: str, *, gpus: int = 1, owner: Obj | None = None) -> None:
    containers = [{"name": "main", "image": "x"}]
    sets = [{"name": "main", "count": 1, "template": {"spec": {"containers": containers, "restartPolicy": "Never"}}}]
    meta: Obj = {"name": name, "ownerReferences": [owner] if owner else []}
    await cluster.create(WORKLOADS, {"metadata": meta, "spec": {"queueName": "one", "podSets": sets}})
    given = [{"name": "main", "count": 1, "flavors": {GPU: "default"}, "resourceUsage": {GPU: str(gpus)}}]
    conditions = [_said("QuotaReserved", cluster), _said("Admitted", cluster)]
    status = {"admission": {"clusterQueue": "one", "podSetAssignments": given}, "conditions": conditions}
    await cluster.patch(WORKLOADS, name, {"status": status}, "status")


def _said(kind: str, cluster: SmallCluster) -> Obj:
    return {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": cluster.clock.text()}


async def _suspend(cluster: SmallCluster) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}}
    job = await cluster.create(JOBS, {"metadata": {"name": "job"}, "spec": {"suspend": True, "template": template}})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": job["metadata"]["uid"], "controller": True}
    await _admitted(cluster, "w", owner=owner)


async def _halve(cluster: SmallCluster) -> None:
    for name, node in (("a", "node-0"), ("b", "")):
        one = pod(name, node)
        one["metadata"]["labels"] = {LIGHT_GROUP: "g"}
        await cluster.create(PODS, one)


async def _claim(cluster: SmallCluster) -> None:
    request = {"name": "one", "exactly": {"deviceClassName": "cards"}}
    given = {"request": "one", "driver": "cards.test", "pool": "node-0", "device": "card-0"}
    for name in ("a", "b"):
        await cluster.create(
            RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        )
        status = {"status": {"allocation": {"devices": {"results": [given]}}}}
        await cluster.patch(RESOURCE_CLAIMS, name, status, "status")


async def _wait(cluster: SmallCluster) -> None:
    waiting = await cluster.create(PODS, pod("p", ""))
    await _admitted(
        cluster, "w", owner={"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": waiting["metadata"]["uid"]}
    )


@pytest.mark.parametrize(
    ("crime", "words"),
    [
        (_share, "('node-0', 'GPU-1') is given to ['a', 'b']"),
        (_claim, "('', 'cards.test/node-0/card-0') is given to ['a', 'b']"),
        (_overdraw, "more than the cohort's quota"),
    ],
)
@virtual
async def test_a_broken_law_is_seen_at_once(crime: Crime, words: str, tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        laws = StormLaws(cluster)
        await cluster.pass_time(1)
        await crime(cluster)
        await cluster.pass_time(1)
        assert any(one.startswith(words) for one in laws.broken), laws.broken
        await laws.end()


@pytest.mark.parametrize(
    ("crime", "words"),
    [
        (_suspend, "w: admitted True, suspended True"),
        (_halve, "of gang g 1 of 2 pods have a node"),
        (_wait, "w is admitted and ['p'] wait for a node"),
    ],
)
@virtual
async def test_what_may_not_stay_so_is_seen(crime: Crime, words: str, tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        await crime(cluster)
        assert words in await unrest(cluster)


@virtual
async def test_what_is_lost_and_what_remains_is_seen(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        await _admitted(cluster, "w", owner={"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"})
        found = await lacks(cluster, {"job"})
        assert "job job is lost" in found
        assert "Workload w has lost its owner" in found
        assert any(one.startswith("Workload w is not finished") for one in found)
