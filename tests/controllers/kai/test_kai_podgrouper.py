"""Pods that name KAI's scheduler get the PodGroups that KAI would write for their owners, and go by them."""

from __future__ import annotations

from pathlib import Path

from build.kai_clusters import add_kai_itself, add_kai_queue, add_work, bound, kai_cluster, start_kai, terminating
from build.kai_owners import (
    QUEUED,
    add_deployment,
    add_job,
    add_owned,
    add_pods_of_pytorch,
    add_pytorch_job,
    kai_pod,
)
from build.live_schedulers import add_node, condition
from build.odd_faults import odd
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.client.kind import JOBS, PODS
from shoal.client.port import Deletion


@virtual
async def test_a_pytorch_job_is_one_gang_of_master_and_workers_in_the_queue_of_its_label(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path, "kubeflow") as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=3)
        await add_kai_queue(cluster, "team", 8)
        made = await add_pytorch_job(cluster, "train", 3, labels=QUEUED)
        await add_pods_of_pytorch(cluster, made, "worker", 3)
        await add_pods_of_pytorch(cluster, made, "master", 1)
        await cluster.pass_time(10)
        assert await bound(cluster) == []
        (group,) = await cluster.all(KAI_POD_GROUPS)
        assert group["metadata"]["name"] == f"pg-train-{made['metadata']['uid']}"
        (owner,) = group["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("PyTorchJob", "train")
        spec = group["spec"]
        assert (spec["minMember"], spec["queue"], spec["priorityClassName"]) == (4, "team", "train")
        parts = [(part["name"], part["minMember"]) for part in spec["subGroups"]]
        assert parts == [("master", 1), ("worker", 3)]
        for name, part in (("train-master-0", "master"), ("train-worker-2", "worker")):
            meta = (await cluster.get(PODS, name))["metadata"]
            assert meta["annotations"]["pod-group-name"] == group["metadata"]["name"]
            assert meta["labels"]["kai.scheduler/subgroup-name"] == part
        await add_node(cluster, "n2", gpus=1)
        await cluster.pass_time(10)
        assert len(await bound(cluster)) == 4


@virtual
async def test_until_its_operator_has_made_all_of_a_gang_none_of_it_starts(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path, "kubeflow") as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=8)
        await add_kai_queue(cluster, "team", 8)
        made = await add_pytorch_job(cluster, "train", 3, labels=QUEUED)
        await add_pods_of_pytorch(cluster, made, "worker", 3)
        await cluster.pass_time(10)
        assert await bound(cluster) == []
        status = (await cluster.all(KAI_POD_GROUPS))[0]["status"]
        assert status["schedulingConditions"][0]["reason"] == "NotReady"
        await add_pods_of_pytorch(cluster, made, "master", 1)
        await cluster.pass_time(10)
        assert len(await bound(cluster)) == 4
        # Who comes on top stands for itself.
        await add_owned(cluster, made, "train-worker-3", {"training.kubeflow.org/replica-type": "worker"})
        await cluster.pass_time(5)
        assert len(await bound(cluster)) == 5


@virtual
async def test_a_job_starts_pod_by_pod_and_one_that_says_its_least_together(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "team", 8)
        least = {"kai.scheduler/batch-min-member": "3"}
        for name, notes in (("whole", least), ("loose", {})):
            made = await add_job(cluster, name, labels=QUEUED, annotations=notes)
            for index in range(3):
                await add_owned(cluster, made, f"{name}-{index}")
        await cluster.pass_time(10)
        assert await bound(cluster) == ["loose-0", "loose-1"]
        groups = {one["spec"]["minMember"]: one["status"] for one in await cluster.all(KAI_POD_GROUPS)}
        assert (groups[1]["pending"], groups[3]["pending"]) == (3, 3)
        assert groups[3]["schedulingConditions"][0]["reason"] == "PodSchedulingErrors"


@virtual
async def test_a_group_goes_by_the_priority_of_its_kind_where_nobody_names_one(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=1)
        await add_kai_queue(cluster, "team", 1)
        await add_owned(cluster, await add_job(cluster, "training", labels=QUEUED), "training-0")
        await cluster.pass_time(5)
        assert await bound(cluster) == ["training-0"]
        deployment = await add_deployment(cluster, "serving", labels=QUEUED)
        await add_owned(cluster, deployment, "serving-0")
        await add_owned(cluster, await add_job(cluster, "other", labels=QUEUED), "other-0")
        await cluster.pass_time(5)
        # Inference goes before training, and never yields.
        assert await terminating(cluster) == ["training-0"]
        await cluster.delete(PODS, "training-0", Deletion(grace_s=0))
        await cluster.pass_time(5)
        assert await bound(cluster) == ["serving-0"]
        queue = (await cluster.get(KAI_QUEUES, "team"))["status"]
        assert queue["allocatedNonPreemptible"]["nvidia.com/gpu"] == "1"


@virtual
async def test_pods_of_an_owner_that_is_wrong_say_so_and_start_when_it_is_mended(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "team", 8)
        made = await add_job(cluster, "odd", labels=QUEUED, annotations={"kai.scheduler/batch-min-member": "many"})
        await add_owned(cluster, made, "odd-0")
        await cluster.pass_time(5)
        said = await condition(cluster, "odd-0")
        assert "many is not a whole number above zero" in said["message"].replace("'", "").replace('"', "")
        (event,) = [one for one in await cluster.events("odd-0") if one["reason"] == "PodGrouperWarning"]
        assert event["message"] == said["message"]
        assert await cluster.all(KAI_POD_GROUPS) == []
        await cluster.patch(JOBS, "odd", {"metadata": {"annotations": {"kai.scheduler/batch-min-member": "1"}}})
        await cluster.pass_time(60)
        assert await bound(cluster) == ["odd-0"]


@virtual
async def test_pods_without_a_queue_do_not_wait_for_the_one_that_an_installation_brings(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_owned(cluster, None, "free")
        await add_owned(cluster, None, "waits", {"kai.scheduler/queue": "nosuch"})
        await cluster.pass_time(10)
        assert await bound(cluster) == ["free"]
        await add_kai_queue(cluster, "default-queue", 0, limit=0)
        await add_owned(cluster, None, "late")
        await cluster.pass_time(10)
        assert await bound(cluster) == ["free"]


@virtual
async def test_whoever_names_a_group_or_another_scheduler_is_left_alone(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "team", 8)
        await cluster.create(KAI_POD_GROUPS, {"metadata": {"name": "mine"}, "spec": {"queue": "team", "minMember": 1}})
        body = kai_pod("named", QUEUED)
        body["metadata"]["annotations"] = {"pod-group-name": "mine"}
        await cluster.create(PODS, body)
        await cluster.create(PODS, kai_pod("shoals", QUEUED, schedulerName="shoal"))
        await cluster.pass_time(10)
        assert await bound(cluster) == ["named", "shoals"]
        assert [one["metadata"]["name"] for one in await cluster.all(KAI_POD_GROUPS)] == ["mine"]


@virtual
async def test_where_kai_itself_runs_its_own_podgrouper_writes_and_what_waited_is_left_to_it(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster, asks_for_kai=True)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "team", 8)
        made = await add_job(cluster, "odd", labels=QUEUED, annotations={"kai.scheduler/batch-min-member": "many"})
        await add_owned(cluster, made, "odd-0")
        await cluster.pass_time(5)
        await add_kai_itself(cluster)
        await cluster.pass_time(30)
        await cluster.patch(JOBS, "odd", {"metadata": {"annotations": {"kai.scheduler/batch-min-member": "1"}}})
        await add_owned(cluster, None, "alone", QUEUED)
        await cluster.pass_time(60)
        assert await cluster.all(KAI_POD_GROUPS) == []


@virtual
async def test_a_pod_whose_owner_is_not_there_waits_and_says_so_also_after_something_broke(
    tmp_path: Path,
) -> None:
    async with kai_cluster(tmp_path) as cluster:
        desked = start_kai(cluster)
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "team", 8)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "gone", "uid": "of-before"}}
        await add_owned(cluster, owner, "left", QUEUED)
        await cluster.pass_time(60)
        assert (await condition(cluster, "left"))["message"] == "owner Job 'gone' not found"
        fault = odd(desked.discipline._members, "translated", {0}, after=True)
        await add_work(cluster, "other", "team")
        await cluster.pass_time(5)
        assert fault.calls
        assert await bound(cluster) == ["other"]
