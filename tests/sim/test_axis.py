"""The load axis against a slow reading of the published rules, bin by bin."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.sim.axis import MARKS, Curves, curves

steps = st.lists(
    st.tuples(st.integers(0, 3000), st.booleans(), st.floats(0, 1, allow_nan=False)), min_size=1, max_size=60
)


def slow_alloc(arrived: list[int], allocated: list[int], total: int) -> dict[int, float]:
    """One bin after the other, no array: the rule as one would tell it."""
    gpus = total // 1000
    bins = [round(load / gpus / 10) for load in arrived]
    alloc = [round(use / gpus / 10, 2) for use in allocated]
    found: dict[int, float] = {}
    for mark in range(bins[-1] + 2):
        own = [value for at, value in zip(bins, alloc, strict=True) if at == mark]
        near = [value for at, value in zip(bins, alloc, strict=True) if abs(at - mark) <= 1]
        if own or near:
            found[mark] = fmean(own or near)
        elif mark - 1 in found:
            found[mark] = found[mark - 1]
    return found


@given(history=steps, gpus=st.integers(1, 40))
def test_every_bin_equals_the_slow_reading(history: list[tuple[int, bool, float]], gpus: int) -> None:
    total = 1000 * gpus
    arrived, allocated, frag = [], [], []
    load = use = 0
    for milli, fits, part in history:
        load += milli
        use += milli if fits and use + milli <= total else 0
        arrived.append(load)
        allocated.append(use)
        frag.append(part * (total - use))
    result = curves(arrived, allocated, frag, total)
    wanted = {mark: value for mark, value in slow_alloc(arrived, allocated, total).items() if mark <= 1000}
    assert result.alloc == pytest.approx(wanted, abs=0.00501)
    assert set(result.frag_amount) == set(result.frag_ratio) == set(wanted)
    assert all(0 <= value <= 100 for value in result.frag_ratio.values())
    assert all(result.frag_amount[mark] <= 100.01 - result.alloc[mark] for mark in wanted)


def test_a_load_halfway_between_bins_goes_to_the_even_one() -> None:
    result = curves([805, 815], [100, 200], [0.0, 0.0], 1000)
    assert result.alloc[80] == 10.0
    assert result.alloc[82] == 20.0


def test_the_mean_of_a_bin_is_over_values_rounded_first() -> None:
    assert curves([10_000, 10_001], [3_333, 3_334], [0, 0], 1_000_000).alloc[1] == 0.33


def test_an_empty_bin_takes_its_neighbours_on_both_sides() -> None:
    result = curves([100, 120], [100, 110], [50.0, 70.0], 1000)
    assert result.alloc[11] == 10.5
    assert result.frag_amount[11] == 6.0


def test_a_gap_wider_than_the_neighbours_keeps_the_last_state() -> None:
    result = curves([100, 900], [100, 200], [0.0, 0.0], 1000)
    assert result.alloc[50] == 10.0
    assert result.alloc[90] == 20.0


def test_fragments_are_shares_of_the_fleet_and_of_what_is_idle() -> None:
    result = curves([500], [500], [250.0], 1000)
    assert result.frag_amount[50] == 25.0
    assert result.frag_ratio[50] == 50.0


def test_a_full_fleet_has_no_fragments() -> None:
    assert curves([1000], [1000], [0.0], 1000).frag_ratio[100] == 0.0


def test_marks_beyond_the_run_are_absent() -> None:
    loads = list(range(10, 1001, 10))
    result = curves(loads, loads, [0.0] * len(loads), 1000).at(*MARKS)
    assert list(result.alloc) == [80, 90, 95, 100]


def test_nothing_arrived_means_no_curve() -> None:
    assert curves([], [], [], 1000) == Curves({}, {}, {})


def test_an_absurd_overload_keeps_the_axis_short() -> None:
    assert max(curves([10**12], [0], [0.0], 1000).alloc, default=0) <= 1000
