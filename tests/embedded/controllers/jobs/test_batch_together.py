"""The three controllers of batch work together, each with no more rights than its role gives."""

from __future__ import annotations

from pathlib import Path

from build.job_hands import Hand, conditions, job
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import CRON_JOBS, JOBS
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.controllers.cron_jobs.controller import cron_job_controller
from shoal.embedded.controllers.jobs.controller import job_controller
from shoal.embedded.controllers.ttl.controller import ttl_after_finished_controller

_GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")


def _as(cluster: SmallCluster, name: str) -> InsideApi:
    return InsideApi(cluster.plane, Actor(f"system:serviceaccount:kube-system:{name}", _GROUPS), name)


def _start(cluster: SmallCluster) -> None:
    cluster.start(job_controller, api=_as(cluster, "job-controller"))
    cluster.start(cron_job_controller, api=_as(cluster, "cronjob-controller"))
    cluster.start(ttl_after_finished_controller, api=_as(cluster, "ttl-after-finished-controller"))


@virtual
async def test_a_schedule_makes_jobs_that_run_end_and_go(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        hand = Hand(cluster)
        _start(cluster)
        template = {"spec": job(parallelism=2, completions=2, ttlSecondsAfterFinished=20)["spec"]}
        spec = {"schedule": "* * * * *", "jobTemplate": template, "concurrencyPolicy": "Replace"}
        await cluster.create(CRON_JOBS, {"metadata": {"name": "tick"}, "spec": spec})
        for _ in range(3):
            await hand.until_live(2, within_s=61)
            for pod in await hand.live():
                await hand.end(pod)
            await cluster.pass_time(5)
            (made,) = [one for one in await cluster.all(JOBS) if "deletionTimestamp" not in one["metadata"]]
            assert conditions(made)["Complete"][0] == "True"
            await cluster.pass_time(25)
            assert all("deletionTimestamp" in one["metadata"] for one in await cluster.all(JOBS))
        status = (await cluster.get(CRON_JOBS, "tick"))["status"]
        assert status["lastScheduleTime"] == "2026-01-01T00:03:00Z"
        assert "active" not in status


@virtual
async def test_a_suspended_job_and_one_that_fails_need_no_more_rights(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        hand = Hand(cluster)
        _start(cluster)
        await cluster.create(JOBS, job("paused", parallelism=3, completions=3))
        await cluster.create(JOBS, job("failing", backoffLimit=0, parallelism=3, completions=3))
        await hand.until_live(6)
        await cluster.patch(JOBS, "paused", {"spec": {"suspend": True}})
        failing = [pod for pod in await hand.live() if pod["metadata"]["name"].startswith("failing")]
        await hand.end(failing[0], 1)
        await hand.until_condition("Failed", "failing")
        await hand.until_condition("Suspended", "paused")
        assert await hand.live() == []
