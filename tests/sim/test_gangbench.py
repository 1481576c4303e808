"""The gang benchmark measures what it says: all of the gang in one block, and only where it can be."""

from __future__ import annotations

import pytest

from shoal.engine.facts import GPU_WHOLE
from shoal.sim.gangbench import EXACTLY, GPUS, PODS, GangBench


@pytest.mark.parametrize("exact", [False, True])
def test_the_gang_is_placed_whole_in_one_block(*, exact: bool) -> None:
    bench = GangBench(3, exact=exact)
    assert bench.round_s() > 0
    rows = {bench.cluster.pods[f"team/train-{index}"].row for index in range(PODS)}
    assert len(rows) >= EXACTLY == PODS // GPUS
    assert len({bench.cluster.labels.get(row, "example.com/block") for row in rows}) == 1
    if exact:
        assert len(rows) == EXACTLY
        assert bench.cluster.free[sorted(rows), GPU_WHOLE].sum() == 0
