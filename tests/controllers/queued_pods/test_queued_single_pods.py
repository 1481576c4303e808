"""A single pod: it is held by its gate, runs when its Workload is admitted, and is stopped when that is evicted."""

from __future__ import annotations

from pathlib import Path

from build.queued_scenes import queued_scene
from build.virtual_time import virtual
from shoal.store.live.ecosystem_kinds import WORKLOAD_PRIORITY_CLASSES, WORKLOADS
from shoal.store.live.kind import PODS
from shoal.store.live.port import Deletion


@virtual
async def test_a_pod_becomes_a_workload_of_its_queue(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        pod = await scene.pod("train")
        await scene.cluster.pass_time(1)
        workload = await scene.workload()
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
        assert await scene.held() == {"train"}
        assert await scene.reasons("train") == ["CreatedWorkload"]


@virtual
async def test_admission_removes_the_gate_and_injects_the_flavor(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await scene.pod("train", nodeSelector={"zone": "a"})
        await scene.cluster.pass_time(1)
        workload = await scene.workload()
        await scene.admit(workload, "spot")
        pod = await scene.cluster.get(PODS, "train")
        assert "schedulingGates" not in pod["spec"]
        assert pod["spec"]["nodeSelector"] == {"pool": "spot", "zone": "a"}
        assert {"key": "spot", "operator": "Exists"} in pod["spec"]["tolerations"]
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"
        assert pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == workload["metadata"]["name"]
        assert "Started" in await scene.reasons("train")


@virtual
async def test_an_admission_that_names_an_unknown_flavor_keeps_the_gate(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await scene.pod("train")
        await scene.cluster.pass_time(1)
        await scene.admit(await scene.workload(), "none-such")
        assert await scene.held() == {"train"}


@virtual
async def test_a_finished_pod_finishes_its_workload_and_loses_its_finalizer(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await scene.pod("good")
        await scene.cluster.pass_time(1)
        await scene.admit(await scene.workload())
        await scene.bind("good")
        await scene.cluster.pass_time(1)
        assert (await scene.conditions())["PodsReady"] == ("True", "Started")
        await scene.phase("Succeeded", "good")
        await scene.cluster.pass_time(2)
        assert (await scene.conditions())["Finished"] == ("True", "Succeeded")
        assert "finalizers" not in (await scene.cluster.get(PODS, "good"))["metadata"]
        assert "finalizers" not in (await scene.workload())["metadata"]
        assert "FinishedWorkload" in await scene.reasons("good")


@virtual
async def test_a_failed_pod_is_a_failed_workload(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await scene.pod("bad")
        await scene.cluster.pass_time(1)
        await scene.admit(await scene.workload())
        await scene.bind("bad")
        await scene.phase("Failed", "bad")
        await scene.cluster.pass_time(2)
        assert (await scene.conditions())["Finished"] == ("True", "Failed")


@virtual
async def test_an_evicted_pod_is_stopped_with_the_reason(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await scene.pod("victim")
        await scene.cluster.pass_time(1)
        workload = await scene.workload()
        await scene.admit(workload)
        await scene.bind("victim")
        await scene.evict(workload)
        pod = await scene.cluster.get(PODS, "victim")
        conditions = {one["type"]: one for one in pod["status"]["conditions"]}
        assert conditions["TerminationTarget"]["reason"] == "WorkloadEvicted"
        assert conditions["TerminationTarget"]["message"] == "Preempted to make room"
        # It may hold its room until it is gone, and so does the workload.
        assert (await scene.conditions())["QuotaReserved"][0] == "True"
        await scene.cluster.delete(PODS, "victim", Deletion(grace_s=0))
        await scene.cluster.pass_time(2)
        assert await scene.names() == set()
        assert await scene.workloads() == []


@virtual
async def test_a_pod_evicted_before_it_was_ungated_is_requeued(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await scene.pod("early")
        await scene.cluster.pass_time(1)
        workload = await scene.workload()
        admission = {"admission": {"clusterQueue": "shared", "podSetAssignments": [{"name": "main"}]}}
        await scene.say(workload, admission, ("QuotaReserved", "True", "QuotaReserved", ""))
        await scene.evict(workload)
        conditions = await scene.conditions()
        assert conditions["QuotaReserved"] == ("False", "PendingEvaluation")
        assert conditions["Requeued"] == ("True", "Preempted")
        assert "admission" not in (await scene.workload())["status"]
        assert await scene.held() == {"early"}


@virtual
async def test_a_pod_that_runs_without_an_admission_is_stopped(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await scene.pod("sly")
        await scene.cluster.pass_time(1)
        await scene.cluster.patch(PODS, "sly", {"spec": {"schedulingGates": None}})
        await scene.cluster.pass_time(2)
        assert "sly" not in await scene.names()


@virtual
async def test_deleting_a_held_pod_deletes_its_workload(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await scene.pod("brief")
        await scene.cluster.pass_time(1)
        await scene.cluster.delete(PODS, "brief")
        await scene.cluster.pass_time(2)
        assert await scene.names() == set()
        assert await scene.workloads() == []


@virtual
async def test_deleting_the_workload_stops_its_pod(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await scene.pod("train")
        await scene.cluster.pass_time(1)
        workload = await scene.workload()
        await scene.admit(workload)
        await scene.cluster.delete(WORKLOADS, workload["metadata"]["name"])
        await scene.cluster.pass_time(2)
        assert await scene.names() == set()
        assert await scene.workloads() == []


@virtual
async def test_the_priority_is_that_of_the_class_on_the_label(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        label = {"kueue.x-k8s.io/priority-class": "high"}
        await scene.pod("train", labels=label)
        await scene.cluster.pass_time(1)
        assert await scene.workloads() == []
        assert await scene.reasons("train") == ["WorkloadPriorityClassNotFound"]
        await scene.cluster.create(WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        await scene.cluster.pass_time(1)
        spec = (await scene.workload())["spec"]
        assert spec["priority"] == 1000
        assert spec["priorityClassRef"]["name"] == "high"


@virtual
async def test_a_pod_that_was_not_held_is_not_queued(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        containers = [{"name": "main", "image": "busybox"}]
        await scene.cluster.create(PODS, {"metadata": {"name": "free"}, "spec": {"containers": containers}})
        await scene.cluster.pass_time(2)
        assert await scene.workloads() == []
        assert await scene.names() == {"free"}


@virtual
async def test_a_pod_that_conflicts_with_its_admission_is_finished_before_it_starts(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        await scene.pod("train", nodeSelector={"pool": "own"})
        await scene.cluster.pass_time(1)
        await scene.admit(await scene.workload(), "spot")
        assert (await scene.conditions())["Finished"] == ("True", "FailedToStart")
        assert await scene.held() == {"train"}


@virtual
async def test_an_invalid_topology_request_of_a_pod_is_reported(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        notes = {
            "kueue.x-k8s.io/podset-slice-required-topology": "rack",
            "kueue.x-k8s.io/podset-slice-size": "four",
        }
        await scene.pod("odd", notes=notes)
        await scene.cluster.pass_time(5)
        assert await scene.workloads() == []
        assert await scene.reasons("odd") == ["ErrWorkloadCompose"]
        (event,) = await scene.cluster.events("odd")
        assert "slice-size" in event["message"]
        assert await scene.held() == {"odd"}
