"""Deployments on a whole control plane: rollouts, undo, pause, deadlines, and what kubectl reads of them."""

from __future__ import annotations

from pathlib import Path

from build.pod_life import PodLife, template, workload
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import DEPLOYMENTS, REPLICA_SETS
from shoal.client.port import Deletion
from shoal.embedded.controllers.deployments.controller import deployment_controller
from shoal.embedded.controllers.replicas.controller import replica_set_controller

CONTROLLERS = (deployment_controller, replica_set_controller)
REVISION = "deployment.kubernetes.io/revision"


def images(pods: list[Obj]) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods)


async def web(cluster: SmallCluster) -> Obj:
    return await cluster.get(DEPLOYMENTS, "web")


async def conditions(cluster: SmallCluster) -> dict[str, tuple[str, str, str]]:
    found = (await web(cluster))["status"]["conditions"]
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in found}


async def roll(cluster: SmallCluster, image: str) -> None:
    await cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image=image)}})


async def said(cluster: SmallCluster) -> list[str]:
    return [one["message"] for one in await cluster.events("web") if one["reason"] == "ScalingReplicaSet"]


async def set_of(cluster: SmallCluster, image: str) -> Obj:
    for one in await cluster.all(REPLICA_SETS):
        if one["spec"]["template"]["spec"]["containers"][0]["image"] == image:
            return one
    raise AssertionError(image)


@virtual
async def test_a_deployment_makes_one_replica_set_and_tells_its_progress(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [*CONTROLLERS, PodLife().controller]) as cluster:
        made = await cluster.create(DEPLOYMENTS, workload())
        await cluster.pass_time(5)
        [one] = await cluster.all(REPLICA_SETS)
        name, hashed = one["metadata"]["name"], one["metadata"]["labels"]["pod-template-hash"]
        assert name == f"web-{hashed}"
        assert 8 <= len(hashed) <= 10
        assert one["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": hashed}
        assert one["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        notes = {key.partition("/")[2]: value for key, value in one["metadata"]["annotations"].items()}
        assert notes == {"revision": "1", "desired-replicas": "3", "max-replicas": "4"}
        deployment = await web(cluster)
        assert deployment["metadata"]["annotations"][REVISION] == "1"
        status = deployment["status"]
        assert {key: value for key, value in status.items() if key != "conditions"} == {
            "observedGeneration": 1,
            "replicas": 3,
            "updatedReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "terminatingReplicas": 0,
        }
        assert await conditions(cluster) == {
            "Available": ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
            "Progressing": ("True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.'),
        }
        assert await said(cluster) == [f"Scaled up replica set {name} from 0 to 3"]


@virtual
async def test_a_rolling_update_replaces_pods_within_its_bounds(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [*CONTROLLERS, PodLife().controller]) as cluster:
        await cluster.create(DEPLOYMENTS, workload(replicas=4))
        await cluster.pass_time(5)
        await roll(cluster, "web:2")
        least, most = 4, 0
        for _ in range(200):
            await cluster.pass_time(0.1)
            pods = [pod for pod in await cluster.pods() if "deletionTimestamp" not in pod["metadata"]]
            ready = [pod for pod in pods if pod["status"]["phase"] == "Running"]
            least, most = min(least, len(ready)), max(most, len(pods))
        assert (least, most) == (3, 5)
        assert images(await cluster.pods()) == ["web:2"] * 4
        sizes = {
            one["metadata"]["annotations"][REVISION]: one["spec"]["replicas"] for one in await cluster.all(REPLICA_SETS)
        }
        assert sizes == {"1": 0, "2": 4}


@virtual
async def test_undo_goes_back_to_the_old_replica_set_under_a_new_revision(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [*CONTROLLERS, PodLife().controller]) as cluster:
        await cluster.create(DEPLOYMENTS, workload())
        await cluster.pass_time(5)
        await roll(cluster, "web:2")
        await cluster.pass_time(20)
        old = await set_of(cluster, "web:1")
        # As `kubectl rollout undo` does: the old set's template, without its hash label.
        back = old["spec"]["template"]
        del back["metadata"]["labels"]["pod-template-hash"]
        deployment = await web(cluster)
        deployment["spec"]["template"] = back
        await cluster.api.update(DEPLOYMENTS, deployment)
        await cluster.pass_time(20)
        assert len(await cluster.all(REPLICA_SETS)) == 2
        assert images(await cluster.pods()) == ["web:1"] * 3
        notes = (await set_of(cluster, "web:1"))["metadata"]["annotations"]
        assert (notes[REVISION], notes["deployment.kubernetes.io/revision-history"]) == ("3", "1")
        assert (await web(cluster))["metadata"]["annotations"][REVISION] == "3"


@virtual
async def test_a_paused_deployment_does_not_roll_but_scales(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [*CONTROLLERS, PodLife().controller]) as cluster:
        await cluster.create(DEPLOYMENTS, workload())
        await cluster.pass_time(5)
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"paused": True, "replicas": 5}})
        await roll(cluster, "web:2")
        await cluster.pass_time(10)
        assert images(await cluster.pods()) == ["web:1"] * 5
        assert (await conditions(cluster))["Progressing"] == ("Unknown", "DeploymentPaused", "Deployment is paused")
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"paused": None}})
        await cluster.pass_time(30)
        assert images(await cluster.pods()) == ["web:2"] * 5
        assert (await conditions(cluster))["Progressing"][1] == "NewReplicaSetAvailable"


@virtual
async def test_a_rollout_that_gets_nowhere_is_told_after_its_deadline(tmp_path: Path) -> None:
    life = PodLife(is_well=lambda pod: images([pod]) != ["web:bad"])
    async with small_cluster(tmp_path, [*CONTROLLERS, life.controller]) as cluster:
        await cluster.create(DEPLOYMENTS, workload(progressDeadlineSeconds=60))
        await cluster.pass_time(5)
        await roll(cluster, "web:bad")
        await cluster.pass_time(40)
        assert (await conditions(cluster))["Progressing"][:2] == ("True", "ReplicaSetUpdated")
        await cluster.pass_time(40)
        bad = (await set_of(cluster, "web:bad"))["metadata"]["name"]
        words = f'ReplicaSet "{bad}" has timed out progressing.'
        assert (await conditions(cluster))["Progressing"] == ("False", "ProgressDeadlineExceeded", words)
        assert (await conditions(cluster))["Available"][0] == "True"
        assert images(await cluster.pods()) == ["web:1"] * 3 + ["web:bad"]
        # A good template gets past the bad pods.
        await roll(cluster, "web:3")
        await cluster.pass_time(30)
        assert images(await cluster.pods()) == ["web:3"] * 3
        assert (await conditions(cluster))["Progressing"][:2] == ("True", "NewReplicaSetAvailable")


@virtual
async def test_recreate_starts_new_pods_when_all_old_ones_are_gone(tmp_path: Path) -> None:
    life = PodLife(ends_after_s=10)
    async with small_cluster(tmp_path, [*CONTROLLERS, life.controller]) as cluster:
        await cluster.create(DEPLOYMENTS, workload(strategy={"type": "Recreate"}))
        await cluster.pass_time(5)
        await roll(cluster, "web:2")
        await cluster.pass_time(5)
        pods = await cluster.pods()
        assert images(pods) == ["web:1"] * 3
        assert all("deletionTimestamp" in pod["metadata"] for pod in pods)
        await cluster.pass_time(20)
        assert images(await cluster.pods()) == ["web:2"] * 3


@virtual
async def test_history_is_kept_as_long_as_asked(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [*CONTROLLERS, PodLife().controller]) as cluster:
        await cluster.create(DEPLOYMENTS, workload(revisionHistoryLimit=1))
        for number in range(2, 6):
            await cluster.pass_time(20)
            await roll(cluster, f"web:{number}")
        await cluster.pass_time(20)
        revisions = sorted(one["metadata"]["annotations"][REVISION] for one in await cluster.all(REPLICA_SETS))
        assert revisions == ["4", "5"]


@virtual
async def test_scaling_in_the_middle_of_a_rollout_is_shared(tmp_path: Path) -> None:
    life = PodLife(is_well=lambda pod: images([pod]) != ["web:bad"])
    async with small_cluster(tmp_path, [*CONTROLLERS, life.controller]) as cluster:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
        await cluster.create(DEPLOYMENTS, workload(replicas=10, strategy=rolling))
        await cluster.pass_time(5)
        await roll(cluster, "web:bad")
        await cluster.pass_time(5)
        assert images(await cluster.pods()) == ["web:1"] * 8 + ["web:bad"] * 5
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
        await cluster.pass_time(5)
        assert images(await cluster.pods()) == ["web:1"] * 11 + ["web:bad"] * 7


@virtual
async def test_a_taken_name_is_gone_around(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [*CONTROLLERS, PodLife().controller]) as cluster:
        await cluster.create(DEPLOYMENTS, workload(replicas=1))
        await cluster.pass_time(5)
        taken = (await set_of(cluster, "web:1"))["metadata"]["name"]
        await cluster.delete(DEPLOYMENTS, "web")
        for one in await cluster.all(REPLICA_SETS):
            await cluster.delete(REPLICA_SETS, one["metadata"]["name"])
        stranger = workload(taken, replicas=0)
        stranger["metadata"]["labels"] = {"stranger": "yes"}
        await cluster.create(REPLICA_SETS, stranger)
        await cluster.create(DEPLOYMENTS, workload(replicas=1))
        await cluster.pass_time(10)
        status = (await web(cluster))["status"]
        assert (status["collisionCount"], status["availableReplicas"]) == (1, 1)


@virtual
async def test_replica_sets_of_a_deployment_that_was_orphaned_are_taken_back(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [*CONTROLLERS, PodLife().controller]) as cluster:
        await cluster.create(DEPLOYMENTS, workload())
        await cluster.pass_time(5)
        [one] = await cluster.all(REPLICA_SETS)
        await cluster.delete(DEPLOYMENTS, "web", Deletion(policy="Background"))
        await cluster.patch(REPLICA_SETS, one["metadata"]["name"], {"metadata": {"ownerReferences": None}})
        made = await cluster.create(DEPLOYMENTS, workload())
        await cluster.pass_time(5)
        [same] = await cluster.all(REPLICA_SETS)
        assert same["metadata"]["uid"] == one["metadata"]["uid"]
        assert same["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        assert len(await cluster.pods()) == 3
