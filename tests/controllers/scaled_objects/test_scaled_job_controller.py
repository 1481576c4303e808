"""The controller of ScaledJobs against an API server in memory, in virtual time."""

from __future__ import annotations

from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import SCALED_JOBS
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, JOBS, PODS
from shoal.controllers.scaled_objects.scaled_jobs_controller import scaled_job_controller
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.controllers.scaled_objects.trigger_values import TriggerValues
from shoal.embedded.apiserver.foreign.definitions import definitions

WORKLOAD = {"type": "kubernetes-workload", "metadata": {"podSelector": "job=a", "value": "1"}}
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


async def start(cluster: SmallCluster) -> None:
    for definition in definitions():
        if definition["spec"]["group"] == "keda.sh":
            await cluster.create(DEFINITIONS, definition)
    context = cluster.context("keda-operator")

    async def keda_runs() -> bool:
        return False

    values = TriggerValues(context, HttpSource())
    cluster.start(lambda one: scaled_job_controller(one, values, keda_runs))


async def waiting(cluster: SmallCluster, *names: str) -> None:
    for name in names:
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await cluster.create(PODS, {"metadata": {"name": name, "labels": {"job": "a"}}, "spec": spec})


async def scaled_job(cluster: SmallCluster, trigger: Obj, **fields: object) -> None:
    spec = {"jobTargetRef": {"template": TEMPLATE}, "pollingInterval": 10, "triggers": [trigger], **fields}
    await cluster.create(SCALED_JOBS, {"metadata": {"name": "work"}, "spec": spec})


async def ready(cluster: SmallCluster, reason: str) -> bool:
    status = (await cluster.get(SCALED_JOBS, "work")).get("status") or {}
    return any(one["type"] == "Ready" and one["reason"] == reason for one in status.get("conditions") or ())


@virtual
async def test_jobs_are_created_for_what_waits_and_stay_until_they_end(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await start(cluster)
        await waiting(cluster, "a", "b", "c")
        await scaled_job(cluster, WORKLOAD, successfulJobsHistoryLimit=0)

        async def has_jobs(count: int) -> bool:
            return len(await cluster.all(JOBS)) == count

        await cluster.until(lambda: has_jobs(3))
        await cluster.delete(PODS, "a")
        await cluster.pass_time(60)
        assert await has_jobs(3)
        job = (await cluster.all(JOBS))[0]["metadata"]["name"]
        end = {"lastTransitionTime": "2026-01-01T00:00:00Z", "status": "True"}
        conditions = [{"type": "SuccessCriteriaMet", **end}, {"type": "Complete", **end}]
        times = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z"}
        await cluster.patch(JOBS, job, {"status": {"conditions": conditions, "succeeded": 1, **times}}, "status")
        await cluster.until(lambda: has_jobs(2))
        assert await ready(cluster, "ScaledJobReady")


@virtual
async def test_an_invalid_trigger_creates_nothing_and_is_named(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await start(cluster)
        cpu = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}}
        await scaled_job(cluster, cpu)
        await cluster.until(lambda: ready(cluster, "ScaledJobCheckFailed"))
        assert await cluster.all(JOBS) == []


@virtual
async def test_a_paused_scaled_job_creates_nothing(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await start(cluster)
        await waiting(cluster, "a")
        spec = {"jobTargetRef": {"template": TEMPLATE}, "pollingInterval": 10, "triggers": [WORKLOAD]}
        meta = {"name": "work", "annotations": {"autoscaling.keda.sh/paused": "true"}}
        await cluster.create(SCALED_JOBS, {"metadata": meta, "spec": spec})
        await cluster.pass_time(60)
        assert await cluster.all(JOBS) == []
        await cluster.patch(SCALED_JOBS, "work", {"metadata": {"annotations": {"autoscaling.keda.sh/paused": "false"}}})

        async def has_job() -> bool:
            return bool(await cluster.all(JOBS))

        await cluster.until(has_job)
