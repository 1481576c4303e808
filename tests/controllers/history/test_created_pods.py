"""The recorder judges new pods by the admission rules, each once."""

from __future__ import annotations

from pathlib import Path

from build.recorders import RecorderRun
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.policy.admission_rules.past import CreatedPods
from shoal.store.history.memory_tables import MemoryTables

LATER_MS = 1 << 50


async def create(cluster: SmallCluster, name: str, job: str = "", volume: Obj | None = None) -> None:
    meta: Obj = {"name": name}
    if job:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "u", "controller": True}
        meta["ownerReferences"] = [owner]
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"limits": {"memory": "1Gi"}}}
    await cluster.create(
        PODS, {"metadata": meta, "spec": {"containers": [container], "volumes": [volume] if volume else []}}
    )


def created(run: RecorderRun) -> list[tuple[str, str, int, tuple[str, ...]]]:
    found: list[CreatedPods] = run.history.created.between(0, LATER_MS)
    return [(one.kind, one.name, one.pods, one.rules) for one in found]


@virtual
async def test_pods_are_counted_by_workload_and_once_also_after_a_restart(tmp_path: Path) -> None:
    device: Obj = {"name": "v", "hostPath": {"path": "/dev/nvidia0"}}
    async with small_cluster(tmp_path) as cluster:
        tables = MemoryTables()
        first = RecorderRun(cluster, tables)
        await cluster.pass_time(5)
        await create(cluster, "a-0", "a")
        await create(cluster, "a-1", "a")
        await create(cluster, "b", volume=device)
        await cluster.pass_time(30)
        expected = [("Job", "a", 2, ()), ("Pod", "b", 1, ("SHL-320",))]
        assert sorted(created(first)) == expected
        await first.kill()
        await create(cluster, "c")
        await cluster.pass_time(10)
        second = RecorderRun(cluster, tables)
        await cluster.pass_time(30)
        assert sorted(created(second)) == [*expected, ("Pod", "c", 1, ())]
        await second.kill()
