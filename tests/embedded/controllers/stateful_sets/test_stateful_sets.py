"""StatefulSets on a whole control plane: names, order, claims, updates and going back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.pod_life import PodLife, running, template, workload
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS, VOLUME_CLAIMS
from shoal.client.port import Patch
from shoal.embedded.controllers.stateful_sets.controller import stateful_set_controller


def database(replicas: int = 3, **spec: Any) -> Obj:
    return workload("db", replicas, serviceName="db", **spec)


def claim_template(name: str = "data") -> Obj:
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}


async def names(cluster: SmallCluster) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in await cluster.pods())


async def images(cluster: SmallCluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in await cluster.pods()}


async def status_of(cluster: SmallCluster) -> Obj:
    found: Obj = (await cluster.get(STATEFUL_SETS, "db"))["status"]
    return found


async def roll(cluster: SmallCluster, image: str) -> None:
    await cluster.patch(STATEFUL_SETS, "db", {"spec": {"template": template("db", image)}})


async def first_seen(cluster: SmallCluster, seconds: float) -> list[str]:
    """Pods in the order in which they came, by uid."""
    seen: dict[str, str] = {}
    for _ in range(int(seconds * 10)):
        await cluster.pass_time(0.1)
        for pod in await cluster.pods():
            seen.setdefault(pod["metadata"]["uid"], pod["metadata"]["name"])
    return list(seen.values())


@virtual
async def test_pods_come_one_after_the_other_with_their_identity(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [stateful_set_controller, PodLife(ready_after_s=2).controller]) as cluster:
        await cluster.create(STATEFUL_SETS, database())
        await cluster.pass_time(1)
        assert await names(cluster) == ["db-0"]
        assert await first_seen(cluster, 10) == ["db-0", "db-1", "db-2"]
        pod = await cluster.get(PODS, "db-1")
        revision = (await status_of(cluster))["updateRevision"]
        assert pod["metadata"]["labels"] == {
            "app": "db",
            "statefulset.kubernetes.io/pod-name": "db-1",
            "apps.kubernetes.io/pod-index": "1",
            "controller-revision-hash": revision,
        }
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-1", "db")
        assert await status_of(cluster) == {
            "observedGeneration": 1,
            "replicas": 3,
            "readyReplicas": 3,
            "currentReplicas": 3,
            "updatedReplicas": 3,
            "availableReplicas": 3,
            "currentRevision": revision,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        said = [one["message"] for one in await cluster.events("db")]
        assert said == [f"Create Pod db-{number} in StatefulSet db successful" for number in range(3)]


@virtual
async def test_scaling_down_ends_the_highest_first_and_one_at_a_time(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [stateful_set_controller, PodLife(ends_after_s=5).controller]) as cluster:
        await cluster.create(STATEFUL_SETS, database())
        await cluster.pass_time(10)
        await cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await cluster.pass_time(3)
        ending = [pod["metadata"]["name"] for pod in await cluster.pods() if "deletionTimestamp" in pod["metadata"]]
        assert ending == ["db-2"]
        await cluster.pass_time(10)
        assert await names(cluster) == ["db-0"]


@virtual
async def test_parallel_sets_do_not_wait(tmp_path: Path) -> None:
    life = PodLife(is_well=lambda pod: False)
    async with small_cluster(tmp_path, [stateful_set_controller, life.controller]) as cluster:
        await cluster.create(STATEFUL_SETS, database(podManagementPolicy="Parallel", ordinals={"start": 5}))
        await cluster.pass_time(2)
        assert await names(cluster) == ["db-5", "db-6", "db-7"]


@virtual
async def test_a_rolling_update_goes_down_to_its_partition_and_back_by_the_same_revision(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [stateful_set_controller, PodLife().controller]) as cluster:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        await cluster.create(STATEFUL_SETS, database(updateStrategy=strategy))
        await cluster.pass_time(15)
        before = await status_of(cluster)
        await roll(cluster, "db:2")
        await cluster.pass_time(15)
        assert await images(cluster) == {"db-0": "web:1", "db-1": "web:1", "db-2": "db:2"}
        status = await status_of(cluster)
        assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
        assert status["currentRevision"] == before["currentRevision"] != status["updateRevision"]
        # A pod below the partition comes back as it was.
        await cluster.delete(PODS, "db-0")
        await cluster.pass_time(10)
        assert (await images(cluster))["db-0"] == "web:1"
        await cluster.patch(STATEFUL_SETS, "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        assert await first_seen(cluster, 20) == ["db-0", "db-1", "db-2", "db-1", "db-0"]
        status = await status_of(cluster)
        assert status["currentRevision"] == status["updateRevision"]
        # What `kubectl rollout undo` sends: the data of the old revision as a patch.
        old = min(await cluster.all(CONTROLLER_REVISIONS), key=lambda one: int(one["revision"]))
        await cluster.api.patch(STATEFUL_SETS, "default", "db", Patch("strategic", old["data"]))
        await cluster.pass_time(20)
        assert set((await images(cluster)).values()) == {"web:1"}
        revisions = {one["metadata"]["name"]: one["revision"] for one in await cluster.all(CONTROLLER_REVISIONS)}
        assert sorted(revisions.values()) == [2, 3]
        assert revisions[old["metadata"]["name"]] == 3


@virtual
async def test_on_delete_changes_only_what_people_delete(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [stateful_set_controller, PodLife().controller]) as cluster:
        await cluster.create(STATEFUL_SETS, database(updateStrategy={"type": "OnDelete"}))
        await cluster.pass_time(10)
        await roll(cluster, "db:2")
        await cluster.pass_time(10)
        assert set((await images(cluster)).values()) == {"web:1"}
        await cluster.delete(PODS, "db-1")
        await cluster.pass_time(10)
        assert await images(cluster) == {"db-0": "web:1", "db-1": "db:2", "db-2": "web:1"}


@virtual
async def test_an_ordered_update_waits_for_a_broken_pod_until_it_is_deleted(tmp_path: Path) -> None:
    life = PodLife(is_well=lambda pod: pod["spec"]["containers"][0]["image"] != "db:bad")
    async with small_cluster(tmp_path, [stateful_set_controller, life.controller]) as cluster:
        await cluster.create(STATEFUL_SETS, database())
        await cluster.pass_time(10)
        await roll(cluster, "db:bad")
        await cluster.pass_time(10)
        await roll(cluster, "db:3")
        await cluster.pass_time(30)
        assert await images(cluster) == {"db-0": "web:1", "db-1": "web:1", "db-2": "db:bad"}
        await cluster.delete(PODS, "db-2")
        await cluster.pass_time(20)
        assert set((await images(cluster)).values()) == {"db:3"}


@virtual
async def test_failed_and_succeeded_pods_are_made_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [stateful_set_controller, PodLife().controller]) as cluster:
        await cluster.create(STATEFUL_SETS, database())
        await cluster.pass_time(10)
        before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await cluster.pods()}
        await cluster.patch(PODS, "db-0", {"status": {"phase": "Failed"}}, "status")
        await cluster.patch(PODS, "db-2", {"status": {"phase": "Succeeded"}}, "status")
        await cluster.pass_time(15)
        after = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await cluster.pods()}
        assert {name for name in before if before[name] != after[name]} == {"db-0", "db-2"}
        assert (await status_of(cluster))["readyReplicas"] == 3


@virtual
async def test_every_pod_has_its_claims_and_they_stay(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [stateful_set_controller, PodLife().controller]) as cluster:
        await cluster.create(STATEFUL_SETS, database(2, volumeClaimTemplates=[claim_template()]))
        await cluster.pass_time(10)
        claims = await cluster.all(VOLUME_CLAIMS)
        assert sorted(claim["metadata"]["name"] for claim in claims) == ["data-db-0", "data-db-1"]
        assert all(claim["metadata"]["labels"] == {"app": "db"} for claim in claims)
        volumes = (await cluster.get(PODS, "db-1"))["spec"]["volumes"]
        assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}} in volumes
        said = [one["message"] for one in await cluster.events("db")]
        assert "Create Claim data-db-0 Pod db-0 in StatefulSet db success" in said
        await cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 0}})
        await cluster.pass_time(10)
        assert await names(cluster) == []
        assert len(await cluster.all(VOLUME_CLAIMS)) == 2


@virtual
async def test_claims_are_owned_as_the_retention_policy_says(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [stateful_set_controller, PodLife(ends_after_s=20).controller]) as cluster:
        policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        spec = {"volumeClaimTemplates": [claim_template()], "persistentVolumeClaimRetentionPolicy": policy}
        made = await cluster.create(STATEFUL_SETS, database(2, **spec))
        await cluster.pass_time(10)

        async def owners() -> dict[str, list[str]]:
            claims = await cluster.all(VOLUME_CLAIMS)
            return {
                claim["metadata"]["name"]: [one["uid"] for one in claim["metadata"].get("ownerReferences") or ()]
                for claim in claims
            }

        whole = made["metadata"]["uid"]
        assert await owners() == {"data-db-0": [whole], "data-db-1": [whole]}
        pod = (await cluster.get(PODS, "db-1"))["metadata"]["uid"]
        await cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await cluster.pass_time(5)
        assert await owners() == {"data-db-0": [whole], "data-db-1": [pod]}


@virtual
async def test_the_next_pod_waits_until_the_last_was_ready_for_long_enough(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [stateful_set_controller, PodLife().controller]) as cluster:
        await cluster.create(STATEFUL_SETS, database(2, minReadySeconds=30))
        await cluster.pass_time(20)
        assert await names(cluster) == ["db-0"]
        await cluster.pass_time(20)
        assert await names(cluster) == ["db-0", "db-1"]


@virtual
async def test_a_set_that_loses_readiness_above_still_fills_what_is_missing_below(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [stateful_set_controller, PodLife().controller]) as cluster:
        await cluster.create(STATEFUL_SETS, database())
        await cluster.pass_time(10)
        unready = running(cluster.clock.text(), ready=False)
        await cluster.patch(PODS, "db-2", {"status": unready}, "status")
        await cluster.delete(PODS, "db-1")
        await cluster.pass_time(10)
        assert await names(cluster) == ["db-0", "db-1", "db-2"]
