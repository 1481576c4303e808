"""The watcher of the storms sees what it is there to see: each law is broken once, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.cluster_laws import Laws
from build.fleets import pod
from build.sizes import sizes
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.client.work_queue import WorkQueue

_STARTED = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z")


def _running(device: str = "", started: str = _STARTED[0]) -> Obj:
    status: Obj = {"name": "main", "ready": True, "restartCount": 0, "image": "", "imageID": ""}
    status["state"] = {"running": {"startedAt": started}}
    if device:
        resources = [{"resourceID": device, "health": "Healthy"}]
        status["allocatedResourcesStatus"] = [{"name": "nvidia.com/gpu", "resources": resources}]
    return {"phase": "Running", "containerStatuses": [status]}


async def _share(cluster: SmallCluster) -> None:
    for name in ("a", "b"):
        await cluster.create(PODS, pod(name))
        await cluster.patch(PODS, name, {"status": _running("GPU-1")}, "status")


async def _run_twice(cluster: SmallCluster) -> None:
    await cluster.create(PODS, pod("a", restartPolicy="Never"))
    for started in _STARTED:
        await cluster.patch(PODS, "a", {"status": _running(started=started)}, "status")
        await cluster.pass_time(1)


async def _crowd(cluster: SmallCluster) -> None:
    await cluster.create(NODES, {"metadata": {"name": "node-0"}})
    await cluster.patch(NODES, "node-0", {"status": {"capacity": {"pods": "1"}}}, "status")
    await cluster.pass_time(1)
    for name in ("a", "b"):
        await cluster.create(PODS, pod(name))


@pytest.mark.parametrize(
    ("crime", "words"),
    [(_share, "GPU-1 is held by ['a', 'b']"), (_run_twice, "a ran twice"), (_crowd, "node-0 is given 2000000000 n")],
)
@virtual
async def test_a_broken_law_is_seen(crime: Any, words: str, tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        laws = Laws(cluster)
        laws.watch(dict.fromkeys((PODS, NODES)))
        await cluster.pass_time(1)
        await crime(cluster)
        await cluster.pass_time(1)
        assert any(one.startswith(words) for one in laws.broken), laws.broken
        await laws.end()


@virtual
async def test_what_a_queue_remembers_is_measured(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        queue: WorkQueue[str] = WorkQueue(cluster.clock, cluster.draw)
        for at in range(50):
            queue.retry(f"key-{at}")
        assert sizes([queue])["WorkQueue._failures"] == 50
