"""Capacity that is requested before there are pods, through the API server and the simulated cloud."""

from __future__ import annotations

from pathlib import Path

from build.scaled_clusters import GPU, ScaledCluster, scaled_cluster
from build.virtual_time import virtual
from shoal.autoscale.provisioning_requests.request import ATOMIC_SCALE_UP, CHECK_CAPACITY, CONSUME
from shoal.client.ecosystem_kinds import NODE_CLAIMS, NODE_POOLS, PROVISIONING_REQUESTS
from shoal.client.item import Obj
from shoal.client.kind import POD_TEMPLATES

_GROUPS = ("karpenter.sh", "scheduling.x-k8s.io", "autoscaling.x-k8s.io")


async def _request(
    world: ScaledCluster, name: str, class_name: str, pods: int, gpus: int = 8, **parameters: str
) -> None:
    limits = {GPU: str(gpus)}
    container = {"name": "main", "image": "trainer", "resources": {"limits": limits}}
    template = {"spec": {"schedulerName": "shoal", "containers": [container]}}
    await world.cluster.create(POD_TEMPLATES, {"metadata": {"name": name}, "template": template})
    sets = [{"podTemplateRef": {"name": name}, "count": pods}]
    spec: Obj = {"provisioningClassName": class_name, "podSets": sets, "parameters": parameters}
    await world.cluster.create(PROVISIONING_REQUESTS, {"metadata": {"name": name}, "spec": spec})


async def _conditions(world: ScaledCluster, name: str) -> dict[str, str]:
    found = await world.cluster.get(PROVISIONING_REQUESTS, name)
    return {each["type"]: each["status"] for each in (found.get("status") or {}).get("conditions") or ()}


async def _until(world: ScaledCluster, name: str, condition: str, within_s: float) -> None:
    async def is_so() -> bool:
        return (await _conditions(world, name)).get(condition) == "True"

    await world.until(is_so, within_s)


@virtual
async def test_nodes_are_provisioned_for_a_request_and_kept_until_its_pods_come(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        await _request(world, "train", ATOMIC_SCALE_UP, 2)
        await _until(world, "train", "Provisioned", 60)
        assert len(await world.instances()) == 2
        await world.cluster.pass_time(300)
        assert len(await world.instances()) == 2, "nothing runs on them, but they are kept"
        for number in range(2):
            await world.pod(f"train-{number}", 8, notes={CONSUME: "train"})
        await world.until_running("train", 2, within_s=60)
        assert len(world.cloud.requests) == 1
        await _until(world, "train", "BookingExpired", 600)
        assert len(await world.instances()) == 2


@virtual
async def test_nothing_is_provisioned_for_a_request_of_which_a_part_finds_no_place(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool(limits={"nodes": "1"})
        await _request(world, "train", ATOMIC_SCALE_UP, 2)
        await world.cluster.pass_time(90)
        assert await _conditions(world, "train") == {"Accepted": "True", "Provisioned": "False"}
        assert not world.cloud.requests
        pool = (await world.cluster.events("train"))[-1]
        assert "the limits of the pool are reached" in pool["message"]


@virtual
async def test_a_check_finds_free_nodes_once_and_provisions_none(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        await _request(world, "first", CHECK_CAPACITY, 1)
        await world.cluster.pass_time(10)
        assert (await _conditions(world, "first"))["Provisioned"] == "False"
        assert not world.cloud.requests
        await world.pod("solo", 1)
        await world.until_running("solo", 1, within_s=120)
        await _request(world, "second", CHECK_CAPACITY, 7, gpus=1)
        await _until(world, "second", "Provisioned", 30)
        await _request(world, "third", CHECK_CAPACITY, 1, gpus=1)
        await world.cluster.pass_time(30)
        assert (await _conditions(world, "third"))["Provisioned"] == "False", "the GPUs are kept for the second"
        assert len(world.cloud.requests) == 1


@virtual
async def test_a_request_without_its_template_fails_and_says_why(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        sets = [{"podTemplateRef": {"name": "lost"}, "count": 1}]
        spec: Obj = {"provisioningClassName": CHECK_CAPACITY, "podSets": sets}
        await world.cluster.create(PROVISIONING_REQUESTS, {"metadata": {"name": "check"}, "spec": spec})
        await world.cluster.pass_time(50)
        assert await _conditions(world, "check") == {"Accepted": "True"}, "the template may still be created"
        await _until(world, "check", "Failed", 20)
        found = (await world.cluster.get(PROVISIONING_REQUESTS, "check"))["status"]["conditions"]
        assert "PodTemplate lost not found" in found[-1]["message"]


@virtual
async def test_capacity_whose_node_is_deleted_before_its_pods_come_is_revoked(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        await _request(world, "train", ATOMIC_SCALE_UP, 1)
        await _until(world, "train", "Provisioned", 60)
        await world.cluster.pass_time(60)
        await world.cluster.delete(NODE_CLAIMS, (await world.claims())[0]["metadata"]["name"])
        await _until(world, "train", "CapacityRevoked", 60)


@virtual
async def test_a_request_that_has_found_capacity_after_a_refusal_needs_no_passes(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool(limits={"nodes": "0"})
        await _request(world, "train", ATOMIC_SCALE_UP, 1)
        await world.cluster.pass_time(90)
        await world.cluster.patch(NODE_POOLS, "gpu", {"spec": {"limits": {"nodes": "5"}}})
        await _until(world, "train", "Provisioned", 240)
        await world.cluster.pass_time(60)
        before = world.cloud.catalogue_reads
        await world.cluster.pass_time(60)
        assert world.cloud.catalogue_reads - before < 10


@virtual
async def test_a_failure_that_is_final_is_not_taken_for_capacity(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        await world.cluster.pass_time(30)
        for number in range(8):
            await _request(world, f"check-{number}", CHECK_CAPACITY, 1, noRetry="true")
        before = world.cloud.catalogue_reads
        for number in range(8):
            await _until(world, f"check-{number}", "Failed", 60)
        # Found capacity changes what is left for others, so that a pass begins again; a refusal does not.
        assert world.cloud.catalogue_reads - before < 8


@virtual
async def test_a_node_that_starts_for_a_pod_is_not_free_for_a_check(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        await world.pod("solo", 8)
        await world.cluster.pass_time(4)
        assert len(world.cloud.requests) == 1
        await _request(world, "check", CHECK_CAPACITY, 1)
        await world.until_running("solo", 1, within_s=120)
        assert (await _conditions(world, "check"))["Provisioned"] == "False"
        await world.cluster.pass_time(60)
        assert len(world.cloud.requests) == 1


@virtual
async def test_a_template_may_be_created_after_its_request_and_deleted_after_the_grant(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        sets = [{"podTemplateRef": {"name": "late"}, "count": 1}]
        spec: Obj = {"provisioningClassName": ATOMIC_SCALE_UP, "podSets": sets}
        await world.cluster.create(PROVISIONING_REQUESTS, {"metadata": {"name": "train"}, "spec": spec})
        await world.cluster.pass_time(3)
        container = {"name": "main", "image": "trainer", "resources": {"limits": {GPU: "8"}}}
        template = {"spec": {"schedulerName": "shoal", "containers": [container]}}
        await world.cluster.create(POD_TEMPLATES, {"metadata": {"name": "late"}, "template": template})
        await _until(world, "train", "Provisioned", 60)
        await world.cluster.delete(POD_TEMPLATES, "late")
        await world.cluster.pass_time(60)
        assert await _conditions(world, "train") == {"Accepted": "True", "Provisioned": "True"}


@virtual
async def test_a_request_for_too_many_pods_fails_at_once(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool()
        await _request(world, "train", CHECK_CAPACITY, 10_001)
        await _until(world, "train", "Failed", 10)


@virtual
async def test_capacity_is_kept_although_its_template_is_changed_or_deleted(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool(disruption={"consolidateAfter": "0s"})
        await _request(world, "train", ATOMIC_SCALE_UP, 2)
        await _until(world, "train", "Provisioned", 60)
        await world.cluster.delete(POD_TEMPLATES, "train")
        await world.cluster.pass_time(300)
        assert len(await world.instances()) == 2
        assert "CapacityRevoked" not in await _conditions(world, "train")
        await _until(world, "train", "BookingExpired", 400)


@virtual
async def test_a_new_process_gives_capacity_back_whose_template_is_deleted_and_says_so(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS) as world:
        await world.add_pool(disruption={"consolidateAfter": "0s"})
        await _request(world, "train", ATOMIC_SCALE_UP, 1)
        await _until(world, "train", "Provisioned", 60)
        await world.cluster.delete(POD_TEMPLATES, "train")
        await world.kill_controller()
        await world.start_controller()
        await _until(world, "train", "CapacityRevoked", 60)
        found = (await world.cluster.get(PROVISIONING_REQUESTS, "train"))["status"]["conditions"]
        assert "PodTemplate train not found" in found[-1]["message"]
        assert found[-1]["reason"] == "PodTemplateNotFound"
        await world.cluster.pass_time(900)
        assert not await world.instances()
