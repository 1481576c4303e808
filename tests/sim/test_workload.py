"""Our own arrivals obey the published rules: checked against a loop that follows them one draw at a time."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.sim.arrivals import Arrivals
from shoal.sim.draws import Draws
from shoal.sim.traces.openb import TraceNode, TracePod
from shoal.sim.workload import draw_arrivals, total_gpu_milli
from shoal.units.errors import UserError


def fleet(*gpus: int) -> list[TraceNode]:
    return [TraceNode(f"n{k}", 1, 1, count, "T4") for k, count in enumerate(gpus)]


def pod(number: int, num_gpu: int, gpu_milli: int = 1000) -> TracePod:
    return TracePod(f"p{number:04d}", 1, 1, num_gpu, gpu_milli if num_gpu else 0, "")


def requests(pods: list[TracePod], arrivals: Arrivals) -> int:
    return sum(pods[row].requested_milli for row in arrivals.pod_rows.tolist())


asks = st.one_of(
    st.tuples(st.just(1), st.integers(1, 1000)), st.tuples(st.integers(2, 8), st.just(1000)), st.just((0, 0))
)
pod_lists = st.lists(asks, min_size=1, max_size=40).map(lambda found: [pod(k, n, m) for k, (n, m) in enumerate(found)])
fleets = st.lists(st.integers(0, 8), min_size=1, max_size=6).filter(any).map(lambda gpus: fleet(*gpus))


@given(pods=pod_lists.filter(lambda pods: any(p.num_gpu for p in pods)), nodes=fleets, seed=st.integers(0, 2**32))
def test_clones_fill_up_to_the_limit_and_the_next_one_would_have_passed_it(
    pods: list[TracePod], nodes: list[TraceNode], seed: int
) -> None:
    limit = 1.3 * total_gpu_milli(nodes)
    originals = sum(p.requested_milli for p in pods)
    if originals >= limit:
        return
    arrivals = draw_arrivals(pods, nodes, 1.3, seed)
    rows = arrivals.pod_rows.tolist()
    assert Counter(rows[: len(pods)]) == Counter(range(len(pods)))

    by_name = sorted(range(len(pods)), key=lambda row: pods[row].name)
    draws = (by_name[k] for k in Draws(seed, "clones").below(len(pods), 70_000).tolist())
    requested, clones = originals, []
    for row in draws:
        if requested + pods[row].gpu_milli > limit:
            break
        clones.append(row)
        requested += pods[row].requested_milli
    assert rows[len(pods) :] == clones


@given(pods=pod_lists, nodes=fleets, seed=st.integers(0, 2**32))
def test_a_list_that_asks_for_more_is_cut_to_the_limit_and_keeps_its_order(
    pods: list[TracePod], nodes: list[TraceNode], seed: int
) -> None:
    limit = 0.3 * total_gpu_milli(nodes)
    if sum(p.requested_milli for p in pods) <= limit:
        return
    try:
        arrivals = draw_arrivals(pods, nodes, 0.3, seed)
    except UserError as error:
        assert "leaves no pods" in str(error)  # noqa: PT017 - either outcome is right
        return
    assert requests(pods, arrivals) <= limit
    kept = arrivals.pod_rows.tolist()
    shuffled = Draws(seed, "shuffle").permutation(len(pods)).tolist()
    assert kept == [row for row in shuffled if row in set(kept)]


def test_cutting_stops_as_soon_as_the_rest_fits() -> None:
    pods = [pod(k, 1) for k in range(100)]
    assert requests(pods, draw_arrivals(pods, fleet(8, 8), 0.5, 7)) == 8000


def test_the_limit_test_looks_at_the_request_per_gpu() -> None:
    pods = [pod(0, 8)]
    assert requests(pods, draw_arrivals(pods, fleet(8, 1), 1.0, 7)) == 16000


@pytest.mark.parametrize("load", [0.5, 1.3])
def test_the_order_of_rows_in_the_files_changes_nothing(load: float) -> None:
    pods = [pod(k, 1, 100 + k) for k in range(50)]
    mixed = random.Random(1).sample(pods, len(pods))
    nodes = fleet(8, 4, 2)
    first, second = draw_arrivals(pods, nodes, load, 9), draw_arrivals(mixed, nodes[::-1], load, 9)
    assert [pods[row].name for row in first.pod_rows.tolist()] == [mixed[row].name for row in second.pod_rows.tolist()]
    assert first.ranks.tolist() == second.ranks.tolist()


def test_a_higher_load_only_appends() -> None:
    pods = [pod(k, 1, 100 + k) for k in range(50)]
    low, high = (draw_arrivals(pods, fleet(8, 8), load, 9) for load in (1.0, 1.5))
    assert high.pod_rows.tolist()[: len(low.pod_rows)] == low.pod_rows.tolist()
    assert high.ranks.tolist() == low.ranks.tolist()


def test_ranks_are_an_order_of_the_nodes_and_change_with_the_seed() -> None:
    nodes = fleet(*[1] * 30)
    one, two = (draw_arrivals([pod(0, 1)], nodes, 1.0, seed).ranks.tolist() for seed in (1, 2))
    assert sorted(one) == sorted(two) == list(range(30))
    assert one != two


def test_draws_are_the_same_for_ever() -> None:
    assert Draws(42, "shuffle").permutation(8).tolist() == [1, 0, 6, 7, 4, 5, 3, 2]
    assert Draws(42, "clones").below(1000, 4).tolist() == [717, 725, 105, 199]


def test_draws_are_uniform_enough() -> None:
    counts = Counter(Draws(3, "x").below(10, 20_000).tolist())
    assert all(1850 < counts[k] < 2150 for k in range(10))
    firsts = Counter(int(Draws(seed, "x").permutation(5)[0]) for seed in range(2000))
    assert all(330 < firsts[k] < 470 for k in range(5))


REFUSED = {
    "a load of zero": (fleet(1), [pod(0, 1)], 0.0, "a load of 0 is outside"),
    "a negative load": (fleet(1), [pod(0, 1)], -1.0, "a load of -1 is outside"),
    "a load that is no number": (fleet(1), [pod(0, 1)], float("nan"), "a load of nan is outside"),
    "an infinite load": (fleet(1), [pod(0, 1)], float("inf"), "a load of inf is outside"),
    "a fleet without gpus": (fleet(0), [pod(0, 1)], 1.0, "the fleet has no GPUs"),
    "pods without gpus": (fleet(1), [pod(0, 0)], 1.0, "no pod requests a GPU"),
    "clones beyond counting": (
        fleet(*[128] * 8),
        [pod(0, 1, 1), *(pod(k, 0) for k in range(1, 9))],
        1.3,
        "needs about",
    ),
    "a load no pod is small enough for": (fleet(1), [pod(0, 1)], 0.1, "leaves no pods"),
}


@pytest.mark.parametrize(("nodes", "pods", "load", "complaint"), REFUSED.values(), ids=REFUSED.keys())
def test_arrivals_are_refused_for(nodes: list[TraceNode], pods: list[TracePod], load: float, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        draw_arrivals(pods, nodes, load, 1)
