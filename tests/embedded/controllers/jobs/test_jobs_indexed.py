"""Jobs with an index for each pod: names, variables, limits for each index, success by some of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.job_hands import Hand, conditions, job
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import JOBS, PODS
from shoal.client.refusals import InvalidError
from shoal.embedded.controllers.jobs.controller import job_controller

_INDEX = "batch.kubernetes.io/job-completion-index"


@virtual
async def test_each_pod_knows_its_index_by_every_way(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(completionMode="Indexed", completions=3, parallelism=3))
        await hand.until_live(3)
        pod = await hand.at(2)
        assert pod["metadata"]["name"].startswith("train-2-")
        assert pod["metadata"]["annotations"][_INDEX] == pod["metadata"]["labels"][_INDEX] == "2"
        assert pod["spec"]["hostname"] == "train-2"
        (variable,) = pod["spec"]["containers"][0]["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{_INDEX}']"
        for index in (2, 0):
            await hand.end(await hand.at(index))
        await hand.until_status(lambda status: status.get("completedIndexes") == "0,2")
        await hand.end(await hand.at(1))
        await hand.until_condition("Complete")
        status = await hand.status()
        assert (status["completedIndexes"], status["succeeded"]) == ("0-2", 3)
        assert "failedIndexes" not in status


@virtual
async def test_an_index_that_failed_is_run_again_before_later_ones(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(completionMode="Indexed", completions=4, parallelism=2))
        await hand.until_live(2)
        await hand.end(await hand.at(0), 1)
        await cluster.pass_time(12)
        assert await hand.indexes() == [0, 1]
        await hand.end(await hand.at(1))
        await cluster.pass_time(2)
        assert await hand.indexes() == [0, 2]
        assert (await hand.status())["failed"] == 1


@virtual
async def test_each_index_has_its_own_limit_and_its_own_wait(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=1))
        await hand.until_live(3)
        await hand.end(await hand.at(1), 1)
        await cluster.pass_time(8)
        assert await hand.indexes() == [0, 2]
        await cluster.pass_time(4)
        again = await hand.at(1)
        assert again["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1"
        await hand.end(again, 1)
        await hand.until_status(lambda status: status.get("failedIndexes") == "1")
        assert "FailureTarget" not in conditions(await hand.job())
        for index in (0, 2):
            await hand.end(await hand.at(index))
        assert await hand.until_condition("Failed") == ("True", "FailedIndexes", "Job has failed indexes")
        status = await hand.status()
        assert (status["completedIndexes"], status["failedIndexes"], status["failed"]) == ("0,2", "1", 2)


@virtual
async def test_too_many_failed_indexes_end_the_job(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        limits: dict[str, Any] = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
        await cluster.create(JOBS, job(completionMode="Indexed", completions=5, parallelism=5, **limits))
        await hand.until_live(5)
        await hand.end(await hand.at(4), 1)
        await hand.until_status(lambda status: status.get("failedIndexes") == "4")
        await hand.end(await hand.at(3), 1)
        words = "Job has exceeded the specified maximal number of failed indexes"
        assert await hand.until_condition("FailureTarget") == ("True", "MaxFailedIndexesExceeded", words)
        await hand.bury()
        await hand.until_condition("Failed")
        assert (await hand.status())["failedIndexes"] == "3,4"


@virtual
@pytest.mark.parametrize(
    ("rule", "done"),
    [
        pytest.param({"succeededIndexes": "0,2"}, (0, 2), id="the leaders"),
        pytest.param({"succeededCount": 2}, (1, 3), id="enough of all"),
        pytest.param({"succeededIndexes": "1-3", "succeededCount": 1}, (0, 3), id="enough of some"),
    ],
)
async def test_some_indexes_can_be_enough(tmp_path: Path, rule: dict[str, object], done: tuple[int, ...]) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(
            JOBS, job(completionMode="Indexed", completions=4, parallelism=4, successPolicy={"rules": [rule]})
        )
        await hand.until_live(4)
        await hand.end(await hand.at(done[0]))
        await cluster.pass_time(3)
        assert "SuccessCriteriaMet" not in conditions(await hand.job())
        await hand.end(await hand.at(done[1]))
        words = ("True", "SuccessPolicy", "Matched rules at index 0")
        assert await hand.until_condition("SuccessCriteriaMet") == words
        await hand.bury()
        assert await hand.until_condition("Complete") == words
        status = await hand.status()
        assert status["succeeded"] == 2
        assert "failed" not in status


@virtual
async def test_an_elastic_job_grows_and_shrinks_with_its_completions(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [job_controller]) as cluster:
        hand = Hand(cluster)
        await cluster.create(JOBS, job(completionMode="Indexed", completions=2, parallelism=2))
        await hand.until_live(2)
        await hand.end(await hand.at(1))
        await hand.until_status(lambda status: status.get("succeeded") == 1)
        await cluster.patch(JOBS, "train", {"spec": {"completions": 4, "parallelism": 4}})
        await hand.until_live(3)
        assert await hand.indexes() == [0, 2, 3]
        await cluster.patch(JOBS, "train", {"spec": {"completions": 1, "parallelism": 1}})
        await hand.until_live(1)
        await cluster.pass_time(3)
        assert await hand.indexes() == [0]
        status = await hand.status()
        assert "succeeded" not in status
        assert "failed" not in status
        with pytest.raises(InvalidError):
            await cluster.patch(JOBS, "train", {"spec": {"completions": 3}})


@virtual
async def test_two_pods_of_one_index_are_one_too_many(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        hand = Hand(cluster)
        cluster.start(job_controller)
        await cluster.create(JOBS, job(completionMode="Indexed", completions=2, parallelism=2))
        await hand.until_live(2)
        twin = await hand.at(0)
        await hand.run(twin)
        for key in ("uid", "resourceVersion", "creationTimestamp"):
            twin["metadata"].pop(key)
        name, twin["metadata"]["name"] = twin["metadata"]["name"], "twin"
        await cluster.create(PODS, twin)
        await cluster.pass_time(3)
        assert await hand.indexes() == [0, 1]
        assert (await hand.at(0))["metadata"]["name"] == name
