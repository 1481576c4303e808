"""Serving kinds: a StatefulSet is one Workload, and so is every replica of a LeaderWorkerSet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.queued_scenes import QueuedScene, bare_scene, queued_scene
from build.virtual_time import virtual
from shoal.controllers.gatekeeping.held_kinds import PARENT, QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.holding import held
from shoal.controllers.queued_pods.serving_kinds import MOST_REPLICAS, excess_of, workload_names_of
from shoal.store.live.ecosystem_kinds import LEADER_WORKER_SETS, WORKLOADS
from shoal.store.live.kind import PODS, STATEFUL_SETS
from shoal.store.live.port import Deletion

Obj = dict[str, Any]
_CONTAINERS = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]


async def _stateful_set(scene: QueuedScene, replicas: int) -> Obj:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": _CONTAINERS}}
    spec = {"serviceName": "db", "replicas": replicas, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    obj = {"metadata": {"name": "db", "namespace": "default", "labels": {QUEUE_LABEL: "team"}}, "spec": spec}
    return await scene.cluster.create(STATEFUL_SETS, held(obj, ("apps", "StatefulSet"), HoldingRules(), lambda: False))


async def _replica(scene: QueuedScene, owner: Obj, index: int) -> None:
    reference = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "db",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    await scene.pod(f"db-{index}", labels={"app": "db"}, notes={PARENT: "statefulset"}, owners=[reference])


@virtual
async def test_a_stateful_set_is_one_workload_before_its_pods_exist(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        owner = await _stateful_set(scene, 3)
        await scene.cluster.pass_time(1)
        workload = await scene.workload()
        assert workload["metadata"]["name"].startswith("statefulset-db-")
        assert workload["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
        assert [(one["name"], one["count"]) for one in workload["spec"]["podSets"]] == [("main", 3)]
        await _replica(scene, owner, 0)
        await scene.cluster.pass_time(1)
        assert await scene.held() == {"db-0"}
        await scene.admit(workload, "spot")
        assert await scene.held() == set()
        await _replica(scene, owner, 1)
        await scene.cluster.pass_time(1)
        assert await scene.held() == set()
        assert len(await scene.workloads()) == 1


@virtual
async def test_the_workload_of_a_pending_stateful_set_follows_its_scale(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await _stateful_set(scene, 3)
        await scene.cluster.pass_time(1)
        await scene.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 5}})
        await scene.cluster.pass_time(1)
        assert (await scene.workload())["spec"]["podSets"][0]["count"] == 5
        await scene.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 0}})
        await scene.cluster.pass_time(1)
        assert await scene.workloads() == []


@virtual
async def test_a_running_stateful_set_that_is_scaled_down_frees_quota(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await _stateful_set(scene, 3)
        await scene.cluster.pass_time(1)
        await scene.admit(await scene.workload())
        await scene.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await scene.cluster.pass_time(1)
        workload = await scene.workload()
        assert workload["status"]["reclaimablePods"] == [{"name": "main", "count": 2}]


async def _grown(scene: QueuedScene) -> tuple[Obj, Obj]:
    """A set of one replica that runs, scaled to two: its Workloads in turn."""
    owner = await _stateful_set(scene, 1)
    await scene.cluster.pass_time(1)
    await _replica(scene, owner, 0)
    first = await scene.workload()
    await scene.admit(first)
    await scene.bind("db-0")
    await scene.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 2}})
    await scene.cluster.pass_time(1)
    await _replica(scene, owner, 1)
    await scene.cluster.pass_time(1)
    (second,) = [one for one in await scene.workloads() if one["metadata"]["uid"] != first["metadata"]["uid"]]
    return first, second


@virtual
async def test_a_running_stateful_set_that_grows_runs_on_and_gets_a_larger_workload(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        first, second = await _grown(scene)
        notes, name = second["metadata"]["annotations"], first["metadata"]["name"]
        assert notes["kueue.x-k8s.io/workload-slice-replacement-for"] == f"default/{name}"
        assert notes["kueue.x-k8s.io/workload-slice-name"] == name
        assert second["spec"]["podSets"][0]["count"] == 2
        await scene.cluster.pass_time(60)
        assert (await scene.ending(), await scene.held()) == (set(), {"db-1"})
        assert len(await scene.workloads()) == 2
        await scene.admit(second)
        await scene.cluster.pass_time(2)
        assert (await scene.ending(), await scene.held()) == (set(), set())
        old = await scene.cluster.get(WORKLOADS, name)
        (finished,) = [one for one in old["status"]["conditions"] if one["type"] == "Finished"]
        assert (finished["status"], finished["reason"]) == ("True", "WorkloadSliceReplaced")
        assert not old["metadata"].get("finalizers")
        pods = {pod["metadata"]["name"]: pod["metadata"]["annotations"] for pod in await scene.cluster.pods()}
        assert pods["db-1"]["kueue.x-k8s.io/workload"] == second["metadata"]["name"]
        assert {one["kueue.x-k8s.io/workload-slice-name"] for one in pods.values()} == {name}


@virtual
async def test_a_stateful_set_that_is_scaled_back_deletes_the_larger_workload(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        first, _ = await _grown(scene)
        await scene.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 4}})
        await scene.cluster.pass_time(2)
        assert sorted(one["spec"]["podSets"][0]["count"] for one in await scene.workloads()) == [1, 4]
        await scene.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await scene.cluster.pass_time(2)
        assert [one["metadata"]["uid"] for one in await scene.workloads()] == [first["metadata"]["uid"]]
        assert await scene.ending() == set()


@virtual
async def test_a_stateful_set_evicted_while_it_grows_is_requeued_with_its_new_size(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        first, second = await _grown(scene)
        await scene.evict(first)
        assert await scene.ending() == {"db-0"}
        await scene.vanish("db-0")
        await scene.cluster.pass_time(3)
        assert [one["metadata"]["uid"] for one in await scene.workloads()] == [second["metadata"]["uid"]]


@virtual
async def test_a_larger_workload_evicted_before_the_stateful_set_grew_releases_its_quota(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        _, second = await _grown(scene)
        await scene.say(second, {}, ("QuotaReserved", "True", "QuotaReserved", ""))
        await scene.cluster.pass_time(1)
        await scene.evict(second)
        status = (await scene.cluster.get(WORKLOADS, second["metadata"]["name"]))["status"]
        (reserved,) = [one["status"] for one in status["conditions"] if one["type"] == "QuotaReserved"]
        assert reserved == "False"
        assert await scene.ending() == set()
        await scene.cluster.delete(WORKLOADS, second["metadata"]["name"])
        await scene.cluster.pass_time(2)
        assert second["metadata"]["uid"] not in {one["metadata"]["uid"] for one in await scene.workloads()}
        assert (len(await scene.workloads()), await scene.ending()) == (2, set())


@virtual
async def test_all_workloads_of_a_deleted_stateful_set_are_deleted(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        _, second = await _grown(scene)
        await scene.admit(second)
        await scene.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 3}})
        await scene.cluster.pass_time(2)
        assert len(await scene.workloads()) == 3
        await scene.cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 0}})
        for name in ("db-0", "db-1"):
            await scene.cluster.delete(PODS, name, Deletion(grace_s=0))
        await scene.cluster.pass_time(3)
        assert await scene.workloads() == []


@virtual
async def test_terminated_pods_of_a_stateful_set_are_released_at_once(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        owner = await _stateful_set(scene, 1)
        await _replica(scene, owner, 0)
        await scene.cluster.pass_time(1)
        await scene.admit(await scene.workload())
        await scene.bind("db-0")
        await scene.cluster.delete(PODS, "db-0")
        await scene.cluster.pass_time(1)
        assert await scene.ending() == {"db-0"}
        await scene.cluster.delete(PODS, "db-0", Deletion(grace_s=0))
        await scene.cluster.pass_time(1)
        assert await scene.names() == set()
        await _replica(scene, owner, 0)
        await scene.cluster.pass_time(1)
        assert await scene.held() == set()


@virtual
async def test_each_replica_of_leader_and_workers_is_a_workload(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        template = {"spec": {"containers": _CONTAINERS}}
        both = {"size": 3, "leaderTemplate": template, "workerTemplate": template}
        meta = {"name": "llm", "namespace": "default", "labels": {QUEUE_LABEL: "team"}}
        await scene.cluster.create(
            LEADER_WORKER_SETS, {"metadata": meta, "spec": {"replicas": 2, "leaderWorkerTemplate": both}}
        )
        await scene.cluster.pass_time(1)
        workloads = await scene.workloads()
        assert len(workloads) == 2
        for workload in workloads:
            sets = [(one["name"], one["count"]) for one in workload["spec"]["podSets"]]
            assert sets == [("leader", 1), ("worker", 2)]
        lws = "leaderworkerset.sigs.k8s.io"
        for index in ("0", "1"):
            labels = {f"{lws}/name": "llm", f"{lws}/group-index": "1", f"{lws}/worker-index": index}
            await scene.pod(f"llm-1-{index}", labels=labels, notes={PARENT: "leaderworkerset"})
        await scene.cluster.pass_time(1)
        second = next(one for one in workloads if one["metadata"]["name"].startswith("leaderworkerset-llm-1-"))
        await scene.admit(second)
        assert await scene.held() == set()
        roles = {pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in await scene.cluster.pods()}
        assert roles["llm-1-0"]["kueue.x-k8s.io/podset"] == "leader"
        assert roles["llm-1-1"]["kueue.x-k8s.io/podset"] == "worker"
        await scene.cluster.patch(LEADER_WORKER_SETS, "llm", {"spec": {"replicas": 1}})
        await scene.cluster.pass_time(2)
        assert [one["metadata"]["name"].rpartition("-")[0] for one in await scene.workloads()] == [
            "leaderworkerset-llm-0",
            "leaderworkerset-llm-1",
        ]
        for index in ("0", "1"):
            await scene.cluster.delete(PODS, f"llm-1-{index}", Deletion(grace_s=0))
        await scene.cluster.pass_time(2)
        (left,) = await scene.workloads()
        assert left["metadata"]["name"].startswith("leaderworkerset-llm-0-")


@virtual
async def test_pods_of_a_deployment_are_admitted_one_by_one(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}
        for name in ("web-1-a", "web-1-b"):
            await scene.pod(name, notes={PARENT: "deployment"}, owners=[owner])
        await scene.cluster.pass_time(1)
        assert len(await scene.workloads()) == 2


@virtual
async def test_a_mistyped_number_of_replicas_is_reported_and_delays_no_other(tmp_path: Path) -> None:
    async with bare_scene(tmp_path) as scene:
        both = {"size": 1, "workerTemplate": {"spec": {"containers": _CONTAINERS}}}
        meta = {"namespace": "default", "labels": {QUEUE_LABEL: "team"}}
        for replicas, wanted, is_told in ((3, 3, False), (2**31 - 1, MOST_REPLICAS, True)):
            spec = {"replicas": replicas, "leaderWorkerTemplate": both}
            named = {**meta, "name": f"r{replicas}"}
            item = await scene.cluster.api.create(LEADER_WORKER_SETS, {"metadata": named, "spec": spec})
            assert sum(1 for _ in workload_names_of(LEADER_WORKER_SETS, item)) == wanted
            assert (str(replicas) in excess_of(LEADER_WORKER_SETS, item)) == is_told
