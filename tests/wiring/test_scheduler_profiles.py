"""Several profiles of a KubeSchedulerConfiguration in one process, each for the pods that name it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from build.live_schedulers import add_node, condition, is_bound, places, pod
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.cli.run import run_choice
from shoal.cli.run_files import read_run_files
from shoal.client.kind import PODS
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.shoal import start_shoal

FIT = """\
  pluginConfig:
  - name: NodeResourcesFit
    args: {{scoringStrategy: {{type: {}, resources: [{{name: cpu, weight: 1}}]}}}}
"""
ONLY = """\
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]
"""
PLUGINS = "  plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 1}]}}\n"
TEXT = f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packs
{PLUGINS}{FIT.format("MostAllocated")}- schedulerName: spreads
{PLUGINS}{FIT.format("LeastAllocated")}- schedulerName: stays
{PLUGINS}{FIT.format("LeastAllocated")}{ONLY}"""


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[SmallCluster]:
    file = folder / "scheduler.yaml"
    file.write_text(TEXT)
    async with small_cluster(folder) as cluster:
        for name in ("n1", "n2", "n3"):
            await add_node(cluster, name, cpu="8", labels={"pool": "a" if name == "n3" else "b"})
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        try:
            await start_shoal(tasks, lambda _: cluster.api, run_choice(read_run_files([file])))
            tasks.start("caches", tasks.informers.run)
            yield cluster
        finally:
            await tasks.end()


async def placed(cluster: SmallCluster, scheduler: str, count: int) -> set[str]:
    """Where so many pods of one scheduler go, one after the other."""
    names = [f"{scheduler}-{number}" for number in range(count)]
    for name in names:
        await cluster.create(PODS, pod(name, cpu="1", schedulerName=scheduler))
        await cluster.until(lambda name=name: is_bound(cluster, name), 5)  # type: ignore[misc]
    there = await places(cluster)
    return {there[name] for name in names}


@virtual
async def test_pods_of_each_name_are_placed_by_their_own_scores(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        assert len(await placed(cluster, "packs", 3)) == 1
        assert len(await placed(cluster, "spreads", 8)) == 3
        # Equal asks: what one profile decided is not taken over by the other.
        packed = await cluster.create(PODS, pod("packs-last", cpu="1", schedulerName="packs"))
        await cluster.until(lambda: is_bound(cluster, packed["metadata"]["name"]), 5)
        there = Counter(node for node in (await places(cluster)).values())
        assert there[(await places(cluster))["packs-last"]] == max(there.values()) == 5


@virtual
async def test_affinity_that_a_profile_adds_holds_for_its_pods_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as cluster:
        assert await placed(cluster, "stays", 4) == {"n3"}
        assert "n1" in await placed(cluster, "spreads", 4)
        await cluster.create(PODS, pod("large", cpu="6", schedulerName="stays"))
        await cluster.pass_time(5)
        words = (await condition(cluster, "large"))["message"]
        assert "2 node(s) didn't match Pod's node affinity/selector" in words
