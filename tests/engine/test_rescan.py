"""The plain way and the incremental way must give the same answer."""

from __future__ import annotations

import pytest

from shoal.engine.profile import POLICIES
from shoal.engine.rescan import Rescan
from shoal.sim.enginebench import Bench


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "Random"])
def test_under_load_a_rescan_of_all_nodes_chooses_the_nodes_that_shapes_choose(policy: str) -> None:
    bench = Bench(60, seed=3, policy=policy)
    bench.fill()
    for _ in range(4):
        bench.round(10, 10)
    rescan = Rescan(bench.cluster, bench.placement.profile)
    charges = [bench.cluster.charge(ask) for ask in bench.asks]
    assert [rescan.best(charge) for charge in charges] == [bench.placement.shape(charge).best() for charge in charges]


def test_in_a_fleet_too_large_to_scan_the_folded_keys_choose_what_a_rescan_chooses() -> None:
    bench = Bench(16_500, seed=3)
    rescan = Rescan(bench.cluster, bench.placement.profile)
    bench.fill(pods=300)
    charges = [bench.cluster.charge(ask) for ask in bench.asks]
    for _ in range(3):
        bench.round(50, 50)
        shapes = [bench.placement.shape(charge) for charge in charges]
        assert [shape.best() for shape in shapes] == [rescan.best(charge) for charge in charges]
        assert [shape.best() for shape in shapes] == [int(shape.keys().argmax()) for shape in shapes]


def test_without_nodes_a_rescan_finds_none() -> None:
    bench = Bench(0, seed=3)
    assert Rescan(bench.cluster, bench.placement.profile).best(bench.cluster.charge(bench.asks[0])) == -1
