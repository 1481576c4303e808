"""A running cluster changes the project whose queues decide, and changes back: what runs stays, what waits is decided
by the new one. The steps are those of docs/switching.md.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.kai_clusters import add_kai_queue, bound, kai_cluster
from build.live_schedulers import add_node, pod
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.cli.run import run_choice
from shoal.cli.run_files import read_run_files
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, VOLCANO_QUEUES, WORKLOADS
from shoal.client.kind import PODS
from shoal.client.port import Deletion, Patch
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.shoal import start_shoal

_GPU = "nvidia.com/gpu"
_PARTS = {
    "kueue": "[scheduler, queues, pods, gatekeeper]",
    "kueue without the scheduler": "[queues, pods, gatekeeper]",
    "kai": "[scheduler, kai, pods, gatekeeper]",
    "volcano": "[scheduler, volcano, pods, gatekeeper]",
}
"""GPUs that queue team may use: 2 of Kueue, 3 of KAI, 4 of Volcano."""


@asynccontextmanager
async def _shoal(cluster: SmallCluster, folder: Path, discipline: str) -> AsyncIterator[None]:
    file = folder / f"{discipline}.yaml"
    head = "apiVersion: config.shoal.dev/v1alpha1\nkind: ShoalConfiguration\n"
    file.write_text(f"{head}controllers: {_PARTS[discipline]}\nschedulerNames: [shoal, volcano, kai-scheduler]\n")
    tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
    try:
        await start_shoal(tasks, lambda _: cluster.api, run_choice(read_run_files([file])))
        tasks.start("caches", tasks.informers.run)
        yield
    finally:
        await tasks.end()


@asynccontextmanager
async def _cluster(folder: Path) -> AsyncIterator[SmallCluster]:
    async with kai_cluster(folder, "kueue", "volcano") as cluster:
        await add_node(cluster, "n1", gpus=8, cpu="64")
        await _queues(cluster)
        yield cluster


async def _queues(cluster: SmallCluster) -> None:
    """One queue in each project."""
    await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "any"}, "spec": {}})
    quota = [{"name": resource, "nominalQuota": amount} for resource, amount in (("cpu", "64"), (_GPU, "2"))]
    group = {"coveredResources": ["cpu", _GPU], "flavors": [{"name": "any", "resources": quota}]}
    spec = {"namespaceSelector": {}, "resourceGroups": [group]}
    await cluster.create(CLUSTER_QUEUES, {"metadata": {"name": "team"}, "spec": spec})
    await cluster.create(LOCAL_QUEUES, {"metadata": {"name": "team"}, "spec": {"clusterQueue": "team"}})
    await add_kai_queue(cluster, "team", 3, limit=3)
    await cluster.create(
        VOLCANO_QUEUES, {"metadata": {"name": "team"}, "spec": {"weight": 1, "capability": {_GPU: "4"}}}
    )


async def _submit(cluster: SmallCluster, *names: str) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "team", "kai.scheduler/queue": "team"}
    notes = {"scheduling.volcano.sh/queue-name": "team"}
    for name in names:
        made = pod(name, gpus=1, cpu="1", labels=dict(labels), annotations=notes, schedulerName="volcano")
        await cluster.create(PODS, made)


async def _release(cluster: SmallCluster) -> None:
    """Pods that wait for Kueue's admission wait for it no more, and their Workloads are deleted."""
    for one in await cluster.pods():
        if one["spec"].get("schedulingGates"):
            steps = [
                {"op": "remove", "path": "/spec/schedulingGates"},
                {"op": "remove", "path": "/metadata/finalizers"},
                {"op": "remove", "path": "/metadata/labels/kueue.x-k8s.io~1managed"},
            ]
            await cluster.api.patch(PODS, "default", one["metadata"]["name"], Patch("json", steps))
    for one in await cluster.all(WORKLOADS):
        if not (one.get("status") or {}).get("admission"):
            await cluster.delete(WORKLOADS, one["metadata"]["name"])


async def _create_again(cluster: SmallCluster) -> None:
    """Pods that wait are deleted, and their owner creates them anew."""
    waiting = [one["metadata"]["name"] for one in await cluster.pods() if not one["spec"].get("nodeName")]
    for name in waiting:
        await cluster.delete(PODS, name, Deletion(grace_s=0))
    await _submit(cluster, *waiting)


async def _running(cluster: SmallCluster) -> set[str]:
    """Nothing may be on its way out."""
    assert not [one for one in await cluster.pods() if "deletionTimestamp" in one["metadata"]]
    return {*await bound(cluster)}


async def _gated(cluster: SmallCluster) -> set[str]:
    return {one["metadata"]["name"] for one in await cluster.pods() if one["spec"].get("schedulingGates")}


_NAMES = [f"p{at}" for at in range(5)]


@pytest.mark.parametrize(("other", "runs"), [("kai", 3), ("volcano", 4)], ids=["KAI", "Volcano"])
@virtual
async def test_from_kueue_to_another_project_and_back(tmp_path: Path, other: str, runs: int) -> None:
    async with _cluster(tmp_path) as cluster:
        async with _shoal(cluster, tmp_path, "kueue"):
            await cluster.pass_time(10)
            await _submit(cluster, *_NAMES)
            await cluster.pass_time(10)
            first = await _running(cluster)
            assert len(first) == 2
            assert await _gated(cluster) == {*_NAMES} - first
        async with _shoal(cluster, tmp_path, other):
            await cluster.pass_time(10)
            assert await _running(cluster) == first
            await _release(cluster)
            await cluster.pass_time(20)
            second = await _running(cluster)
            assert first < second
            assert len(second) == runs, "those of before count"
            await _submit(cluster, "new")
            await cluster.pass_time(5)
            assert await _gated(cluster) == set(), "Kueue's queues do not decide, and would never admit a pod"
            await cluster.delete(PODS, "new", Deletion(grace_s=0))
        async with _shoal(cluster, tmp_path, "kueue without the scheduler"):
            await cluster.pass_time(10)
            await _create_again(cluster)
            await cluster.pass_time(10)
            assert await _gated(cluster) == {*_NAMES} - second
        async with _shoal(cluster, tmp_path, "kueue"):
            await cluster.pass_time(30)
            assert await _running(cluster) == second, "the quota of Kueue is used by those that it admitted"
            for name in first:
                await cluster.patch(PODS, name, {"status": {"phase": "Succeeded"}}, "status")
            await cluster.pass_time(20)
            assert await _running(cluster) == {*_NAMES}


@pytest.mark.parametrize(("other", "runs"), [("kai", 3), ("volcano", 4)], ids=["KAI", "Volcano"])
@virtual
async def test_a_queue_keeps_its_limit_where_pods_were_released_before_its_project_decides(
    tmp_path: Path, other: str, runs: int
) -> None:
    """Nothing has made PodGroups for the running pods when the first waiting ones could be placed."""
    async with _cluster(tmp_path) as cluster:
        async with _shoal(cluster, tmp_path, "kueue"):
            await cluster.pass_time(10)
            await _submit(cluster, *_NAMES)
            await cluster.pass_time(10)
            assert len(await _running(cluster)) == 2
        await _release(cluster)
        async with _shoal(cluster, tmp_path, other):
            await cluster.pass_time(20)
            assert len(await _running(cluster)) == runs


@virtual
async def test_from_kai_to_volcano_and_back(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        seen: set[str] = set()
        for discipline, runs in (("kai", 3), ("volcano", 4), ("kai", 4)):
            async with _shoal(cluster, tmp_path, discipline):
                await cluster.pass_time(10)
                if not seen:
                    await _submit(cluster, *_NAMES)
                await cluster.pass_time(20)
                running = await _running(cluster)
                assert seen <= running
                assert len(running) == runs
                seen = running
