"""Elastic jobs under all controllers of queues: their usage, and which pods run, at each step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.fake_admission import condition, queued_jobs
from build.job_hands import Hand, job
from build.live_schedulers import add_node
from build.queue_admission import RunningAdmission, add_flavor, add_queue, queued_cluster, start_admission
from build.queued_pod_scenarios import queued_pod_scenario
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import JOBS, STATEFUL_SETS
from shoal.controllers.gatekeeping.held_kinds import PARENT, QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.holding import held
from shoal.embedded.controllers.jobs.controller import job_controller

ELASTIC = "kueue.x-k8s.io/elastic-job"
QUOTA = 6


@asynccontextmanager
async def elastic_cluster(folder: Path, parallelism: int = 2) -> AsyncIterator[tuple[SmallCluster, RunningAdmission]]:
    """Two nodes of four cores, a queue of six, and a job of one core for each pod."""
    async with queued_cluster(folder) as cluster:
        for name in ("n1", "n2"):
            await add_node(cluster, name, cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster, cpu=str(QUOTA))
        process = start_admission(cluster)
        cluster.start(job_controller, queued_jobs())
        template = {
            "schedulerName": "shoal",
            "containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}],
        }
        made = job("train", template=template, suspend=True, parallelism=parallelism, completions=50)
        made["metadata"] |= {"labels": {"kueue.x-k8s.io/queue-name": "cq"}, "annotations": {ELASTIC: "true"}}
        await cluster.create(JOBS, made)
        await until_bound(cluster, parallelism)
        yield cluster, process


async def bound(cluster: SmallCluster) -> list[Obj]:
    return [pod for pod in await Hand(cluster).live() if pod["spec"].get("nodeName")]


async def until_bound(cluster: SmallCluster, count: int) -> None:
    async def is_so() -> bool:
        return len(await bound(cluster)) == count

    await cluster.until(is_so, 60)


async def used(cluster: SmallCluster, queue: str = "cq") -> str:
    status = (await cluster.get(CLUSTER_QUEUES, queue))["status"]
    total: str = status["flavorsReservation"][0]["resources"][0]["total"]
    return total


async def resize(cluster: SmallCluster, parallelism: int) -> None:
    await cluster.patch(JOBS, "train", {"spec": {"parallelism": parallelism}})


async def holders(cluster: SmallCluster) -> list[int]:
    """Sizes of the Workloads that are admitted and not finished."""
    return [
        one["spec"]["podSets"][0]["count"]
        for one in await cluster.all(WORKLOADS)
        if condition(one, "Admitted").get("status") == "True" and condition(one, "Finished").get("status") != "True"
    ]


@virtual
async def test_a_job_grows_within_its_quota_and_its_pods_run_on(tmp_path: Path) -> None:
    async with elastic_cluster(tmp_path) as (cluster, _):
        before = {pod["metadata"]["uid"] for pod in await bound(cluster)}
        await resize(cluster, 5)
        await until_bound(cluster, 5)
        assert before <= {pod["metadata"]["uid"] for pod in await bound(cluster)}
        await cluster.pass_time(5)
        assert (await holders(cluster), await used(cluster)) == ([5], "5")
        (holder,) = [one for one in await cluster.all(WORKLOADS) if "Finished" not in str(one["status"]["conditions"])]
        said = {pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] for pod in await bound(cluster)}
        assert said == {holder["metadata"]["name"]}


@virtual
async def test_growth_over_the_quota_is_pending_and_none_of_its_pods_run(tmp_path: Path) -> None:
    async with elastic_cluster(tmp_path, 4) as (cluster, _):
        await resize(cluster, QUOTA + 1)
        await cluster.pass_time(30)
        assert (len(await bound(cluster)), await holders(cluster), await used(cluster)) == (4, [4], "4")
        assert len(await Hand(cluster).live()) == QUOTA + 1
        await resize(cluster, QUOTA)
        await until_bound(cluster, QUOTA)
        await cluster.pass_time(5)
        assert (await holders(cluster), await used(cluster)) == ([QUOTA], str(QUOTA))


@virtual
async def test_capacity_that_a_job_gives_up_is_free_for_others(tmp_path: Path) -> None:
    async with elastic_cluster(tmp_path, 5) as (cluster, process):
        await resize(cluster, 2)
        await until_bound(cluster, 2)
        await cluster.pass_time(5)
        assert (await holders(cluster), await used(cluster)) == ([2], "2")
        assert process.admission.placeholders.workloads() == []
        await resize(cluster, 4)
        await cluster.pass_time(5)
        # Those that are ending have their room still.
        assert len(await bound(cluster)) == 2
        await Hand(cluster).bury()
        await until_bound(cluster, 4)


@pytest.mark.parametrize("after_s", [0.0, 0.01, 0.05, 0.2, 1.0])
def test_a_process_killed_while_a_job_grows_is_continued_by_the_next_one(tmp_path: Path, after_s: float) -> None:
    @virtual
    async def run() -> None:
        async with elastic_cluster(tmp_path, 3) as (cluster, process):
            await resize(cluster, 6)
            await cluster.pass_time(after_s)
            await process.kill()
            await cluster.pass_time(3)
            start_admission(cluster)
            await until_bound(cluster, 6)
            await cluster.pass_time(10)
            assert (await holders(cluster), await used(cluster)) == ([6], "6")
            await resize(cluster, 1)
            await until_bound(cluster, 1)
            await cluster.pass_time(5)
            assert await used(cluster) == "1"

    run()


@virtual
async def test_a_stateful_set_grows_within_its_quota_and_its_pods_run_on(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scene:
        cluster = scene.cluster
        await add_node(cluster, "n1", cpu="8")
        await add_flavor(cluster)
        await add_queue(cluster, "team", cpu="3")
        start_admission(cluster)
        containers = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]
        template = {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": containers, "schedulerName": "shoal"},
        }
        spec = {"serviceName": "db", "replicas": 1, "selector": {"matchLabels": {"app": "db"}}, "template": template}
        made = {"metadata": {"name": "db", "namespace": "default", "labels": {QUEUE_LABEL: "team"}}, "spec": spec}
        owner = await cluster.create(STATEFUL_SETS, held(made, ("apps", "StatefulSet"), HoldingRules(), lambda: False))
        uid = owner["metadata"]["uid"]
        reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": uid, "controller": True}

        async def replica(index: int) -> None:
            more = {"labels": {"app": "db"}, "notes": {PARENT: "statefulset"}, "owners": [reference]}
            await scene.pod(f"db-{index}", schedulerName="shoal", **more)

        await replica(0)
        await until_bound(cluster, 1)
        (first,) = await bound(cluster)
        await cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 3}})
        for index in (1, 2):
            await replica(index)
        await until_bound(cluster, 3)
        assert first["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in await bound(cluster)}
        await cluster.pass_time(5)
        assert (await holders(cluster), await used(cluster, "team")) == ([3], "3")
        await cluster.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 4}})
        await replica(3)
        await cluster.pass_time(30)
        assert (len(await bound(cluster)), await scene.held(), await holders(cluster)) == (3, {"db-3"}, [3])
