"""Volcano's jobs on a whole control plane: their pods, their group, and the course they take."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.virtual_time import virtual
from build.volcano_scenes import group_of, phases, running, submit, task, volcano_scene
from shoal.client.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS
from shoal.client.kind import PODS
from shoal.client.port import Deletion


@virtual
async def test_a_job_runs_its_pods_together_and_completes(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        made = await submit(scene, task("master", gpus=1), task("worker", 2, gpus=2))
        await scene.cluster.until(lambda: scene.job_is("train", "Running"))
        await scene.cluster.pass_time(2)
        pods = await scene.pods()
        assert set(pods) == {"train-master-0", "train-worker-0", "train-worker-1"}
        labels = pods["train-worker-1"]["metadata"]["labels"]
        assert labels["volcano.sh/job-name"] == "train"
        assert labels["volcano.sh/task-spec"] == "worker"
        assert labels["app"] == "x"
        notes = pods["train-worker-1"]["metadata"]["annotations"]
        assert notes["scheduling.k8s.io/group-name"] == f"train-{made['metadata']['uid']}"
        assert notes["volcano.sh/job-version"] == "0"
        assert pods["train-worker-1"]["spec"]["schedulerName"] == "volcano"
        found = await group_of(scene, made)
        assert found["spec"]["minMember"] == 3
        assert found["spec"]["minTaskMember"] == {"master": 1, "worker": 2}
        assert found["spec"]["minResources"]["nvidia.com/gpu"] == "5"
        assert found["status"]["phase"] == "Running"
        status = await scene.status(VOLCANO_JOBS, "train")
        assert (status["running"], status["minAvailable"]) == (3, 3)
        assert status["taskStatusCount"]["worker"] == {"phase": {"Running": 2}}
        for name in pods:
            await scene.end(name)
        await scene.cluster.until(lambda: scene.job_is("train", "Completed"))
        assert await phases(scene) == ["Pending", "Running", "Completed"]
        assert (await scene.status(VOLCANO_JOBS, "train"))["succeeded"] == 3
        await scene.cluster.pass_time(3)
        assert await scene.cluster.all(VOLCANO_POD_GROUPS) == []
        assert len(await scene.pods()) == 3


@virtual
async def test_no_pod_is_made_before_the_queue_lets_the_group_in(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("team", capability={"nvidia.com/gpu": 2})
        await submit(scene, task(replicas=3, gpus=1), queue="team")
        await scene.cluster.pass_time(5)
        assert await scene.pods() == {}
        assert await scene.job_is("train", "Pending")
        assert any(reason == "PodGroupPending" for reason, _ in await scene.said("train"))
        await scene.cluster.patch(VOLCANO_JOBS, "train", {"spec": {"minAvailable": 2}})
        await scene.cluster.until(lambda: scene.job_is("train", "Running"))
        assert len(await scene.bound()) == 2


@virtual
async def test_a_failed_pod_restarts_the_job_until_it_was_tried_often_enough(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        policies = [{"event": "PodFailed", "action": "RestartJob"}]
        await submit(scene, task(replicas=2), policies=policies, maxRetry=3)
        uids: set[str] = set()
        for _ in range(3):
            await scene.cluster.until(lambda: running(scene, 2))
            pods = await scene.pods()
            uids |= {one["metadata"]["uid"] for one in pods.values()}
            await scene.end("train-worker-0", "Failed", 1)
            await scene.cluster.pass_time(3)
        await scene.cluster.until(lambda: scene.job_is("train", "Failed"))
        assert len(uids) == 6
        status = await scene.status(VOLCANO_JOBS, "train")
        assert status["retryCount"] == 3
        assert await phases(scene) == [*["Pending", "Running", "Restarting"] * 3, "Failed"]
        assert ("ExecuteAction", "Start to execute action RestartJob ") in await scene.said("train")
        await scene.cluster.pass_time(3)
        assert set(await scene.pods()) == {"train-worker-0"}


@pytest.mark.parametrize(
    ("action", "end"),
    [("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed")],
)
@virtual
async def test_an_exit_code_decides_what_becomes_of_the_job(action: str, end: str, tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        policies = [{"exitCode": 3, "action": action}]
        await submit(scene, task(replicas=2), policies=policies)
        await scene.cluster.until(lambda: running(scene, 2))
        await scene.end("train-worker-0", "Failed", 3)
        await scene.cluster.until(lambda: scene.job_is("train", end))
        assert (await phases(scene))[-2:] == [end.removesuffix("ed") + "ing", end]
        assert set(await scene.pods()) == {"train-worker-0"}


@virtual
async def test_a_policy_of_the_task_goes_before_that_of_the_job(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        own = [{"event": "PodFailed", "action": "RestartPod"}]
        whole = [{"event": "PodFailed", "action": "AbortJob"}]
        await submit(scene, task(replicas=2, policies=own), policies=whole)
        await scene.cluster.until(lambda: running(scene, 2))
        before = await scene.pods()
        await scene.end("train-worker-1", "Failed", 1)
        await scene.cluster.pass_time(3)
        await scene.cluster.until(lambda: running(scene, 2))
        after = await scene.pods()
        same = [name for name in after if after[name]["metadata"]["uid"] == before[name]["metadata"]["uid"]]
        assert same == ["train-worker-0"]
        assert await scene.job_is("train", "Running")
        assert (await scene.status(VOLCANO_JOBS, "train"))["retryCount"] == 1


@virtual
async def test_when_one_task_has_completed_the_whole_job_may(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        own = [{"event": "TaskCompleted", "action": "CompleteJob"}]
        await submit(scene, task("master", policies=own), task("worker", 2))
        await scene.cluster.until(lambda: running(scene, 3))
        await scene.end("train-master-0")
        await scene.cluster.until(lambda: scene.job_is("train", "Completed"))
        assert set(await scene.pods()) == {"train-master-0"}


@virtual
async def test_an_evicted_pod_restarts_the_job_where_a_policy_says_so(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        policies = [{"event": "PodEvicted", "action": "RestartJob"}]
        await submit(scene, task(replicas=2), policies=policies)
        await scene.cluster.until(lambda: running(scene, 2))
        await scene.cluster.pass_time(1)
        await scene.cluster.delete(PODS, "train-worker-0")
        await scene.cluster.pass_time(5)
        await scene.cluster.until(lambda: running(scene, 2))
        assert "Restarting" in await phases(scene)


@virtual
async def test_a_pod_that_vanishes_at_once_was_evicted_too(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        policies = [{"event": "PodEvicted", "action": "AbortJob"}]
        await submit(scene, task(replicas=2), policies=policies)
        await scene.cluster.until(lambda: running(scene, 2))
        await scene.cluster.delete(PODS, "train-worker-1", Deletion(grace_s=0))
        await scene.cluster.until(lambda: scene.job_is("train", "Aborted"))


@virtual
async def test_without_a_policy_a_lost_pod_is_made_again(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await submit(scene, task(replicas=2))
        await scene.cluster.until(lambda: running(scene, 2))
        await scene.cluster.delete(PODS, "train-worker-0")
        await scene.cluster.pass_time(2)
        await scene.cluster.until(lambda: running(scene, 2))
        assert await phases(scene) == ["Pending", "Running"]


@virtual
async def test_commands_abort_a_job_and_resume_it(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await submit(scene, task(replicas=2))
        await scene.cluster.until(lambda: scene.job_is("train", "Running"))
        await scene.command("AbortJob", VOLCANO_JOBS, "train")
        await scene.cluster.until(lambda: scene.job_is("train", "Aborted"))
        assert await scene.pods() == {}
        await scene.cluster.pass_time(5)
        assert await scene.job_is("train", "Aborted")
        await scene.command("ResumeJob", VOLCANO_JOBS, "train")
        await scene.cluster.until(lambda: scene.job_is("train", "Running"))
        assert await phases(scene) == [
            "Pending", "Running", "Aborting", "Aborted", "Restarting", "Pending", "Running",
        ]  # fmt: skip


@virtual
async def test_enough_successes_complete_a_job_and_too_few_fail_it(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await submit(scene, task(replicas=3), minAvailable=1, minSuccess=1, name="enough")
        await submit(scene, task(replicas=2), minAvailable=2, name="few")
        await scene.cluster.until(lambda: running(scene, 5))
        await scene.end("enough-worker-2")
        await scene.end("few-worker-0")
        await scene.end("few-worker-1", "Failed", 1)
        await scene.cluster.until(lambda: scene.job_is("enough", "Completed"))
        await scene.cluster.until(lambda: scene.job_is("few", "Failed"))


@virtual
async def test_a_job_that_contradicts_itself_says_so_until_it_is_mended(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await submit(scene, task(replicas=2), minAvailable=3)
        await scene.cluster.pass_time(2)
        words = "job 'minAvailable' should not be greater than total replicas in tasks"
        state = (await scene.status(VOLCANO_JOBS, "train"))["state"]
        assert (state["phase"], state["reason"], state["message"]) == ("Pending", "InvalidJob", words)
        assert await phases(scene) == ["Pending"]
        assert ("JobStatusError", words) in await scene.said("train")
        version = (await scene.cluster.get(VOLCANO_JOBS, "train"))["metadata"]["resourceVersion"]
        await scene.cluster.pass_time(60)
        assert (await scene.cluster.get(VOLCANO_JOBS, "train"))["metadata"]["resourceVersion"] == version
        await scene.cluster.patch(VOLCANO_JOBS, "train", {"spec": {"minAvailable": 2}})
        await scene.cluster.until(lambda: running(scene, 2))
        await scene.cluster.until(lambda: scene.job_is("train", "Running"))
        assert "reason" not in (await scene.status(VOLCANO_JOBS, "train"))["state"]


@virtual
async def test_a_job_of_more_pods_than_anybody_has_is_refused_at_once(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await submit(scene, task(replicas=2**31 - 1), minAvailable=1, plugins={"svc": []}, name="endless")
        await submit(scene, task(), name="modest")
        await scene.cluster.until(lambda: running(scene, 1))
        assert set(await scene.pods()) == {"modest-worker-0"}
        assert "2147483647 replicas" in (await scene.status(VOLCANO_JOBS, "endless"))["state"]["message"]


@virtual
async def test_a_gang_that_waits_is_told_once_and_not_by_each_count_under_way(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        made = await submit(scene, task(replicas=5, gpus=8), minAvailable=5)
        await scene.cluster.pass_time(30)
        group = await group_of(scene, made)
        # More than the cluster has is not admitted, and a job that is not admitted gets no pods.
        why = "0/0 tasks in gang unschedulable: pod group is not ready, 5 minAvailable"
        words = f"{why}; queue resource quota insufficient: insufficient nvidia.com/gpu"
        assert await scene.condition(group["metadata"]["name"]) == ("True", "NotEnoughResources", words)
        told = [one for one in await scene.cluster.events(group["metadata"]["name"]) if one["type"] == "Warning"]
        assert [(one["reason"], one["message"], one.get("count", 1)) for one in told] == [("Unschedulable", words, 1)]
        of_job = [one["message"] for one in await scene.cluster.events("train") if one["reason"] == "PodGroupPending"]
        assert len(of_job) == 1
        assert words in of_job[0]
