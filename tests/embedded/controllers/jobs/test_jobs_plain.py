"""Jobs without indexes: how many pods, what they count as, how the job ends."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from build.job_hands import Hand, conditions, job
from build.small_clusters import small_cluster
from build.stormy_api import StormyApi, Weather
from build.virtual_time import virtual
from shoal.client.kind import JOBS, PODS
from shoal.client.port import Deletion
from shoal.embedded.controllers.garbage.collector import garbage_collector
from shoal.embedded.controllers.jobs.controller import JobLoop, job_controller


@virtual
async def test_a_job_runs_one_pod_to_its_success(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        made = await cluster.create(JOBS, job())
        await hand.until_live(1)
        (pod,) = await hand.live()
        meta = pod["metadata"]
        assert meta["name"].startswith("train-")
        assert len(meta["name"]) == len("train-") + 5
        assert meta["labels"]["batch.kubernetes.io/job-name"] == meta["labels"]["job-name"] == "train"
        assert meta["labels"]["controller-uid"] == made["metadata"]["uid"]
        assert meta["finalizers"] == ["batch.kubernetes.io/job-tracking"]
        assert meta["ownerReferences"] == [
            {
                "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": made["metadata"]["uid"],
                "controller": True, "blockOwnerDeletion": True,
            }
        ]  # fmt: skip
        await hand.run(pod)
        await hand.until_status(lambda status: status.get("ready") == 1)
        status = await hand.status()
        assert (status["active"], status["terminating"], status["uncountedTerminatedPods"]) == (1, 0, {})
        assert status["startTime"] == "2026-01-01T00:00:00Z"
        await cluster.pass_time(30)
        await hand.end(pod)
        words = ("True", "CompletionsReached", "Reached expected number of succeeded pods")
        assert await hand.until_condition("Complete") == words
        ended = await hand.job()
        assert conditions(ended)["SuccessCriteriaMet"] == words
        status = ended["status"]
        assert status["succeeded"] == 1
        assert "active" not in status
        assert "failed" not in status
        assert status["completionTime"] >= status["startTime"]
        assert status["ready"] == 0
        assert "finalizers" not in (await cluster.get(PODS, meta["name"]))["metadata"]
        said = {(one["type"], one["reason"], one["message"]) for one in await cluster.events("train")}
        created = ("Normal", "SuccessfulCreate", f"Created pod: {meta['name']}")
        assert said == {created, ("Normal", "Completed", "Job completed")}


@virtual
async def test_nothing_is_remembered_of_jobs_that_went_while_they_were_looked_at(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        slow = StormyApi(cluster.api, cluster.clock, random.Random(1), Weather(slow_s=1.0, lost=0.3))
        jobs = JobLoop(cluster.context(api=slow))
        cluster.tasks.append(asyncio.ensure_future(jobs.loop.run()))
        for number in range(20):
            obj = job(parallelism=3, completions=3)
            obj["metadata"]["name"] = f"train-{number}"
            await cluster.create(JOBS, obj)
            await cluster.pass_time(number / 4)
            await cluster.delete(JOBS, f"train-{number}", Deletion(policy="Background"))
        slow.calm()
        await cluster.pass_time(120)
        assert slow.happened["lost"]
        assert not jobs.memory.failures
        assert not jobs.memory.writes.unsure


@virtual
async def test_no_more_pods_run_than_parallelism_and_completions_allow(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(parallelism=3, completions=5))
        for left in (3, 3, 3, 2, 1):
            await hand.until_live(left)
            await hand.end((await hand.live())[0])
            await cluster.pass_time(2)
        await hand.until_condition("Complete")
        assert (await hand.status())["succeeded"] == 5
        assert len(await cluster.pods()) == 5


@virtual
async def test_a_work_queue_starts_no_pod_after_its_first_success(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(parallelism=3))
        await hand.until_live(3)
        first, second, third = await hand.live()
        await hand.end(first)
        await cluster.pass_time(5)
        assert len(await hand.live()) == 2
        assert "Complete" not in conditions(await hand.job())
        await hand.end(second, 1)
        await hand.end(third)
        await hand.until_condition("Complete")
        status = await hand.status()
        assert (status["succeeded"], status["failed"]) == (2, 1)


@virtual
async def test_each_failure_in_a_row_doubles_the_wait_for_the_next_pod(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(backoffLimit=3))
        for wait_s in (10, 20, 40):
            await hand.until_live(1)
            await hand.end((await hand.live())[0], 1)
            await cluster.pass_time(wait_s - 2)
            assert await hand.live() == []
            await cluster.pass_time(4)
            assert len(await hand.live()) == 1
        await hand.end((await hand.live())[0], 1)
        words = ("True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        assert await hand.until_condition("Failed") == words
        assert conditions(await hand.job())["FailureTarget"] == words
        status = await hand.status()
        assert status["failed"] == 4
        assert "completionTime" not in status
        assert ("Warning", *words[1:]) in [
            (e["type"], e["reason"], e["message"]) for e in await cluster.events("train")
        ]


@virtual
async def test_a_failed_job_deletes_its_pods_and_ends_when_they_are_gone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(parallelism=3, completions=3, backoffLimit=0))
        await hand.until_live(3)
        for pod in await hand.live():
            await hand.bind(pod)
        await hand.end((await hand.live())[0], 1)
        await hand.until_condition("FailureTarget")
        await cluster.pass_time(5)
        status = await hand.status()
        assert (status["terminating"], status["failed"]) == (2, 3)
        assert "Failed" not in conditions(await hand.job())
        assert "active" not in status
        await hand.bury()
        await hand.until_condition("Failed")
        assert (await hand.status())["failed"] == 3


@virtual
async def test_containers_restarted_in_place_count_towards_the_limit(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(backoffLimit=2, template={"restartPolicy": "OnFailure"}))
        await hand.until_live(1)
        (pod,) = await hand.live()
        await hand.run(pod, restarts=1)
        await cluster.pass_time(3)
        assert "FailureTarget" not in conditions(await hand.job())
        await hand.run(pod, restarts=2)
        await hand.until_condition("FailureTarget")
        await hand.bury()
        assert (await hand.until_condition("Failed"))[1] == "BackoffLimitExceeded"


@virtual
async def test_a_job_that_takes_too_long_fails_at_its_deadline(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(activeDeadlineSeconds=100))
        await hand.until_live(1)
        await hand.bind((await hand.live())[0])
        await cluster.pass_time(98)
        assert "FailureTarget" not in conditions(await hand.job())
        await cluster.pass_time(30)
        assert "Failed" not in conditions(await hand.job())
        await hand.bury()
        words = ("True", "DeadlineExceeded", "Job was active longer than specified deadline")
        assert await hand.until_condition("Failed") == words


@virtual
async def test_a_deleted_pod_is_replaced_at_once_unless_only_failed_ones_are(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        for name, policy in (("hasty", "TerminatingOrFailed"), ("patient", "Failed")):
            await cluster.create(JOBS, job(name, podReplacementPolicy=policy))
        await hand.until_live(2)
        for pod in await hand.live():
            await hand.bind(pod)
            await cluster.delete(PODS, pod["metadata"]["name"])
        await cluster.pass_time(20)
        assert (await hand.status("hasty"))["failed"] == 1
        assert (await hand.status("hasty"))["active"] == 1
        patient = await hand.status("patient")
        assert patient["terminating"] == 1
        assert "failed" not in patient
        assert "active" not in patient
        going = [pod for pod in await cluster.pods() if pod["metadata"]["name"].startswith("patient")]
        await hand.end(going[0], 143)
        await hand.bury()
        await cluster.pass_time(20)
        assert (await hand.status("patient"))["failed"] == 1
        assert (await hand.status("patient"))["active"] == 1


@virtual
async def test_fewer_pods_are_kept_when_parallelism_falls_and_none_of_them_failed(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(parallelism=5, completions=9))
        await hand.until_live(5)
        kept = [pod["metadata"]["name"] for pod in (await hand.live())[:2]]
        for pod in (await hand.live())[:2]:
            await hand.run(pod)
        await cluster.patch(JOBS, "train", {"spec": {"parallelism": 2}})
        await hand.until_live(2)
        assert sorted(pod["metadata"]["name"] for pod in await hand.live()) == sorted(kept)
        await cluster.pass_time(3)
        status = await hand.status()
        assert status["active"] == 2
        assert "failed" not in status
        said = [event for event in await cluster.events("train") if event["reason"] == "SuccessfulDelete"]
        assert len(said) == 3
        assert said[0]["message"].startswith("Deleted pod: train-")


@virtual
async def test_a_job_without_completions_asked_for_is_complete_at_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        await cluster.create(JOBS, job(completions=0))
        await Hand(cluster).until_condition("Complete")
        assert await cluster.pods() == []
