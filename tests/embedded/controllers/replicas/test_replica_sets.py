"""ReplicaSets on a whole control plane: as many pods as asked for, whatever happens to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.pod_life import PodLife, running, template, workload
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Kind
from shoal.client.port import Deletion
from shoal.embedded.controllers.replicas.controller import replica_set_controller, replication_controller

QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")


async def status_of(cluster: SmallCluster, name: str = "web") -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.get(REPLICA_SETS, name))["status"]
    return found


async def reasons(cluster: SmallCluster, name: str = "web") -> dict[str, list[str]]:
    """Messages of Events by reason."""
    found: dict[str, list[str]] = {}
    for event in await cluster.events(name):
        found.setdefault(event["reason"], []).append(event["message"])
    return found


@virtual
async def test_pods_are_made_owned_and_counted(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replica_set_controller, PodLife().controller]) as cluster:
        made = await cluster.create(REPLICA_SETS, workload())
        await cluster.pass_time(5)
        pods = await cluster.pods()
        assert len(pods) == 3
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": made["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        assert all(pod["metadata"]["ownerReferences"] == [owner] for pod in pods)
        assert all(pod["metadata"]["generateName"] == "web-" for pod in pods)
        assert await status_of(cluster) == {
            "replicas": 3,
            "fullyLabeledReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "terminatingReplicas": 0,
            "observedGeneration": 1,
        }
        said = await reasons(cluster)
        assert sorted(said["SuccessfulCreate"]) == sorted(f"Created pod: {pod['metadata']['name']}" for pod in pods)


@virtual
async def test_a_pod_that_goes_or_fails_is_replaced(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replica_set_controller, PodLife().controller]) as cluster:
        await cluster.create(REPLICA_SETS, workload())
        await cluster.pass_time(5)
        gone, failed, _ = [pod["metadata"]["name"] for pod in await cluster.pods()]
        await cluster.delete(PODS, gone)
        await cluster.patch(PODS, failed, {"status": {"phase": "Failed"}}, "status")
        await cluster.pass_time(5)
        pods = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in await cluster.pods()}
        assert gone not in pods
        assert sorted(pods.values()) == ["Failed", "Running", "Running", "Running"]
        assert (await status_of(cluster))["readyReplicas"] == 3


@virtual
async def test_a_terminating_pod_is_replaced_at_once_and_counted_apart(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replica_set_controller, PodLife(ends_after_s=20).controller]) as cluster:
        await cluster.create(REPLICA_SETS, workload(replicas=1))
        await cluster.pass_time(5)
        await cluster.delete(PODS, (await cluster.pods())[0]["metadata"]["name"])
        await cluster.pass_time(5)
        assert len(await cluster.pods()) == 2
        status = await status_of(cluster)
        assert (status["replicas"], status["terminatingReplicas"]) == (1, 1)
        await cluster.pass_time(30)
        assert (await status_of(cluster))["terminatingReplicas"] == 0


@virtual
async def test_scaling_down_ends_pods_that_are_not_ready_first(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replica_set_controller, PodLife().controller]) as cluster:
        await cluster.create(REPLICA_SETS, workload(replicas=4))
        await cluster.pass_time(5)
        names = [pod["metadata"]["name"] for pod in await cluster.pods()]
        for name in names[:2]:
            status = running(cluster.clock.text(), ready=False)
            await cluster.patch(PODS, name, {"status": status}, "status")
        await cluster.patch(REPLICA_SETS, "web", {"spec": {"replicas": 2}})
        await cluster.pass_time(5)
        assert {pod["metadata"]["name"] for pod in await cluster.pods()} == set(names[2:])
        said = await reasons(cluster)
        assert set(said["SuccessfulDelete"]) == {f"Deleted pod: {name}" for name in names[:2]}


@virtual
async def test_a_fitting_orphan_is_taken_and_an_unfitting_pod_let_go(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replica_set_controller, PodLife().controller]) as cluster:
        orphan = template()
        orphan["metadata"]["name"] = "orphan"
        await cluster.create(PODS, orphan)
        made = await cluster.create(REPLICA_SETS, workload(replicas=2))
        await cluster.pass_time(5)
        assert len(await cluster.pods()) == 2
        owners = (await cluster.get(PODS, "orphan"))["metadata"]["ownerReferences"]
        assert [owner["uid"] for owner in owners] == [made["metadata"]["uid"]]
        await cluster.patch(PODS, "orphan", {"metadata": {"labels": {"app": "other"}}})
        await cluster.pass_time(5)
        assert "ownerReferences" not in (await cluster.get(PODS, "orphan"))["metadata"]
        assert len(await cluster.pods()) == 3


@virtual
async def test_an_orphan_that_comes_later_is_one_too_many(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replica_set_controller, PodLife().controller]) as cluster:
        await cluster.create(REPLICA_SETS, workload(replicas=2))
        await cluster.pass_time(5)
        orphan = template()
        orphan["metadata"]["name"] = "orphan"
        await cluster.create(PODS, orphan)
        await cluster.pass_time(5)
        assert "orphan" not in {pod["metadata"]["name"] for pod in await cluster.pods()}
        assert len(await cluster.pods()) == 2


@virtual
async def test_what_a_quota_refuses_is_told_and_made_when_there_is_room(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replica_set_controller, PodLife().controller]) as cluster:
        await cluster.create(QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}})
        await cluster.create(REPLICA_SETS, workload(replicas=3))
        await cluster.pass_time(10)
        assert len(await cluster.pods()) == 2
        [condition] = (await status_of(cluster))["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "ReplicaFailure",
            "True",
            "FailedCreate",
        )
        assert "exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2" in condition["message"]
        [first, *_] = (await reasons(cluster))["FailedCreate"]
        assert first.startswith('Error creating: pods "web-')
        await cluster.patch(QUOTAS, "few", {"spec": {"hard": {"pods": "5"}}})
        await cluster.pass_time(90)
        assert len(await cluster.pods()) == 3
        assert "conditions" not in await status_of(cluster)


@virtual
async def test_a_pod_is_available_once_it_has_been_ready_for_long_enough(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replica_set_controller, PodLife().controller]) as cluster:
        await cluster.create(REPLICA_SETS, workload(replicas=1, minReadySeconds=30))
        await cluster.pass_time(10)
        status = await status_of(cluster)
        assert (status["readyReplicas"], status.get("availableReplicas", 0)) == (1, 0)
        await cluster.pass_time(30)
        assert (await status_of(cluster))["availableReplicas"] == 1


@virtual
async def test_a_set_that_is_being_deleted_makes_no_pods(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replica_set_controller, PodLife().controller]) as cluster:
        await cluster.create(REPLICA_SETS, workload(replicas=2))
        await cluster.pass_time(5)
        await cluster.delete(REPLICA_SETS, "web", Deletion(policy="Foreground"))
        for pod in await cluster.pods():
            await cluster.delete(PODS, pod["metadata"]["name"])
        await cluster.pass_time(10)
        assert await cluster.pods() == []


@virtual
async def test_a_replication_controller_keeps_its_pods_too(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replication_controller, PodLife().controller]) as cluster:
        spec = {"replicas": 2, "template": template("old")}
        await cluster.create(REPLICATION_CONTROLLERS, {"metadata": {"name": "old"}, "spec": spec})
        await cluster.pass_time(5)
        status = (await cluster.get(REPLICATION_CONTROLLERS, "old"))["status"]
        counted = {"fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
        assert status == {"replicas": 2, "observedGeneration": 1, **counted}


@virtual
async def test_six_hundred_pods_need_few_looks(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [replica_set_controller]) as cluster:
        before = cluster.plane.context.state.revision
        await cluster.create(REPLICA_SETS, workload(replicas=600))
        await cluster.pass_time(3)
        assert len(await cluster.pods()) == 600
        # The set, its pods, an Event for each, and a few times the status.
        assert cluster.plane.context.state.revision - before < 2 * 600 + 20
