"""Parts of GPUs under KAI's scheduler, by its annotations: shared devices, and queues that count parts."""

from __future__ import annotations

from pathlib import Path

import msgspec

from build.kai_clusters import add_kai_queue, bound, kai_cluster, start_kai
from build.kai_owners import QUEUED, kai_pod
from build.live_schedulers import add_node
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.client.kind import PODS


async def _add(cluster: SmallCluster, name: str, **asks: str) -> None:
    body = kai_pod(name, QUEUED, gpus=0)
    body["metadata"]["annotations"] = {key.replace("_", "-"): text for key, text in asks.items()}
    await cluster.create(PODS, body)


async def _devices(cluster: SmallCluster, *names: str) -> list[list[str]]:
    """Which GPU each has, as the node is told."""
    notes = [(await cluster.get(PODS, name))["metadata"]["annotations"]["shoal.dev/devices"] for name in names]
    return sorted(msgspec.json.decode(note)["main"]["nvidia.com/gpu"] for note in notes)


@virtual
async def test_halves_share_a_gpu_and_a_queue_counts_them_as_halves(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=2)
        await add_kai_queue(cluster, "team", 2, limit=1.5)
        for index in range(4):
            await _add(cluster, f"half-{index}", gpu_fraction="0.5")
        await cluster.pass_time(10)
        started = await bound(cluster)
        assert len(started) == 3
        assert await _devices(cluster, *started) == [["0"], ["0"], ["1"]]
        status = (await cluster.get(KAI_QUEUES, "team"))["status"]
        assert status["allocated"]["nvidia.com/gpu"] == "1500m"
        assert status["requested"]["nvidia.com/gpu"] == "2"
        groups = await cluster.all(KAI_POD_GROUPS)
        (why,) = [one["status"]["schedulingConditions"] for one in groups if one["status"].get("schedulingConditions")]
        assert why[0]["reason"] == "OverLimit"


@virtual
async def test_parts_of_one_gpu_never_exceed_it_and_whole_gpus_are_whole(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=2, labels={"nvidia.com/gpu.memory": "40000"})
        await add_kai_queue(cluster, "team", 8)
        await _add(cluster, "most", gpu_fraction="0.7")
        await _add(cluster, "memory", gpu_memory="10000")
        await cluster.create(PODS, kai_pod("whole", QUEUED))
        await cluster.pass_time(10)
        assert await bound(cluster) == ["memory", "most", "whole"]
        await _add(cluster, "more", gpu_memory="8000")
        await cluster.pass_time(10)
        assert "more" not in await bound(cluster)
