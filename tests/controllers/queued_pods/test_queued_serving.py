"""Serving kinds: a StatefulSet is one Workload, and so is every replica of a LeaderWorkerSet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.queued_pod_scenarios import QueuedPodScenario, bare_scenario, queued_pod_scenario
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS, WORKLOADS
from shoal.client.kind import PODS, STATEFUL_SETS
from shoal.client.port import Deletion
from shoal.controllers.gatekeeping.held_kinds import PARENT, QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.holding import held
from shoal.controllers.queued_pods.serving_kinds import MOST_REPLICAS, excess_of, workload_names_of

Obj = dict[str, Any]
_CONTAINERS = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]


async def _stateful_set(scenario: QueuedPodScenario, replicas: int) -> Obj:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": _CONTAINERS}}
    spec = {"serviceName": "db", "replicas": replicas, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    obj = {"metadata": {"name": "db", "namespace": "default", "labels": {QUEUE_LABEL: "team"}}, "spec": spec}
    return await scenario.cluster.create(
        STATEFUL_SETS, held(obj, ("apps", "StatefulSet"), HoldingRules(), lambda: False)
    )


async def _replica(scenario: QueuedPodScenario, owner: Obj, index: int) -> None:
    reference = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "db",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    await scenario.pod(f"db-{index}", labels={"app": "db"}, notes={PARENT: "statefulset"}, owners=[reference])


@virtual
async def test_a_stateful_set_is_one_workload_before_its_pods_exist(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        owner = await _stateful_set(scenario, 3)
        await scenario.cluster.pass_time(1)
        workload = await scenario.workload()
        assert workload["metadata"]["name"].startswith("statefulset-db-")
        assert workload["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
        assert [(one["name"], one["count"]) for one in workload["spec"]["podSets"]] == [("main", 3)]
        await _replica(scenario, owner, 0)
        await scenario.cluster.pass_time(1)
        assert await scenario.held() == {"db-0"}
        await scenario.admit(workload, "spot")
        assert await scenario.held() == set()
        await _replica(scenario, owner, 1)
        await scenario.cluster.pass_time(1)
        assert await scenario.held() == set()
        assert len(await scenario.workloads()) == 1


@virtual
async def test_the_workload_of_a_pending_stateful_set_follows_its_scale(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await _stateful_set(scenario, 3)
        await scenario.cluster.pass_time(1)
        await scenario.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 5}})
        await scenario.cluster.pass_time(1)
        assert (await scenario.workload())["spec"]["podSets"][0]["count"] == 5
        await scenario.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 0}})
        await scenario.cluster.pass_time(1)
        assert await scenario.workloads() == []


@virtual
async def test_a_running_stateful_set_that_is_scaled_down_frees_quota(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await _stateful_set(scenario, 3)
        await scenario.cluster.pass_time(1)
        await scenario.admit(await scenario.workload())
        await scenario.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await scenario.cluster.pass_time(1)
        workload = await scenario.workload()
        assert workload["status"]["reclaimablePods"] == [{"name": "main", "count": 2}]


async def _grown(scenario: QueuedPodScenario) -> tuple[Obj, Obj]:
    """A set of one replica that runs, scaled to two: its Workloads in turn."""
    owner = await _stateful_set(scenario, 1)
    await scenario.cluster.pass_time(1)
    await _replica(scenario, owner, 0)
    first = await scenario.workload()
    await scenario.admit(first)
    await scenario.bind("db-0")
    await scenario.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 2}})
    await scenario.cluster.pass_time(1)
    await _replica(scenario, owner, 1)
    await scenario.cluster.pass_time(1)
    (second,) = [one for one in await scenario.workloads() if one["metadata"]["uid"] != first["metadata"]["uid"]]
    return first, second


@virtual
async def test_a_running_stateful_set_that_grows_runs_on_and_gets_a_larger_workload(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        first, second = await _grown(scenario)
        notes, name = second["metadata"]["annotations"], first["metadata"]["name"]
        assert notes["kueue.x-k8s.io/workload-slice-replacement-for"] == f"default/{name}"
        assert notes["kueue.x-k8s.io/workload-slice-name"] == name
        assert second["spec"]["podSets"][0]["count"] == 2
        await scenario.cluster.pass_time(60)
        assert (await scenario.ending(), await scenario.held()) == (set(), {"db-1"})
        assert len(await scenario.workloads()) == 2
        await scenario.admit(second)
        await scenario.cluster.pass_time(2)
        assert (await scenario.ending(), await scenario.held()) == (set(), set())
        old = await scenario.cluster.get(WORKLOADS, name)
        (finished,) = [one for one in old["status"]["conditions"] if one["type"] == "Finished"]
        assert (finished["status"], finished["reason"]) == ("True", "WorkloadSliceReplaced")
        assert not old["metadata"].get("finalizers")
        pods = {pod["metadata"]["name"]: pod["metadata"]["annotations"] for pod in await scenario.cluster.pods()}
        assert pods["db-1"]["kueue.x-k8s.io/workload"] == second["metadata"]["name"]
        assert {one["kueue.x-k8s.io/workload-slice-name"] for one in pods.values()} == {name}


@virtual
async def test_a_stateful_set_that_is_scaled_back_deletes_the_larger_workload(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        first, _ = await _grown(scenario)
        await scenario.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 4}})
        await scenario.cluster.pass_time(2)
        assert sorted(one["spec"]["podSets"][0]["count"] for one in await scenario.workloads()) == [1, 4]
        await scenario.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await scenario.cluster.pass_time(2)
        assert [one["metadata"]["uid"] for one in await scenario.workloads()] == [first["metadata"]["uid"]]
        assert await scenario.ending() == set()


@virtual
async def test_a_stateful_set_evicted_while_it_grows_is_requeued_with_its_new_size(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        first, second = await _grown(scenario)
        await scenario.evict(first)
        assert await scenario.ending() == {"db-0"}
        await scenario.vanish("db-0")
        await scenario.cluster.pass_time(3)
        assert [one["metadata"]["uid"] for one in await scenario.workloads()] == [second["metadata"]["uid"]]


@virtual
async def test_a_larger_workload_evicted_before_the_stateful_set_grew_releases_its_quota(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        _, second = await _grown(scenario)
        await scenario.say(second, {}, ("QuotaReserved", "True", "QuotaReserved", ""))
        await scenario.cluster.pass_time(1)
        await scenario.evict(second)
        status = (await scenario.cluster.get(WORKLOADS, second["metadata"]["name"]))["status"]
        (reserved,) = [one["status"] for one in status["conditions"] if one["type"] == "QuotaReserved"]
        assert reserved == "False"
        assert await scenario.ending() == set()
        await scenario.cluster.delete(WORKLOADS, second["metadata"]["name"])
        await scenario.cluster.pass_time(2)
        assert second["metadata"]["uid"] not in {one["metadata"]["uid"] for one in await scenario.workloads()}
        assert (len(await scenario.workloads()), await scenario.ending()) == (2, set())


@virtual
async def test_all_workloads_of_a_deleted_stateful_set_are_deleted(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        _, second = await _grown(scenario)
        await scenario.admit(second)
        await scenario.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 3}})
        await scenario.cluster.pass_time(2)
        assert len(await scenario.workloads()) == 3
        await scenario.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 0}})
        for name in ("db-0", "db-1"):
            await scenario.cluster.delete(PODS, name, Deletion(grace_s=0))
        await scenario.cluster.pass_time(3)
        assert await scenario.workloads() == []


@virtual
async def test_terminated_pods_of_a_stateful_set_are_released_at_once(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        owner = await _stateful_set(scenario, 1)
        await _replica(scenario, owner, 0)
        await scenario.cluster.pass_time(1)
        await scenario.admit(await scenario.workload())
        await scenario.bind("db-0")
        await scenario.cluster.delete(PODS, "db-0")
        await scenario.cluster.pass_time(1)
        assert await scenario.ending() == {"db-0"}
        await scenario.cluster.delete(PODS, "db-0", Deletion(grace_s=0))
        await scenario.cluster.pass_time(1)
        assert await scenario.names() == set()
        await _replica(scenario, owner, 0)
        await scenario.cluster.pass_time(1)
        assert await scenario.held() == set()


@virtual
async def test_each_replica_of_leader_and_workers_is_a_workload(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        template = {"spec": {"containers": _CONTAINERS}}
        both = {"size": 3, "leaderTemplate": template, "workerTemplate": template}
        meta = {"name": "llm", "namespace": "default", "labels": {QUEUE_LABEL: "team"}}
        await scenario.cluster.create(
            LEADER_WORKER_SETS, {"metadata": meta, "spec": {"replicas": 2, "leaderWorkerTemplate": both}}
        )
        await scenario.cluster.pass_time(1)
        workloads = await scenario.workloads()
        assert len(workloads) == 2
        for workload in workloads:
            sets = [(one["name"], one["count"]) for one in workload["spec"]["podSets"]]
            assert sets == [("leader", 1), ("worker", 2)]
        lws = "leaderworkerset.sigs.k8s.io"
        for index in ("0", "1"):
            labels = {f"{lws}/name": "llm", f"{lws}/group-index": "1", f"{lws}/worker-index": index}
            await scenario.pod(f"llm-1-{index}", labels=labels, notes={PARENT: "leaderworkerset"})
        await scenario.cluster.pass_time(1)
        second = next(one for one in workloads if one["metadata"]["name"].startswith("leaderworkerset-llm-1-"))
        await scenario.admit(second)
        assert await scenario.held() == set()
        roles = {pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in await scenario.cluster.pods()}
        assert roles["llm-1-0"]["kueue.x-k8s.io/podset"] == "leader"
        assert roles["llm-1-1"]["kueue.x-k8s.io/podset"] == "worker"
        await scenario.cluster.patch(LEADER_WORKER_SETS, "llm", {"spec": {"replicas": 1}})
        await scenario.cluster.pass_time(2)
        assert [one["metadata"]["name"].rpartition("-")[0] for one in await scenario.workloads()] == [
            "leaderworkerset-llm-0",
            "leaderworkerset-llm-1",
        ]
        for index in ("0", "1"):
            await scenario.cluster.delete(PODS, f"llm-1-{index}", Deletion(grace_s=0))
        await scenario.cluster.pass_time(2)
        (left,) = await scenario.workloads()
        assert left["metadata"]["name"].startswith("leaderworkerset-llm-0-")


@virtual
async def test_pods_of_a_deployment_are_admitted_one_by_one(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}
        for name in ("web-1-a", "web-1-b"):
            await scenario.pod(name, notes={PARENT: "deployment"}, owners=[owner])
        await scenario.cluster.pass_time(1)
        assert len(await scenario.workloads()) == 2


@virtual
async def test_a_mistyped_number_of_replicas_is_reported_and_delays_no_other(tmp_path: Path) -> None:
    async with bare_scenario(tmp_path) as scenario:
        both = {"size": 1, "workerTemplate": {"spec": {"containers": _CONTAINERS}}}
        meta = {"namespace": "default", "labels": {QUEUE_LABEL: "team"}}
        for replicas, wanted, is_reported in ((3, 3, False), (2**31 - 1, MOST_REPLICAS, True)):
            spec = {"replicas": replicas, "leaderWorkerTemplate": both}
            named = {**meta, "name": f"r{replicas}"}
            item = await scenario.cluster.api.create(LEADER_WORKER_SETS, {"metadata": named, "spec": spec})
            assert sum(1 for _ in workload_names_of(LEADER_WORKER_SETS, item)) == wanted
            assert (str(replicas) in excess_of(LEADER_WORKER_SETS, item)) == is_reported
