"""`shoal get pods --watch` on a running cluster: rows are printed as they change, and nothing is read in between."""

from __future__ import annotations

import asyncio
from itertools import pairwise
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


@virtual
async def test_a_cluster_that_takes_long_to_read_is_read_less_often_however_often_it_changes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        spans: list[tuple[float, float]] = []

        async def present() -> None:
            began = cluster.clock.seconds()
            await cluster.clock.sleep(3)
            spans.append((began, cluster.clock.seconds()))

        following = asyncio.ensure_future(follow(cluster.api, present, cluster.clock))
        for number in range(200):
            await cluster.create(NODES, {"metadata": {"name": f"n{number}"}})
            await cluster.pass_time(1)
        pauses = [after[0] - before[1] for before, after in pairwise(spans)]
        assert len(pauses) >= 4
        assert min(pauses) >= 30
        assert max(pauses) < 32
        # After a quiet time a change is shown at once.
        await cluster.pass_time(300)
        count, changed = len(spans), cluster.clock.seconds()
        await cluster.create(NODES, {"metadata": {"name": "late"}})
        await cluster.pass_time(10)
        assert [began - changed < 1 for began, _ in spans[count:]] == [True]
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following
