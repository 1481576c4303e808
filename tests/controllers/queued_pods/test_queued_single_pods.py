"""A single pod: it is held by its gate, runs when its Workload is admitted, and is stopped when that is evicted."""

from __future__ import annotations

from pathlib import Path

from build.queued_pod_scenarios import queued_pod_scenario
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import WORKLOAD_PRIORITY_CLASSES, WORKLOADS
from shoal.client.kind import PODS
from shoal.client.port import Deletion


@virtual
async def test_a_pod_becomes_a_workload_of_its_queue(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        pod = await scenario.pod("train")
        await scenario.cluster.pass_time(1)
        workload = await scenario.workload()
        meta, spec = workload["metadata"], workload["spec"]
        assert meta["name"].startswith("pod-train-")
        assert meta["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
        assert meta["ownerReferences"][0]["controller"] is True
        assert meta["labels"] == {"kueue.x-k8s.io/job-uid": pod["metadata"]["uid"]}
        assert meta["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]
        assert spec["queueName"] == "team"
        assert [(one["name"], one["count"]) for one in spec["podSets"]] == [("main", 1)]
        template = spec["podSets"][0]["template"]["spec"]
        assert "schedulingGates" not in template
        assert template["containers"][0]["resources"]["requests"] == {"cpu": "1"}
        assert await scenario.held() == {"train"}
        assert await scenario.reasons("train") == ["CreatedWorkload"]


@virtual
async def test_admission_removes_the_gate_and_injects_the_flavor(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("train", nodeSelector={"zone": "a"})
        await scenario.cluster.pass_time(1)
        workload = await scenario.workload()
        await scenario.admit(workload, "spot")
        pod = await scenario.cluster.get(PODS, "train")
        assert "schedulingGates" not in pod["spec"]
        assert pod["spec"]["nodeSelector"] == {"pool": "spot", "zone": "a"}
        assert {"key": "spot", "operator": "Exists"} in pod["spec"]["tolerations"]
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"
        assert pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == workload["metadata"]["name"]
        assert "Started" in await scenario.reasons("train")


@virtual
async def test_an_admission_that_names_an_unknown_flavor_keeps_the_gate(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("train")
        await scenario.cluster.pass_time(1)
        await scenario.admit(await scenario.workload(), "none-such")
        assert await scenario.held() == {"train"}


@virtual
async def test_a_finished_pod_finishes_its_workload_and_loses_its_finalizer(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("good")
        await scenario.cluster.pass_time(1)
        await scenario.admit(await scenario.workload())
        await scenario.bind("good")
        await scenario.cluster.pass_time(1)
        assert (await scenario.conditions())["PodsReady"] == ("True", "Started")
        await scenario.phase("Succeeded", "good")
        await scenario.cluster.pass_time(2)
        assert (await scenario.conditions())["Finished"] == ("True", "Succeeded")
        assert "finalizers" not in (await scenario.cluster.get(PODS, "good"))["metadata"]
        assert "finalizers" not in (await scenario.workload())["metadata"]
        assert "FinishedWorkload" in await scenario.reasons("good")


@virtual
async def test_a_failed_pod_is_a_failed_workload(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("bad")
        await scenario.cluster.pass_time(1)
        await scenario.admit(await scenario.workload())
        await scenario.bind("bad")
        await scenario.phase("Failed", "bad")
        await scenario.cluster.pass_time(2)
        assert (await scenario.conditions())["Finished"] == ("True", "Failed")


@virtual
async def test_an_evicted_pod_is_stopped_with_the_reason(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("victim")
        await scenario.cluster.pass_time(1)
        workload = await scenario.workload()
        await scenario.admit(workload)
        await scenario.bind("victim")
        await scenario.evict(workload)
        pod = await scenario.cluster.get(PODS, "victim")
        conditions = {one["type"]: one for one in pod["status"]["conditions"]}
        assert conditions["TerminationTarget"]["reason"] == "WorkloadEvicted"
        assert conditions["TerminationTarget"]["message"] == "Preempted to make room"
        # It may hold its room until it is gone, and so does the workload.
        assert (await scenario.conditions())["QuotaReserved"][0] == "True"
        await scenario.cluster.delete(PODS, "victim", Deletion(grace_s=0))
        await scenario.cluster.pass_time(2)
        assert await scenario.names() == set()
        assert await scenario.workloads() == []


@virtual
async def test_a_pod_evicted_before_it_was_ungated_is_requeued(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("early")
        await scenario.cluster.pass_time(1)
        workload = await scenario.workload()
        admission = {"admission": {"clusterQueue": "shared", "podSetAssignments": [{"name": "main"}]}}
        await scenario.say(workload, admission, ("QuotaReserved", "True", "QuotaReserved", ""))
        await scenario.evict(workload)
        conditions = await scenario.conditions()
        assert conditions["QuotaReserved"] == ("False", "PendingEvaluation")
        assert conditions["Requeued"] == ("True", "Preempted")
        assert "admission" not in (await scenario.workload())["status"]
        assert await scenario.held() == {"early"}


@virtual
async def test_a_pod_that_runs_without_an_admission_is_stopped(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("sly")
        await scenario.cluster.pass_time(1)
        await scenario.cluster.patch(PODS, "sly", {"spec": {"schedulingGates": None}})
        await scenario.cluster.pass_time(2)
        assert "sly" not in await scenario.names()


@virtual
async def test_deleting_a_held_pod_deletes_its_workload(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("brief")
        await scenario.cluster.pass_time(1)
        await scenario.cluster.delete(PODS, "brief")
        await scenario.cluster.pass_time(2)
        assert await scenario.names() == set()
        assert await scenario.workloads() == []


@virtual
async def test_deleting_the_workload_stops_its_pod(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("train")
        await scenario.cluster.pass_time(1)
        workload = await scenario.workload()
        await scenario.admit(workload)
        await scenario.cluster.delete(WORKLOADS, workload["metadata"]["name"])
        await scenario.cluster.pass_time(2)
        assert await scenario.names() == set()
        assert await scenario.workloads() == []


@virtual
async def test_the_priority_is_that_of_the_class_on_the_label(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        label = {"kueue.x-k8s.io/priority-class": "high"}
        await scenario.pod("train", labels=label)
        await scenario.cluster.pass_time(1)
        assert await scenario.workloads() == []
        assert await scenario.reasons("train") == ["WorkloadPriorityClassNotFound"]
        await scenario.cluster.create(WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        await scenario.cluster.pass_time(1)
        spec = (await scenario.workload())["spec"]
        assert spec["priority"] == 1000
        assert spec["priorityClassRef"]["name"] == "high"


@virtual
async def test_a_pod_that_was_not_held_is_not_queued(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        containers = [{"name": "main", "image": "busybox"}]
        await scenario.cluster.create(PODS, {"metadata": {"name": "free"}, "spec": {"containers": containers}})
        await scenario.cluster.pass_time(2)
        assert await scenario.workloads() == []
        assert await scenario.names() == {"free"}


@virtual
async def test_a_pod_that_conflicts_with_its_admission_is_finished_before_it_starts(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("train", nodeSelector={"pool": "own"})
        await scenario.cluster.pass_time(1)
        await scenario.admit(await scenario.workload(), "spot")
        assert (await scenario.conditions())["Finished"] == ("True", "FailedToStart")
        assert await scenario.held() == {"train"}


@virtual
async def test_an_invalid_topology_request_of_a_pod_is_reported(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        notes = {
            "kueue.x-k8s.io/podset-slice-required-topology": "rack",
            "kueue.x-k8s.io/podset-slice-size": "four",
        }
        await scenario.pod("odd", notes=notes)
        await scenario.cluster.pass_time(5)
        assert await scenario.workloads() == []
        assert await scenario.reasons("odd") == ["ErrWorkloadCompose"]
        (event,) = await scenario.cluster.events("odd")
        assert "slice-size" in event["message"]
        assert await scenario.held() == {"odd"}
