"""Pods of an evicted Workload take time to terminate. Until then no Workload gets their capacity."""

from __future__ import annotations

from pathlib import Path

from build.live_schedulers import add_node, is_bound
from build.queue_admission import (
    add_flavor,
    add_queue,
    is_so,
    queued_cluster,
    start_admission,
    start_pods,
    stop,
    submit,
    until_so,
)
from build.virtual_time import virtual
from shoal.client.kind import PODS
from shoal.client.port import Deletion


@virtual
async def test_a_preempted_workload_is_not_admitted_on_the_capacity_of_its_own_terminating_pods(
    tmp_path: Path,
) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_node(cluster, "n1", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster, cpu="4", preemption={"withinClusterQueue": "LowerPriority"})
        await submit(cluster, "low", cpu="2", count=2, priority=1)
        await until_so(cluster, "low")
        await start_pods(cluster, "low", 2, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "low-0", "low-1"))
        await submit(cluster, "high", cpu="2", count=2, priority=100)
        await until_so(cluster, "low", "Evicted")
        # Nothing runs that could end them here: they stay for as long as the test likes.
        for name in ("low-0", "low-1"):
            await cluster.delete(PODS, name, Deletion(grace_s=30))
        await stop(cluster, "low")
        await cluster.pass_time(10)
        assert not await is_so(cluster, "low")
        assert not await is_so(cluster, "high"), "its room is not free yet"
        for name in ("low-0", "low-1"):
            await cluster.delete(PODS, name, Deletion(grace_s=0))
        await until_so(cluster, "high")
        assert not await is_so(cluster, "low")
