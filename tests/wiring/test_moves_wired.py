"""`preemption.moves`: pods may be moved, and whoever put the parts together saw to their successors."""

from __future__ import annotations

from pathlib import Path

from build.live_schedulers import add_node, is_bound, places, pod
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.cli.run import run_choice
from shoal.cli.run_files import read_run_files
from shoal.client.kind import PODS
from shoal.client.port import Deletion
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.shoal import start_shoal

TEXT = """\
apiVersion: config.shoal.dev/v1alpha1
kind: ShoalConfiguration
controllers: [scheduler]
preemption: {moves: true}
"""
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}


@virtual
async def test_the_place_of_a_moved_pods_successor_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(TEXT)
    async with small_cluster(tmp_path) as cluster:
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        try:
            await start_shoal(tasks, lambda _: cluster.api, run_choice(read_run_files([file])))
            tasks.start("caches", tasks.informers.run)
            for name, node in (("a", "n1"), ("b", "n2")):
                await add_node(cluster, node, gpus=2)
                one = pod(name, gpus=1, nodeName=node)
                one["metadata"]["ownerReferences"] = [JOB]
                await cluster.create(PODS, one)
                started = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
                await cluster.patch(PODS, name, {"status": started}, subresource="status")
            await cluster.pass_time(1)
            await cluster.create(PODS, pod("big", gpus=2))
            await cluster.pass_time(3)
            pods = await cluster.pods()
            (moved,) = [one["metadata"]["name"] for one in pods if "deletionTimestamp" in one["metadata"]]
            await cluster.create(PODS, pod("thief", gpus=1))
            await cluster.delete(PODS, moved, Deletion(grace_s=0))
            await cluster.pass_time(5)
            assert not await is_bound(cluster, "thief")
            successor = pod("successor", gpus=1)
            successor["metadata"]["ownerReferences"] = [JOB]
            await cluster.create(PODS, successor)
            await cluster.until(lambda: is_bound(cluster, "successor", "big"), 5)
            there = await places(cluster)
            assert there["successor"] == {"a": "n2", "b": "n1"}[moved]
        finally:
            await tasks.end()
