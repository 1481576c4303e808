"""Crashes at any step and under faults: no pod is ungated without an admission, and all Workloads finish in the end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from build.crashes import crash_often
from build.queued_scenes import QueuedScene, bare_scene, queued_pods
from build.stormy_api import CALM, StormyApi
from build.virtual_time import virtual
from shoal.controllers.gatekeeping.held_kinds import PARENT, QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.holding import held
from shoal.store.live.item import Obj
from shoal.store.live.kind import PODS, STATEFUL_SETS
from shoal.store.live.port import Deletion

_CONTAINERS = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]


async def _no_pod_runs_unadmitted(scene: QueuedScene) -> None:
    admitted = set()
    for workload in await scene.workloads():
        conditions = (workload.get("status") or {}).get("conditions") or ()
        if any(one["type"] == "Admitted" and one["status"] == "True" for one in conditions):
            admitted.add(workload["metadata"]["name"])
    for pod in await scene.cluster.pods():
        meta = pod["metadata"]
        if pod["spec"].get("schedulingGates") or "deletionTimestamp" in meta:
            continue
        assert meta["annotations"].get("kueue.x-k8s.io/workload") in admitted, meta["name"]


async def _admitted(scene: QueuedScene) -> list[Obj]:
    return [
        workload
        for workload in await scene.workloads()
        for one in (workload.get("status") or {}).get("conditions") or ()
        if (one["type"], one["status"]) == ("Admitted", "True")
    ]


async def _admit_all(scene: QueuedScene) -> None:
    for workload in await scene.workloads():
        conditions = (workload.get("status") or {}).get("conditions") or ()
        if not any(one["type"] in ("Admitted", "Finished") and one["status"] == "True" for one in conditions):
            await scene.admit(workload, "spot")


@pytest.mark.parametrize("seed", range(4))
@virtual
async def test_with_crashes_at_any_point_pods_are_ungated_only_after_an_admission(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    async with bare_scene(tmp_path) as scene:
        for index in range(3):
            await scene.pod(f"single-{index}")
            await scene.member(f"member-{index}", "gang", 3, cpu=str(1 + index % 2))

        async def check() -> None:
            await _no_pod_runs_unadmitted(scene)
            if draw.random() < 0.3:
                await _admit_all(scene)

        await crash_often(scene.cluster, [queued_pods], draw, 12, check)
        scene.cluster.start(queued_pods)
        await scene.cluster.pass_time(5)
        await _admit_all(scene)
        await scene.cluster.pass_time(5)
        assert len(await scene.workloads()) == 4
        assert await scene.held() == set()
        for name in await scene.names():
            await scene.bind(name)
            await scene.phase("Succeeded", name)
        await scene.cluster.pass_time(5)
        for workload in await scene.workloads():
            finished = [one for one in workload["status"]["conditions"] if one["type"] == "Finished"]
            assert finished[0]["status"] == "True"


@pytest.mark.parametrize("seed", range(4))
@virtual
async def test_under_faults_an_eviction_stops_all_pods_and_releases_quota_once(tmp_path: Path, seed: int) -> None:
    async with bare_scene(tmp_path) as scene:
        cluster = scene.cluster
        storm = StormyApi(cluster.api, cluster.clock, random.Random(seed))
        cluster.start(queued_pods, api=storm)
        for name in ("a", "b"):
            await scene.member(name, "gang", 2)

        async def is_made() -> bool:
            return len(await scene.workloads()) == 1

        await cluster.until(is_made, 300)
        await scene.admit(await scene.workload(), "spot")

        async def is_free() -> bool:
            return not await scene.held()

        await cluster.until(is_free, 300)
        await scene.bind("a", "b")
        await scene.evict(await scene.workload())

        async def is_ending() -> bool:
            return await scene.ending() == {"a", "b"}

        await cluster.until(is_ending, 300)
        assert (await scene.conditions())["QuotaReserved"][0] == "True"
        await scene.vanish("a", "b")
        storm.weather = CALM

        async def is_back() -> bool:
            return (await scene.conditions())["QuotaReserved"][0] == "False"

        await cluster.until(is_back, 120)
        await scene.member("c", "gang", 2)
        await scene.member("d", "gang", 2)
        await cluster.pass_time(30)
        assert await scene.names() == {"c", "d"}
        assert await scene.held() == {"c", "d"}
        for name in ("c", "d"):
            await cluster.delete(PODS, name, Deletion(grace_s=0))
        await cluster.pass_time(30)
        assert await scene.workloads() == []


@pytest.mark.parametrize("seed", range(3))
@virtual
async def test_with_crashes_while_a_stateful_set_grows_no_pod_ends_and_none_starts_too_early(
    tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    async with bare_scene(tmp_path) as scene:
        template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": _CONTAINERS}}
        spec = {"serviceName": "db", "replicas": 1, "selector": {"matchLabels": {"app": "db"}}, "template": template}
        made = {"metadata": {"name": "db", "namespace": "default", "labels": {QUEUE_LABEL: "team"}}, "spec": spec}
        wanted = held(made, ("apps", "StatefulSet"), HoldingRules(), lambda: False)
        uid = (await scene.cluster.create(STATEFUL_SETS, wanted))["metadata"]["uid"]
        reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": uid, "controller": True}
        replicas = 1

        async def fill() -> None:
            for index in range(len(await scene.names()), replicas):
                await scene.pod(f"db-{index}", labels={"app": "db"}, notes={PARENT: "statefulset"}, owners=[reference])

        async def check() -> None:
            nonlocal replicas
            admitted = [0, *(each["spec"]["podSets"][0]["count"] for each in await _admitted(scene))]
            assert len(await scene.names()) - len(await scene.held()) <= max(admitted)
            assert await scene.ending() == set()
            if draw.random() < 0.3:
                await _admit_all(scene)
            if draw.random() < 0.2:
                replicas += 1
                await scene.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": replicas}})
            await fill()

        await crash_often(scene.cluster, [queued_pods], draw, 12, check)
        scene.cluster.start(queued_pods)
        for _ in range(2):
            await scene.cluster.pass_time(5)
            await _admit_all(scene)
        await scene.cluster.pass_time(5)
        assert (await scene.held(), await scene.ending()) == (set(), set())
        (left,) = [one for one in await _admitted(scene) if "Finished" not in str(one["status"]["conditions"])]
        assert left["spec"]["podSets"][0]["count"] == replicas > 1
