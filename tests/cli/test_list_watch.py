"""`shoal get pods --watch` on a running cluster: rows are printed as they change, and nothing is read in between."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.cli.list_watch import follow
from shoal.client.kind import NODES


@virtual
async def test_the_cluster_is_read_again_after_a_change_and_not_before(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        read: list[int] = []
        again = asyncio.Event()

        async def present() -> None:
            read.append(len((await cluster.api.list(NODES)).items))
            again.set()

        following = asyncio.ensure_future(follow(cluster.api, present, cluster.clock))
        await again.wait()
        await cluster.pass_time(60)
        quiet = len(read)
        await cluster.pass_time(600)
        assert len(read) == quiet
        assert read[-1] == 0
        again.clear()
        await cluster.create(NODES, {"metadata": {"name": "new"}})
        await again.wait()
        assert read[-1] == 1
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following
