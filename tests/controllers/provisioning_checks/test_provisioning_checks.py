"""Capacity is requested for queued jobs, through the API server, the queues and the simulated cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.scaled_clusters import GPU, ScaledCluster, scaled_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    PROVISIONING_CONFIGS,
    PROVISIONING_REQUESTS,
    RESOURCE_FLAVORS,
    WORKLOADS,
)
from shoal.client.item import Obj
from shoal.client.kind import JOBS, POD_TEMPLATES
from shoal.controllers.provisioning_checks.request_objects import request_name

_GROUPS = ("karpenter.sh", "scheduling.x-k8s.io", "autoscaling.x-k8s.io", "kueue.x-k8s.io")
_CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


async def _queue(world: ScaledCluster, **config: Any) -> None:
    """A queue for 64 GPUs that requires provisioned capacity."""
    create = world.cluster.create
    spec: Obj = {"provisioningClassName": _CLASS, "managedResources": [GPU], **config}
    await create(PROVISIONING_CONFIGS, {"metadata": {"name": "atomic"}, "spec": spec})
    reference = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "atomic"}
    check = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": reference}
    await create(ADMISSION_CHECKS, {"metadata": {"name": "capacity"}, "spec": check})
    await create(RESOURCE_FLAVORS, {"metadata": {"name": "gpu"}, "spec": {}})
    quotas = [{"name": "cpu", "nominalQuota": "1000"}, {"name": GPU, "nominalQuota": "64"}]
    flavors = [{"name": "gpu", "resources": quotas}]
    queue = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu", GPU], "flavors": flavors}],
        "admissionChecksStrategy": {"admissionChecks": [{"name": "capacity"}]},
    }
    await create(CLUSTER_QUEUES, {"metadata": {"name": "all"}, "spec": queue})
    await create(LOCAL_QUEUES, {"metadata": {"name": "team"}, "spec": {"clusterQueue": "all"}})


async def _job(world: ScaledCluster, name: str, pods: int, gpus: int = 8) -> None:
    limits = {"cpu": "1", **({GPU: str(gpus)} if gpus else {})}
    container = {"name": "main", "image": "trainer", "resources": {"limits": limits}}
    pod = {"schedulerName": "shoal", "restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"annotations": {"shoal.dev/run-for": "100h"}}, "spec": pod}
    meta = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "team"}}
    spec = {"suspend": True, "parallelism": pods, "completions": pods, "template": template}
    await world.cluster.create(JOBS, {"metadata": meta, "spec": spec})


async def _check(world: ScaledCluster) -> Obj:
    workloads = await world.cluster.all(WORKLOADS)
    checks = (workloads[0].get("status") or {}).get("admissionChecks") or [{}] if workloads else [{}]
    return dict(checks[0])


@virtual
async def test_a_queued_job_starts_once_nodes_are_granted_for_all_its_pods(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS, parts=("scheduler", "queues", "jobs")) as world:
        await world.add_pool()
        await _queue(world)
        await _job(world, "train", 2)
        await world.until_running("train", 2, within_s=180)
        request = (await world.cluster.all(PROVISIONING_REQUESTS))[0]
        assert request["spec"]["podSets"][0]["count"] == 2
        assert (await _check(world))["state"] == "Ready"
        assert len(await world.instances()) == 2
        assert len(world.cloud.requests) == 1, "the pods use the nodes of the request"
        pods = [pod for pod in await world.cluster.pods() if pod["metadata"]["name"].startswith("train")]
        notes = {pod["metadata"]["annotations"]["autoscaling.x-k8s.io/consume-provisioning-request"] for pod in pods}
        assert notes == {request["metadata"]["name"]}


@virtual
async def test_a_job_without_managed_resources_needs_no_request(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS, parts=("scheduler", "queues", "jobs")) as world:
        await world.add_pool(limits={"nodes": "0"})
        await _queue(world)
        await _job(world, "plain", 1, gpus=0)

        async def is_ready() -> bool:
            return (await _check(world)).get("state") == "Ready"

        await world.until(is_ready, 60)
        assert not await world.cluster.all(PROVISIONING_REQUESTS)


@virtual
async def test_a_request_that_fails_is_repeated_and_the_workload_is_given_up_in_the_end(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS, parts=("scheduler", "queues", "jobs")) as world:
        await world.add_pool(limits={"nodes": "1"})
        retry = {"backoffLimitCount": 1, "backoffBaseSeconds": 5, "backoffMaxSeconds": 10}
        await _queue(world, retryStrategy=retry, parameters={"noRetry": "true"})
        await _job(world, "train", 2)

        async def is_deactivated() -> bool:
            workloads = await world.cluster.all(WORKLOADS)
            return bool(workloads) and workloads[0]["spec"].get("active") is False

        await world.until(is_deactivated, 120)
        assert not world.cloud.requests
        assert (await world.running("train")) == 0


@virtual
async def test_a_check_without_its_configuration_is_not_active(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS, parts=("scheduler", "queues", "jobs")) as world:
        await _queue(world)
        await world.cluster.delete(PROVISIONING_CONFIGS, "atomic")

        async def is_inactive() -> bool:
            found = await world.cluster.get(ADMISSION_CHECKS, "capacity")
            states = (found.get("status") or {}).get("conditions") or [{}]
            return bool(states[0].get("reason") == "BadParametersRef")

        await world.until(is_inactive, 30)


_PARTS = ("scheduler", "queues", "jobs")


async def _first_request(world: ScaledCluster) -> Obj:
    async def is_there() -> bool:
        return bool(await world.cluster.all(PROVISIONING_REQUESTS))

    await world.until(is_there, 60)
    return (await world.cluster.all(PROVISIONING_REQUESTS))[0]


@virtual
async def test_a_request_after_a_change_of_flavors_has_the_selectors_of_the_new_flavor(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS, parts=_PARTS) as world:
        await world.add_pool(limits={"nodes": "1"})
        await _queue(world)
        await world.cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "b"}, "spec": {"nodeLabels": {"tier": "b"}}})
        await _job(world, "train", 2)
        await _first_request(world)
        await world.cluster.patch(CLUSTER_QUEUES, "all", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await world.cluster.pass_time(10)
        assert not await world.cluster.all(PROVISIONING_REQUESTS)
        quotas = [{"name": "cpu", "nominalQuota": "1000"}, {"name": GPU, "nominalQuota": "64"}]
        groups = [{"coveredResources": ["cpu", GPU], "flavors": [{"name": "b", "resources": quotas}]}]
        await world.cluster.patch(CLUSTER_QUEUES, "all", {"spec": {"stopPolicy": "None", "resourceGroups": groups}})
        request = await _first_request(world)
        name = request["spec"]["podSets"][0]["podTemplateRef"]["name"]
        template = await world.cluster.get(POD_TEMPLATES, name)
        assert template["template"]["spec"].get("nodeSelector") == {"tier": "b"}


@virtual
async def test_a_workload_does_not_use_the_request_of_one_that_had_its_name(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS, parts=_PARTS) as world:
        await world.add_pool(limits={"nodes": "1"})
        await _queue(world)
        await _job(world, "train", 2)
        old = await _first_request(world)
        workload = (await world.cluster.all(WORKLOADS))[0]["metadata"]
        orphan = {"metadata": {"ownerReferences": None}}
        await world.cluster.patch(PROVISIONING_REQUESTS, old["metadata"]["name"], orphan)
        await world.cluster.delete(WORKLOADS, workload["name"])

        async def has_another() -> bool:
            requests = await world.cluster.all(PROVISIONING_REQUESTS)
            owners = [owner["uid"] for each in requests for owner in each["metadata"].get("ownerReferences") or ()]
            found = await world.cluster.all(WORKLOADS)
            return bool(found) and owners == [found[0]["metadata"]["uid"]]

        await world.until(has_another, 60)
        assert (await world.cluster.all(WORKLOADS))[0]["metadata"]["uid"] != workload["uid"]


@virtual
async def test_a_request_of_another_owner_makes_no_check_ready(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, groups=_GROUPS, parts=_PARTS) as world:
        await world.add_pool(limits={"nodes": "1"})
        await _queue(world)
        await _job(world, "train", 2)
        name = (await _first_request(world))["metadata"]["name"]
        await world.cluster.patch(PROVISIONING_REQUESTS, name, {"metadata": {"ownerReferences": None}})
        granted = {"type": "Provisioned", "status": "True", "reason": "Given", "message": "here it is"}
        await world.cluster.patch(PROVISIONING_REQUESTS, name, {"status": {"conditions": [granted]}}, "status")
        await world.cluster.pass_time(20)
        found = await _check(world)
        assert found["state"] == "Pending"
        assert f"ProvisioningRequest {name} does not belong to this Workload" in found["message"]


def test_no_two_workloads_and_checks_have_one_name_of_a_request() -> None:
    names = {request_name(*each) for each in (("a-b", "1", "c", 1), ("a", "2", "b-c", 1), ("a", "3", "b-c", 1))}
    assert len(names) == 3
    assert len(request_name("w" * 250, "1", "check", 1)) <= 253
