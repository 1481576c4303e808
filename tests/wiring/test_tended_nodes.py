"""Nobody simulates a node that has its fleet."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.small_clusters import SmallCluster, small_cluster
from shoal.client.kind import NODES
from shoal.units.errors import UserError
from shoal.wiring.simulator_check import check_not_simulated


async def _node(cluster: SmallCluster, name: str, url: str) -> None:
    await cluster.create(NODES, {"metadata": {"name": name, "annotations": {"shoal.dev/endpoint": url}}})


async def test_a_node_whose_doors_answer_is_left_to_its_fleet(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        await _node(cluster, "a", f"https://127.0.0.1:{port}")
        await _node(cluster, "b", f"https://127.0.0.1:{port}")
        with pytest.raises(UserError, match=f"node a and 1 more is already simulated by another process, at .*:{port}"):
            await check_not_simulated(cluster.api, ["a", "b"])
        await check_not_simulated(cluster.api, ["c"])
        server.close()
        await server.wait_closed()
        await check_not_simulated(cluster.api, ["a", "b"])


async def test_what_cannot_be_dialled_is_no_fleet(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for name, url in (("a", "https://127.0.0.1:99999"), ("b", "nonsense"), ("c", "")):
            await _node(cluster, name, url)
        await check_not_simulated(cluster.api, ["a", "b", "c"])
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        await _node(cluster, "d", f"https://127.0.0.1:{port}")
        with pytest.raises(UserError, match=f"node d is already simulated by another process, at .*:{port}"):
            await check_not_simulated(cluster.api, ["a", "b", "c", "d"])
        server.close()
        await server.wait_closed()
