"""A batch Job from its creation in a queue to its end, with the real job controller."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from build.fake_admission import (
    FLAVOR,
    QUEUE,
    TOLERATION,
    FakeAdmission,
    condition,
    furnish,
    queue_cluster,
    reasons,
    said,
    until_field,
)
from build.job_hands import Hand, job
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import WORKLOAD_PRIORITY_CLASSES, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import JOBS, NAMESPACES, PRIORITY_CLASSES
from shoal.client.served import Served
from shoal.controllers.queued_jobs.controller import queued_jobs_controller
from shoal.controllers.queued_work.rules import JobRules


def queued(name: str = "train", *, labels: Obj | None = None, **spec: Any) -> Obj:
    made = job(name, **({"suspend": True, "parallelism": 3, "completions": 3} | spec))
    made["metadata"]["labels"] = QUEUE | (labels or {})
    return made


async def _admitted(cluster: SmallCluster, admission: FakeAdmission, **more: Any) -> str:
    name: str = (await admission.only())["metadata"]["name"]
    await admission.admit(name, **more)
    await until_field(cluster, JOBS, "train", ("spec", "suspend"), False)
    return name


@virtual
async def test_a_suspended_job_in_a_queue_gets_a_workload_as_kueue_makes_it(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        made = await cluster.create(JOBS, queued(labels={"kueue.x-k8s.io/max-exec-time-seconds": "60"}))
        workload = await FakeAdmission(cluster).only()
        meta, spec = workload["metadata"], workload["spec"]
        assert meta["name"].startswith("job-train-")
        assert len(meta["name"]) == len("job-train-") + 5
        assert meta["labels"] == {"kueue.x-k8s.io/job-uid": made["metadata"]["uid"]}
        assert meta["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]
        assert meta["ownerReferences"] == [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "train",
                "uid": made["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert (spec["queueName"], spec["priority"], spec["maximumExecutionTimeSeconds"]) == ("team", 0, 60)
        (main,) = spec["podSets"]
        assert (main["name"], main["count"], main["template"]) == ("main", 3, made["spec"]["template"])
        assert await said(cluster, "train", "CreatedWorkload") == f"Created Workload: default/{meta['name']}"


@virtual
async def test_an_admitted_job_runs_on_nodes_of_its_flavor_and_names_its_workload(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        await cluster.create(JOBS, queued())
        name = await _admitted(cluster, admission)
        await hand.until_live(3)
        for pod in await hand.live():
            assert pod["spec"]["nodeSelector"] == FLAVOR
            assert TOLERATION in pod["spec"]["tolerations"]
            assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"
            assert pod["metadata"]["labels"]["kueue.x-k8s.io/cluster-queue-name"] == "cq"
            assert pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == name
        assert await said(cluster, "train", "Started") == "Admitted by clusterQueue cq"


@virtual
async def test_an_evicted_job_stops_is_restored_and_releases_its_quota(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        before = await cluster.create(JOBS, queued())
        name = await _admitted(cluster, admission)
        await hand.until_live(3)
        for pod in await hand.live():
            await hand.run(pod)
        await cluster.pass_time(10)
        await admission.evict(name)
        reserved = await admission.until(name, "QuotaReserved", "False")
        assert (reserved["reason"], reserved["message"]) == ("PendingEvaluation", "Preempted to accommodate x")
        workload = await cluster.get(WORKLOADS, name)
        assert "admission" not in workload["status"]
        admitted, requeued = condition(workload, "Admitted"), condition(workload, "Requeued")
        assert (admitted["status"], admitted["reason"]) == ("False", "NoReservation")
        assert admitted["message"] == "The workload has no reservation"
        assert (requeued["status"], requeued["reason"]) == ("True", "Preempted")
        assert workload["status"]["accumulatedPastExecutionTimeSeconds"] >= 10
        after = await cluster.get(JOBS, "train")
        assert after["spec"] == before["spec"]
        assert "annotations" not in after["metadata"] or after["metadata"]["annotations"] == {}
        assert await hand.live() == []
        assert await said(cluster, "train", "Stopped") == "Preempted to accommodate x"
        await admission.admit(name)
        await hand.until_live(3)


@virtual
async def test_quota_is_held_while_pods_of_an_evicted_job_still_run(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path, makes=()) as cluster:
        admission = FakeAdmission(cluster)
        await cluster.create(JOBS, queued())
        name = await _admitted(cluster, admission)
        await cluster.patch(JOBS, "train", {"status": {"active": 3, "ready": 3}}, "status")
        await admission.evict(name)
        await until_field(cluster, JOBS, "train", ("spec", "suspend"), True)
        await cluster.pass_time(60)
        assert condition(await cluster.get(WORKLOADS, name), "QuotaReserved")["status"] == "True"
        await cluster.patch(JOBS, "train", {"status": {"active": None, "ready": None}}, "status")
        await admission.until(name, "QuotaReserved", "False")


@virtual
async def test_a_stopped_job_is_restored_on_servers_that_keep_its_start_time(tmp_path: Path) -> None:
    """Up to Kubernetes 1.35 templates change only without the start, and the job controller leaves that."""
    async with queue_cluster(tmp_path, makes=()) as cluster:
        admission = FakeAdmission(cluster)
        before = await cluster.create(JOBS, queued())
        name = await _admitted(cluster, admission)
        now = cluster.clock.text()
        await cluster.patch(JOBS, "train", {"status": {"active": 3, "startTime": now}}, "status")
        await admission.evict(name)
        await until_field(cluster, JOBS, "train", ("spec", "suspend"), True)
        await cluster.pass_time(60)
        assert (await cluster.get(JOBS, "train"))["status"]["startTime"] == now
        stopped = {"type": "Suspended", "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
        await cluster.patch(JOBS, "train", {"status": {"active": None, "conditions": [stopped]}}, "status")
        await admission.until(name, "QuotaReserved", "False")
        after = await cluster.get(JOBS, "train")
        assert "startTime" not in after["status"]
        assert after["spec"] == before["spec"]


REQUEUED = {"Preempted": "True", "NodeFailures": "True", "PodsReadyTimeout": "False", "Deactivated": "False"}


@pytest.mark.parametrize(("reason", "status"), REQUEUED.items())
def test_which_evictions_requeue_at_once(tmp_path: Path, reason: str, status: str) -> None:
    @virtual
    async def run() -> None:
        async with queue_cluster(tmp_path) as cluster:
            admission = FakeAdmission(cluster)
            await cluster.create(JOBS, queued())
            name = await _admitted(cluster, admission)
            await admission.evict(name, reason)
            await admission.until(name, "QuotaReserved", "False")
            requeued = condition(await cluster.get(WORKLOADS, name), "Requeued")
            assert (requeued["status"], requeued["reason"]) == (status, reason)

    run()


@virtual
async def test_the_workload_of_a_job_that_ends_is_finished(tmp_path: Path) -> None:
    for code, reason in ((0, "Succeeded"), (1, "Failed")):
        async with queue_cluster(tmp_path / reason) as cluster:
            admission, hand = FakeAdmission(cluster), Hand(cluster)
            await cluster.create(JOBS, queued(parallelism=1, completions=1, backoffLimit=0))
            name = await _admitted(cluster, admission)
            await hand.until_live(1)
            for pod in await hand.live():
                await hand.end(pod, code)
            finished = await admission.until(name, "Finished", "True")
            assert finished["reason"] == reason
            assert finished["message"]
            await cluster.pass_time(5)
            assert "finalizers" not in (await cluster.get(WORKLOADS, name))["metadata"]
            words = f"Workload 'default/{name}' is declared finished"
            assert await said(cluster, "train", "FinishedWorkload") == words


@virtual
async def test_pods_that_will_not_be_replaced_free_quota(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        await cluster.create(JOBS, queued(completions=4))
        name = await _admitted(cluster, admission)
        await hand.until_live(3)
        for ended in (1, 2, 3):
            await hand.end((await hand.live())[0])
            await until_field(cluster, JOBS, "train", ("status", "succeeded"), ended)
            await cluster.pass_time(2)
            told = (await cluster.get(WORKLOADS, name))["status"].get("reclaimablePods")
            assert told == ([{"name": "main", "count": ended - 1}] if ended > 1 else None)


@virtual
async def test_pods_ready_has_the_reasons_of_kueue(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        await cluster.create(JOBS, queued(backoffLimit=10))
        name = (await admission.only())["metadata"]["name"]
        waits = await admission.until(name, "PodsReady", "False")
        assert (waits["reason"], waits["message"]) == ("WaitForStart", "Not all pods are ready or succeeded")
        await admission.admit(name)
        await hand.until_live(3)
        for pod in await hand.live():
            await hand.run(pod)
        ready = await admission.until(name, "PodsReady", "True")
        assert ready["reason"] == "Started"
        assert ready["message"] == "All pods reached readiness and the workload is running"
        await hand.end((await hand.live())[0], 1)
        lost = await admission.until(name, "PodsReady", "False")
        assert lost["reason"] == "WaitForRecovery"
        assert lost["message"] == "At least one pod has failed, waiting for recovery"

        async def is_back() -> bool:
            for pod in await hand.live():
                await hand.run(pod)
            return bool(condition(await cluster.get(WORKLOADS, name), "PodsReady")["reason"] == "Recovered")

        await cluster.until(is_back, within_s=120)


@virtual
async def test_pods_ready_is_not_written_if_the_configuration_does_not_use_it(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path, JobRules(reports_pods_ready=False)) as cluster:
        await cluster.create(JOBS, queued())
        await FakeAdmission(cluster).only()
        await cluster.pass_time(5)
        assert not condition(await FakeAdmission(cluster).only(), "PodsReady")


@virtual
async def test_a_job_created_without_suspend_is_stopped_and_queued(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, queued(suspend=False))
        workload = await FakeAdmission(cluster).only()
        found = await cluster.get(JOBS, "train")
        assert found["spec"]["suspend"] is True
        assert await hand.live() == []
        assert "Stopped" in await reasons(cluster, "train")
        assert workload["spec"]["podSets"][0]["template"] == found["spec"]["template"]


@virtual
async def test_a_job_started_by_hand_without_admission_is_stopped_again(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        await cluster.create(JOBS, queued())
        name = (await FakeAdmission(cluster).only())["metadata"]["name"]
        await cluster.patch(JOBS, "train", {"spec": {"suspend": False}})
        await until_field(cluster, JOBS, "train", ("spec", "suspend"), True)
        await cluster.pass_time(5)
        assert await said(cluster, "train", "Stopped") == "Not admitted by cluster queue"
        assert (await FakeAdmission(cluster).only())["metadata"]["name"] == name
        assert not (await cluster.get(JOBS, "train"))["metadata"].get("annotations")


@virtual
async def test_an_admitted_job_suspended_by_hand_is_resumed(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        await cluster.create(JOBS, queued())
        await _admitted(cluster, admission)
        await hand.until_live(3)
        await cluster.patch(JOBS, "train", {"spec": {"suspend": True}})
        await cluster.pass_time(10)
        assert (await cluster.get(JOBS, "train"))["spec"]["suspend"] is False
        await hand.until_live(3)


@virtual
async def test_a_changed_suspended_job_changes_its_workload(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission = FakeAdmission(cluster)
        await cluster.create(JOBS, queued())
        before = await admission.only()
        await cluster.patch(JOBS, "train", {"spec": {"parallelism": 2}})

        async def is_smaller() -> bool:
            return bool((await admission.only())["spec"]["podSets"][0]["count"] == 2)

        await cluster.until(is_smaller)
        assert (await admission.only())["metadata"]["uid"] == before["metadata"]["uid"]
        await cluster.patch(JOBS, "train", {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}})

        async def is_placed() -> bool:
            template = (await admission.only())["spec"]["podSets"][0]["template"]
            return bool(template["spec"].get("nodeSelector") == {"zone": "a"})

        await cluster.until(is_placed)
        assert "UpdatedWorkload" in await reasons(cluster, "train")


@virtual
async def test_a_changed_running_job_is_stopped_and_requeued(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        await cluster.create(JOBS, queued())
        await _admitted(cluster, admission)
        await hand.until_live(3)
        before = await admission.only()
        await cluster.patch(JOBS, "train", {"spec": {"parallelism": 2}})

        async def is_new() -> bool:
            each = [one for one in await cluster.all(WORKLOADS) if one["metadata"]["uid"] != before["metadata"]["uid"]]
            return len(each) == 1 and each[0]["spec"]["podSets"][0]["count"] == 2

        await cluster.until(is_new)
        after = await cluster.get(JOBS, "train")
        assert after["spec"]["suspend"] is True
        assert "nodeSelector" not in after["spec"]["template"]["spec"]
        assert "DeletedWorkload" in await reasons(cluster, "train")


@virtual
async def test_a_suspended_job_can_change_its_queue(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        await cluster.create(JOBS, queued())
        name = (await FakeAdmission(cluster).only())["metadata"]["name"]
        await cluster.patch(JOBS, "train", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}})
        await until_field(cluster, WORKLOADS, name, ("spec", "queueName"), "other")


@virtual
async def test_the_priority_is_that_of_the_jobs_class_or_of_its_pods_class(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        await cluster.create(WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
        await cluster.create(WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": "higher"}, "value": 200})
        await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "pods"}, "value": 7})
        await cluster.create(JOBS, queued("a", labels={"kueue.x-k8s.io/priority-class": "high"}))
        await cluster.create(JOBS, queued("b", template={"priorityClassName": "pods"}))
        await cluster.pass_time(2)
        found = {one["metadata"]["ownerReferences"][0]["name"]: one for one in await cluster.all(WORKLOADS)}
        group, kind = "kueue.x-k8s.io", "WorkloadPriorityClass"
        assert found["a"]["spec"]["priorityClassRef"] == {"group": group, "kind": kind, "name": "high"}
        assert (found["a"]["spec"]["priority"], found["b"]["spec"]["priority"]) == (100, 7)
        of_pods = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "pods"}
        assert found["b"]["spec"]["priorityClassRef"] == of_pods
        await cluster.patch(JOBS, "a", {"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "higher"}}})
        await until_field(cluster, WORKLOADS, found["a"]["metadata"]["name"], ("spec", "priority"), 200)


@virtual
async def test_a_missing_class_is_reported_and_the_job_waits_for_it(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        await cluster.create(JOBS, queued(labels={"kueue.x-k8s.io/priority-class": "late"}))
        await cluster.pass_time(2)
        assert await cluster.all(WORKLOADS) == []
        assert "WorkloadPriorityClassNotFound" in await reasons(cluster, "train")
        await cluster.create(WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": "late"}, "value": 3})
        await cluster.pass_time(60)
        assert (await FakeAdmission(cluster).only())["spec"]["priority"] == 3


@virtual
async def test_a_partially_admitted_job_starts_smaller_and_is_restored_afterwards(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        made = queued(parallelism=4, completions=4)
        made["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "2"}
        before = await cluster.create(JOBS, made)
        assert (await admission.only())["spec"]["podSets"][0]["minCount"] == 2
        name = await _admitted(cluster, admission, counts={"main": 2})
        await hand.until_live(2)
        await cluster.pass_time(5)
        assert (await cluster.get(JOBS, "train"))["spec"]["parallelism"] == 2
        assert (await admission.only())["metadata"]["name"] == name
        await admission.evict(name)
        await admission.until(name, "QuotaReserved", "False")
        after = await cluster.get(JOBS, "train")
        assert after["spec"] == before["spec"]
        assert after["metadata"]["annotations"] == before["metadata"]["annotations"]


@virtual
async def test_a_deleted_workload_stops_its_job_which_is_requeued(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        before = await cluster.create(JOBS, queued())
        name = await _admitted(cluster, admission)
        await hand.until_live(3)
        first = await cluster.get(WORKLOADS, name)
        await cluster.delete(WORKLOADS, name)

        async def is_new() -> bool:
            each = await cluster.all(WORKLOADS)
            return len(each) == 1 and each[0]["metadata"]["uid"] != first["metadata"]["uid"]

        await cluster.until(is_new)
        assert (await cluster.get(JOBS, "train"))["spec"] == before["spec"]


@virtual
async def test_the_workload_of_a_deleted_job_is_released(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        await cluster.create(JOBS, queued())
        name = (await FakeAdmission(cluster).only())["metadata"]["name"]
        await cluster.delete(JOBS, "train")

        async def is_free() -> bool:
            each = await cluster.all(WORKLOADS)
            return all("finalizers" not in one["metadata"] for one in each if one["metadata"]["name"] == name)

        await cluster.until(is_free)


@virtual
async def test_jobs_that_are_not_queued_stay_unchanged(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        await cluster.create(JOBS, job("free", parallelism=1))
        await cluster.create(NAMESPACES, {"metadata": {"name": "kueue-system"}})
        await cluster.create(JOBS, queued("system"), namespace="kueue-system")
        await cluster.pass_time(5)
        assert await cluster.all(WORKLOADS) == []
        assert not (await cluster.get(JOBS, "free"))["spec"].get("suspend")


@virtual
async def test_a_job_without_a_queue_is_held_if_the_configuration_manages_all_jobs(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path, JobRules(queues_everything=True)) as cluster:
        await cluster.create(JOBS, job("train", parallelism=1))
        assert (await FakeAdmission(cluster).only())["spec"]["queueName"] == ""
        assert (await cluster.get(JOBS, "train"))["spec"]["suspend"] is True


@virtual
async def test_a_queue_name_in_an_annotation_is_used_and_reported(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        await cluster.create(JOBS, job("train", annotations={"kueue.x-k8s.io/queue-name": "team"}))
        assert (await FakeAdmission(cluster).only())["spec"]["queueName"] == "team"
        assert "MisplacedQueueName" in await reasons(cluster, "train")


@virtual
async def test_a_template_that_conflicts_with_its_flavor_never_starts_and_is_reported(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission = FakeAdmission(cluster)
        await cluster.create(JOBS, queued(template={"nodeSelector": {"pool": "iron"}}))
        name = (await admission.only())["metadata"]["name"]
        await admission.admit(name)
        finished = await admission.until(name, "Finished", "True")
        assert finished["reason"] == "FailedToStart"
        assert "conflict for nodeSelector: conflict for key=pool, value1=iron, value2=gold" in finished["message"]
        assert (await cluster.get(JOBS, "train"))["spec"]["suspend"] is True


@virtual
async def test_an_unreadable_job_is_reported_and_delays_no_other(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        broken = queued("broken", suspend=False)
        broken["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "some"}
        await cluster.create(JOBS, broken)
        await cluster.create(JOBS, queued("fine"))
        assert (await FakeAdmission(cluster).only())["metadata"]["ownerReferences"][0]["name"] == "fine"
        await until_field(cluster, JOBS, "broken", ("spec", "suspend"), True)
        assert "ErrWorkloadCompose" in await reasons(cluster, "broken")


@virtual
async def test_a_job_whose_admission_is_removed_stops_and_is_restored(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        before = await cluster.create(JOBS, queued())
        name = await _admitted(cluster, admission)
        await hand.until_live(3)
        await admission.withdraw(name)
        await until_field(cluster, JOBS, "train", ("spec", "suspend"), True)
        await cluster.pass_time(5)
        after = await cluster.get(JOBS, "train")
        assert after["spec"] == before["spec"]
        assert not after["metadata"].get("annotations")
        assert (await admission.only())["spec"]["podSets"][0]["template"] == before["spec"]["template"]
        assert await said(cluster, "train", "Stopped") == "Not admitted by cluster queue"


@virtual
async def test_a_missing_queue_is_reported_on_the_job_once(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission = FakeAdmission(cluster)
        await cluster.create(JOBS, queued())
        name = (await admission.only())["metadata"]["name"]
        for _ in range(3):
            await admission.refuse(name, "Misconfigured", "LocalQueue team doesn't exist")
            await cluster.pass_time(2)
            await cluster.patch(JOBS, "train", {"metadata": {"annotations": {"touched": cluster.clock.text()}}})
            await cluster.pass_time(2)
        assert await said(cluster, "train", "Misconfigured") == "LocalQueue team doesn't exist"


@virtual
async def test_jobs_without_a_queue_are_not_decoded(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        await cluster.create(JOBS, job("free", annotations={"shoal.dev/run-for": "5s"}))
        await cluster.pass_time(3)
        assert set(await reasons(cluster, "free")) <= {"SuccessfulCreate"}


@virtual
async def test_a_restarted_controller_continues_with_the_kinds_that_it_knew(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await furnish(cluster)
        context = cluster.context("shoal-jobs")
        served = Served(context)
        controller = queued_jobs_controller(context, served)
        await served.look()
        for number in range(3):
            running = asyncio.ensure_future(controller.run())
            await cluster.create(JOBS, queued(f"train-{number}"))
            await cluster.until(lambda: _workloads(cluster, number + 1), 10)  # noqa: B023 - asked for within the turn
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def _workloads(cluster: SmallCluster, count: int) -> bool:
    return len(await cluster.all(WORKLOADS)) == count
