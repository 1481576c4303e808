"""Crashes at any step and under faults: no pod is ungated without an admission, and all Workloads finish in the end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from build.crashes import crash_often
from build.queued_pod_scenarios import QueuedPodScenario, bare_scenario, queued_pods
from build.stormy_api import CALM, StormyApi
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import PODS, STATEFUL_SETS
from shoal.client.port import Deletion
from shoal.controllers.gatekeeping.held_kinds import PARENT, QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.holding import held

_CONTAINERS = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]


async def _no_pod_runs_unadmitted(scenario: QueuedPodScenario) -> None:
    admitted = set()
    for workload in await scenario.workloads():
        conditions = (workload.get("status") or {}).get("conditions") or ()
        if any(one["type"] == "Admitted" and one["status"] == "True" for one in conditions):
            admitted.add(workload["metadata"]["name"])
    for pod in await scenario.cluster.pods():
        meta = pod["metadata"]
        if pod["spec"].get("schedulingGates") or "deletionTimestamp" in meta:
            continue
        assert meta["annotations"].get("kueue.x-k8s.io/workload") in admitted, meta["name"]


async def _admitted(scenario: QueuedPodScenario) -> list[Obj]:
    return [
        workload
        for workload in await scenario.workloads()
        for one in (workload.get("status") or {}).get("conditions") or ()
        if (one["type"], one["status"]) == ("Admitted", "True")
    ]


async def _admit_all(scenario: QueuedPodScenario) -> None:
    for workload in await scenario.workloads():
        conditions = (workload.get("status") or {}).get("conditions") or ()
        if not any(one["type"] in ("Admitted", "Finished") and one["status"] == "True" for one in conditions):
            await scenario.admit(workload, "spot")


@pytest.mark.parametrize("seed", range(4))
@virtual
async def test_with_crashes_at_any_point_pods_are_ungated_only_after_an_admission(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    async with bare_scenario(tmp_path) as scenario:
        for index in range(3):
            await scenario.pod(f"single-{index}")
            await scenario.member(f"member-{index}", "gang", 3, cpu=str(1 + index % 2))

        async def check() -> None:
            await _no_pod_runs_unadmitted(scenario)
            if draw.random() < 0.3:
                await _admit_all(scenario)

        await crash_often(scenario.cluster, [queued_pods], draw, 12, check)
        scenario.cluster.start(queued_pods)
        await scenario.cluster.pass_time(5)
        await _admit_all(scenario)
        await scenario.cluster.pass_time(5)
        assert len(await scenario.workloads()) == 4
        assert await scenario.held() == set()
        for name in await scenario.names():
            await scenario.bind(name)
            await scenario.phase("Succeeded", name)
        await scenario.cluster.pass_time(5)
        for workload in await scenario.workloads():
            finished = [one for one in workload["status"]["conditions"] if one["type"] == "Finished"]
            assert finished[0]["status"] == "True"


@pytest.mark.parametrize("seed", range(4))
@virtual
async def test_under_faults_an_eviction_stops_all_pods_and_releases_quota_once(tmp_path: Path, seed: int) -> None:
    async with bare_scenario(tmp_path) as scenario:
        cluster = scenario.cluster
        storm = StormyApi(cluster.api, cluster.clock, random.Random(seed))
        cluster.start(queued_pods, api=storm)
        for name in ("a", "b"):
            await scenario.member(name, "gang", 2)

        async def is_made() -> bool:
            return len(await scenario.workloads()) == 1

        await cluster.until(is_made, 300)
        await scenario.admit(await scenario.workload(), "spot")

        async def is_free() -> bool:
            return not await scenario.held()

        await cluster.until(is_free, 300)
        await scenario.bind("a", "b")
        await scenario.evict(await scenario.workload())

        async def is_ending() -> bool:
            return await scenario.ending() == {"a", "b"}

        await cluster.until(is_ending, 300)
        assert (await scenario.conditions())["QuotaReserved"][0] == "True"
        await scenario.vanish("a", "b")
        storm.weather = CALM

        async def is_back() -> bool:
            return (await scenario.conditions())["QuotaReserved"][0] == "False"

        await cluster.until(is_back, 120)
        await scenario.member("c", "gang", 2)
        await scenario.member("d", "gang", 2)
        await cluster.pass_time(30)
        assert await scenario.names() == {"c", "d"}
        assert await scenario.held() == {"c", "d"}
        for name in ("c", "d"):
            await cluster.delete(PODS, name, Deletion(grace_s=0))
        await cluster.pass_time(30)
        assert await scenario.workloads() == []


@pytest.mark.parametrize("seed", range(3))
@virtual
async def test_with_crashes_while_a_stateful_set_grows_no_pod_ends_and_none_starts_too_early(
    tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    async with bare_scenario(tmp_path) as scenario:
        template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": _CONTAINERS}}
        spec = {"serviceName": "db", "replicas": 1, "selector": {"matchLabels": {"app": "db"}}, "template": template}
        made = {"metadata": {"name": "db", "namespace": "default", "labels": {QUEUE_LABEL: "team"}}, "spec": spec}
        wanted = held(made, ("apps", "StatefulSet"), HoldingRules(), lambda: False)
        uid = (await scenario.cluster.create(STATEFUL_SETS, wanted))["metadata"]["uid"]
        reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": uid, "controller": True}
        replicas = 1

        async def fill() -> None:
            for index in range(len(await scenario.names()), replicas):
                await scenario.pod(
                    f"db-{index}", labels={"app": "db"}, notes={PARENT: "statefulset"}, owners=[reference]
                )

        async def check() -> None:
            nonlocal replicas
            admitted = [0, *(each["spec"]["podSets"][0]["count"] for each in await _admitted(scenario))]
            assert len(await scenario.names()) - len(await scenario.held()) <= max(admitted)
            assert await scenario.ending() == set()
            if draw.random() < 0.3:
                await _admit_all(scenario)
            if draw.random() < 0.2:
                replicas += 1
                await scenario.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": replicas}})
            await fill()

        await crash_often(scenario.cluster, [queued_pods], draw, 12, check)
        scenario.cluster.start(queued_pods)
        for _ in range(2):
            await scenario.cluster.pass_time(5)
            await _admit_all(scenario)
        await scenario.cluster.pass_time(5)
        assert (await scenario.held(), await scenario.ending()) == (set(), set())
        (left,) = [one for one in await _admitted(scenario) if "Finished" not in str(one["status"]["conditions"])]
        assert left["spec"]["podSets"][0]["count"] == replicas > 1
