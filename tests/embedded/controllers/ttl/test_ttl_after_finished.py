"""Jobs go their time after their end, and not before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import JOBS
from shoal.embedded.controllers.ttl.controller import ttl_after_finished_controller


async def _ended_job(cluster: SmallCluster, name: str, end: str = "Complete", **spec: Any) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    await cluster.create(JOBS, {"metadata": {"name": name}, "spec": {"template": {"spec": pod}} | spec})
    now = cluster.clock.text()
    herald = "SuccessCriteriaMet" if end == "Complete" else "FailureTarget"
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now} for kind in (herald, end)
    ]
    status = {"startTime": now, "conditions": conditions} | ({"completionTime": now} if end == "Complete" else {})
    await cluster.patch(JOBS, name, {"status": status}, subresource="status")


async def _left(cluster: SmallCluster) -> set[str]:
    """Those that nobody deletes. Foreground deletion leaves the rest to the garbage collector."""
    return {job["metadata"]["name"] for job in await cluster.all(JOBS) if "deletionTimestamp" not in job["metadata"]}


@virtual
async def test_jobs_go_their_time_after_their_end_however_they_ended(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [ttl_after_finished_controller]) as cluster:
        await _ended_job(cluster, "good", ttlSecondsAfterFinished=100)
        await _ended_job(cluster, "bad", "Failed", ttlSecondsAfterFinished=100)
        await _ended_job(cluster, "lasting")
        await cluster.pass_time(98)
        assert await _left(cluster) == {"good", "bad", "lasting"}
        await cluster.pass_time(5)
        assert await _left(cluster) == {"lasting"}
        good = await cluster.get(JOBS, "good")
        assert "foregroundDeletion" in good["metadata"]["finalizers"]


@virtual
async def test_somebody_who_asks_for_more_time_gets_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [ttl_after_finished_controller]) as cluster:
        await _ended_job(cluster, "job", ttlSecondsAfterFinished=100)
        await cluster.pass_time(90)
        await cluster.patch(JOBS, "job", {"spec": {"ttlSecondsAfterFinished": 1000}})
        await cluster.pass_time(800)
        assert await _left(cluster) == {"job"}
        await cluster.patch(JOBS, "job", {"spec": {"ttlSecondsAfterFinished": 0}})
        await cluster.pass_time(1)
        assert await _left(cluster) == set()
