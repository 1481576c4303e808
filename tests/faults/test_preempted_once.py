"""Who is told to stop for others stops once, although its pods take their time, the fleet has no node to spare, and
everybody hears of everything late: victims were admitted again on their own ending pods, up to four times."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.calm_clusters import (
    BESIDE_A_SCHEDULER,
    PARTS,
    add_gpu_queue,
    calm_cluster,
    is_true,
    queued,
    workload_of,
)
from build.fleets import machine
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES
from shoal.client.kind import JOBS

_TWO = (machine("n0", gpus=8), machine("n1", gpus=8))
_BY_PRIORITY = {"withinClusterQueue": "LowerPriority"}
_EVERYBODY = pytest.mark.parametrize("parts", [PARTS, BESIDE_A_SCHEDULER], ids=["all of Shoal", "its queues alone"])
_LAG_S = 0.5
_LASTS = {"shoal.dev/stop-after": "8s"}


async def _evictions(cluster: SmallCluster, job: str) -> int:
    stats = (await workload_of(cluster, job)).get("status", {}).get("schedulingStats", {})
    return sum(one["count"] for one in stats.get("evictions", ()))


def _scheduled(parts: tuple[str, ...]) -> dict[str, str]:
    return {"schedulerName": "shoal" if "scheduler" in parts else "default-scheduler"}


@_EVERYBODY
@virtual
async def test_who_yields_to_a_higher_priority_yields_once(tmp_path: Path, parts: tuple[str, ...]) -> None:
    async with calm_cluster(tmp_path, *_TWO, parts=parts, lag_s=_LAG_S) as cluster:
        await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "h100"}, "spec": {}})
        await cluster.create(WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 1000})
        await add_gpu_queue(cluster, "a", 16, preemption=_BY_PRIORITY)
        pod = _scheduled(parts)
        await cluster.create(JOBS, queued("low", "a", 2, gpus=8, pod=pod, notes=_LASTS))
        await cluster.until(lambda: is_true(cluster, "low", "PodsReady"))
        await cluster.create(JOBS, queued("urgent", "a", 1, gpus=8, rank="urgent", pod=pod))
        await cluster.until(lambda: is_true(cluster, "urgent", "PodsReady"))
        await cluster.pass_time(20)
        assert await _evictions(cluster, "low") == 1
        assert not await is_true(cluster, "low", "QuotaReserved")


@_EVERYBODY
@virtual
async def test_who_gives_back_what_it_borrowed_does_so_once(tmp_path: Path, parts: tuple[str, ...]) -> None:
    async with calm_cluster(tmp_path, *_TWO, parts=parts, lag_s=_LAG_S) as cluster:
        await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "h100"}, "spec": {}})
        await add_gpu_queue(cluster, "a", 8, cohortName="all", preemption={"reclaimWithinCohort": "Any"})
        await add_gpu_queue(cluster, "b", 8, cohortName="all")
        pod = _scheduled(parts)
        await cluster.create(JOBS, queued("borrows", "b", 2, gpus=8, pod=pod, notes=_LASTS))
        await cluster.until(lambda: is_true(cluster, "borrows", "PodsReady"))
        await cluster.create(JOBS, queued("owns", "a", 1, gpus=8, pod=pod))
        await cluster.until(lambda: is_true(cluster, "owns", "PodsReady"))
        await cluster.pass_time(20)
        assert await _evictions(cluster, "borrows") == 1
        assert not await is_true(cluster, "borrows", "QuotaReserved")
