"""A cron job on a server that refuses, forgets and lags: never two jobs where one may run, and none forgotten."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from build.job_hands import conditions
from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import StormyApi
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import CRON_JOBS, JOBS
from shoal.embedded.controllers.cron_jobs.controller import cron_job_controller


async def _running(cluster: SmallCluster) -> list[Obj]:
    jobs = await cluster.all(JOBS)
    return [one for one in jobs if "Complete" not in conditions({"status": {}} | one)]


async def _end(cluster: SmallCluster, one: Obj) -> None:
    now = cluster.clock.text()
    said = [
        {"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    status = {"startTime": now, "completionTime": now, "conditions": said}
    await cluster.patch(JOBS, one["metadata"]["name"], {"status": status}, subresource="status")


@virtual
@pytest.mark.parametrize("seed", range(4))
async def test_never_two_at_once_and_all_are_known_in_the_end(tmp_path: Path, seed: int) -> None:
    async with small_cluster(tmp_path) as cluster:
        draw = random.Random(seed)
        storm = StormyApi(cluster.api, cluster.clock, draw)
        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
        template = {"spec": {"template": {"spec": pod}}}
        spec = {"schedule": "* * * * *", "jobTemplate": template, "concurrencyPolicy": "Forbid"}
        limits = {"successfulJobsHistoryLimit": 5}
        await cluster.create(CRON_JOBS, {"metadata": {"name": "tick"}, "spec": spec | limits})
        cluster.start(cron_job_controller, api=storm)
        made: set[str] = set()
        for _ in range(300):
            await cluster.pass_time(draw.uniform(1, 8))
            running = await _running(cluster)
            made |= {one["metadata"]["name"] for one in running}
            assert len(running) <= 1
            if running and draw.random() < 0.1:
                await _end(cluster, running[0])
        assert storm.happened
        storm.calm()
        for one in await _running(cluster):
            await _end(cluster, one)
        await cluster.pass_time(90)
        status = (await cluster.get(CRON_JOBS, "tick"))["status"]
        (running,) = [await _running(cluster)]
        assert [one["name"] for one in status["active"]] == [one["metadata"]["name"] for one in running]
        assert len(made) > 5
        assert len(await cluster.all(JOBS)) == len(running) + 5
