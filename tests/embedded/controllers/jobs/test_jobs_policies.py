"""Rules for pods that fail; suspension; other managers; pods taken in and let go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.job_hands import Hand, conditions, job
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import JOBS, PODS, Kind
from shoal.client.port import Deletion
from shoal.embedded.controllers.jobs.controller import job_controller


def _codes(action: str, *values: int, **more: Any) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": "In", "values": list(values)} | more}


_DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
_IGNORE_DISRUPTIONS = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}


@virtual
async def test_the_first_rule_that_fits_decides_what_a_failure_is(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        rules = [_IGNORE_DISRUPTIONS, _codes("Count", 3), _codes("FailJob", 42, containerName="main")]
        await cluster.create(JOBS, job(backoffLimit=5, podFailurePolicy={"rules": rules}))
        await hand.until_live(1)
        await hand.end((await hand.live())[0], 42, conditions=[_DISRUPTED])
        await cluster.pass_time(15)
        assert "failed" not in await hand.status()
        await hand.end((await hand.live())[0], 3)
        await cluster.pass_time(25)
        assert (await hand.status())["failed"] == 1
        (pod,) = await hand.live()
        await hand.end(pod, 42)
        name = pod["metadata"]["name"]
        words = f"Container main for pod default/{name} failed with exit code 42 matching FailJob rule at index 2"
        assert await hand.until_condition("Failed") == ("True", "PodFailurePolicy", words)
        assert (await hand.status())["failed"] == 2


@virtual
async def test_ignored_failures_use_up_no_limit(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(backoffLimit=0, podFailurePolicy={"rules": [_IGNORE_DISRUPTIONS]}))
        for wait_s in (15, 25):
            await hand.until_live(1)
            await hand.end((await hand.live())[0], 137, conditions=[_DISRUPTED])
            await cluster.pass_time(wait_s)
        assert len(await hand.live()) == 1
        assert "FailureTarget" not in conditions(await hand.job())


@virtual
async def test_a_condition_of_a_pod_can_fail_the_job(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        rule = {"action": "FailJob", "onPodConditions": [{"type": "ConfigIssue"}]}
        await cluster.create(JOBS, job(podFailurePolicy={"rules": [rule]}))
        await hand.until_live(1)
        (pod,) = await hand.live()
        await hand.end(pod, 1, conditions=[{"type": "ConfigIssue", "status": "True"}])
        name = pod["metadata"]["name"]
        words = f"Pod default/{name} has condition ConfigIssue matching FailJob rule at index 0"
        assert await hand.until_condition("Failed") == ("True", "PodFailurePolicy", words)


@virtual
async def test_rules_can_give_up_an_index_and_ignore_failures_of_another(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        rules = [_IGNORE_DISRUPTIONS, _codes("FailIndex", 7)]
        limits: dict[str, Any] = {"completions": 2, "parallelism": 2, "backoffLimitPerIndex": 3}
        await cluster.create(JOBS, job(completionMode="Indexed", podFailurePolicy={"rules": rules}, **limits))
        await hand.until_live(2)
        await hand.end(await hand.at(0), 7)
        await hand.until_status(lambda status: status.get("failedIndexes") == "0")
        await hand.end(await hand.at(1), 137, conditions=[_DISRUPTED])
        await cluster.pass_time(12)
        annotations = (await hand.at(1))["metadata"]["annotations"]
        assert annotations["batch.kubernetes.io/job-index-failure-count"] == "0"
        assert annotations["batch.kubernetes.io/job-index-ignored-failure-count"] == "1"


@virtual
async def test_a_suspended_job_has_no_pods_and_a_resumed_one_begins_anew(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(suspend=True, parallelism=2, completions=2, activeDeadlineSeconds=100))
        await hand.until_condition("Suspended")
        assert "startTime" not in await hand.status()
        await cluster.pass_time(500)
        await cluster.patch(JOBS, "train", {"spec": {"suspend": False}})
        await hand.until_live(2)
        await cluster.pass_time(60)
        assert conditions(await hand.job())["Suspended"] == ("False", "JobResumed", "Job resumed")
        started = (await hand.status())["startTime"]
        await cluster.patch(JOBS, "train", {"spec": {"suspend": True}})
        await hand.until_condition("Suspended")
        assert conditions(await hand.job())["Suspended"] == ("True", "JobSuspended", "Job suspended")
        await cluster.pass_time(500)
        assert await hand.live() == []
        status = await hand.status()
        assert "failed" not in status
        assert "active" not in status
        await cluster.patch(JOBS, "train", {"spec": {"suspend": False}})
        await hand.until_live(2)
        await cluster.pass_time(60)
        assert (await hand.status())["startTime"] > started
        assert "FailureTarget" not in conditions(await hand.job())
        said = {(event["reason"], event["message"]) for event in await cluster.events("train")}
        assert {("Suspended", "Job suspended"), ("Resumed", "Job resumed")} < said


@virtual
async def test_a_job_of_another_manager_is_left_alone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        await cluster.create(JOBS, job(managedBy="example.com/other"))
        await cluster.pass_time(30)
        assert await cluster.pods() == []
        assert (await Hand(cluster).job()).get("status", {}) == {}


@virtual
async def test_a_job_takes_in_pods_that_its_selector_takes_and_lets_go_of_others(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        labels = {"app": "mine"}
        spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
        await cluster.create(PODS, {"metadata": {"name": "found", "labels": labels}, "spec": spec})
        wanted = job(parallelism=2, completions=2, manualSelector=True, selector={"matchLabels": labels})
        wanted["spec"]["template"]["metadata"]["labels"] = dict(labels)
        made = await cluster.create(JOBS, wanted)
        await hand.until_live(2)
        found = (await cluster.get(PODS, "found"))["metadata"]
        assert [one["uid"] for one in found["ownerReferences"]] == [made["metadata"]["uid"]]
        assert found["finalizers"] == ["batch.kubernetes.io/job-tracking"]
        await cluster.patch(PODS, "found", {"metadata": {"labels": {"app": "other"}}})
        await hand.until_live(3)
        found = (await cluster.get(PODS, "found"))["metadata"]
        assert "ownerReferences" not in found
        assert "finalizers" not in found


@virtual
async def test_pods_of_a_job_that_is_gone_are_free_to_go(tmp_path: Path) -> None:
    for policy in ("Background", "Orphan"):
        async with small_cluster(tmp_path, [job_controller]) as cluster:
            hand = Hand(cluster)
            await cluster.create(JOBS, job(parallelism=2, completions=2))
            await hand.until_live(2)
            await cluster.delete(JOBS, "train", Deletion(policy="Background"))
            if policy == "Orphan":
                # What the garbage collector does for pods that are to stay.
                for pod in await cluster.pods():
                    await cluster.patch(PODS, pod["metadata"]["name"], {"metadata": {"ownerReferences": None}})
            await cluster.pass_time(3)
            assert len(await hand.live()) == 2
            assert all("finalizers" not in pod["metadata"] for pod in await cluster.pods())


@virtual
async def test_pods_of_a_job_that_is_being_deleted_are_freed_and_not_replaced(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(parallelism=2, completions=2))
        await hand.until_live(2)
        await cluster.delete(JOBS, "train", Deletion(policy="Foreground"))
        await cluster.pass_time(3)
        assert all("finalizers" not in pod["metadata"] for pod in await cluster.pods())
        await hand.remove((await hand.live())[0])
        await cluster.pass_time(20)
        assert len(await cluster.pods()) == 1


@virtual
async def test_a_full_quota_is_told_and_asked_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        quotas = Kind("", "v1", "resourcequotas", "ResourceQuota")
        await cluster.create(quotas, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}})
        await cluster.create(JOBS, job(parallelism=6, completions=6))
        await hand.until_live(2)
        await cluster.pass_time(2)
        told = [event["message"] for event in await cluster.events("train") if event["reason"] == "FailedCreate"]
        assert told
        assert told[0].startswith("Error creating: pods ")
        assert "exceeded quota" in told[0]
        assert len(told) < 10
        await cluster.patch(quotas, "few", {"spec": {"hard": {"pods": "10"}}})
        await hand.until_live(6, within_s=120)
