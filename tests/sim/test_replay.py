"""Replaying feeds every arrival once, in order, and tells how far it is."""

from __future__ import annotations

from shoal.sim.replay import curves_of, reach_percent, replay


class Takers:
    """Stands in for a packing run: takes what fits one GPU after the other, and remembers what came."""

    def __init__(self, total_gpu_milli: int) -> None:
        self.total_gpu_milli = total_gpu_milli
        self.seen: list[int] = []
        self.arrived_milli: list[int] = []
        self.allocated_milli: list[int] = []
        self.frag_milli: list[float] = []

    def arrive(self, pod_row: int) -> bool:
        self.seen.append(pod_row)
        self.arrived_milli.append(1000 * len(self.seen))
        self.allocated_milli.append(min(self.arrived_milli[-1], self.total_gpu_milli))
        self.frag_milli.append(0.0)
        return self.arrived_milli[-1] <= self.total_gpu_milli


def test_every_arrival_comes_once_and_in_order() -> None:
    run = Takers(600_000)
    heard: list[int] = []
    rows = [k % 7 for k in range(601)]
    replay(run, rows, heard.append)
    assert run.seen == rows
    assert heard == [250, 500, 601]


def test_the_curves_are_those_of_the_run() -> None:
    run = Takers(100_000)
    replay(run, range(130))
    assert reach_percent(run) == 130
    assert curves_of(run).at(80, 100, 130).alloc == {80: 80.0, 100: 100.0, 130: 100.0}


def test_a_run_without_arrivals_reached_nothing() -> None:
    assert reach_percent(Takers(1000)) == 0
