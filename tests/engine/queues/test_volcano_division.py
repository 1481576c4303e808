"""Shares by weight: compared with a second division that is exact, and held to its laws."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.engine.queues.disciplines.volcano.division import WeightedQueue, divide, real_capability


def level(total: int, bounds: list[tuple[int, int]]) -> list[Fraction]:
    """The exact shares of one resource for (weight, most): all queues rise together until their own most."""
    left, shares = Fraction(total), [Fraction(0)] * len(bounds)
    rising = {at for at, (weight, most) in enumerate(bounds) if weight and most}
    while rising and left > 0:
        weight = sum(bounds[at][0] for at in rising)
        step = min(left / weight, *((bounds[at][1] - shares[at]) / bounds[at][0] for at in rising))
        for at in rising:
            shares[at] += step * bounds[at][0]
        left -= step * weight
        rising = {at for at in rising if shares[at] < bounds[at][1]}
    return shares


def queues(bounds: list[tuple[int, int]]) -> list[WeightedQueue]:
    return [WeightedQueue(f"q{at}", weight, {"cpu": most}, {"cpu": 1e12}) for at, (weight, most) in enumerate(bounds)]


_BOUNDS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 50_000)), min_size=1, max_size=6)


@settings(max_examples=examples(40))
@given(total=st.integers(1, 100_000), bounds=_BOUNDS)
def test_shares_of_one_resource_are_those_of_the_exact_division(total: int, bounds: list[tuple[int, int]]) -> None:
    found = divide({"cpu": total}, queues(bounds))
    for at, share in enumerate(level(total, bounds)):
        assert found[f"q{at}"].get("cpu", 0) == pytest.approx(float(share), abs=0.5)


@settings(max_examples=examples(40))
@given(total=st.integers(1, 100_000), bounds=_BOUNDS)
def test_shares_add_up_to_the_smaller_of_capacity_and_demand(total: int, bounds: list[tuple[int, int]]) -> None:
    found = divide({"cpu": total}, queues(bounds))
    demand = sum(most for _, most in bounds)
    assert sum(share.get("cpu", 0) for share in found.values()) == pytest.approx(min(total, demand), abs=0.5)


@settings(max_examples=examples(40))
@given(total=st.integers(1, 100_000), bounds=_BOUNDS, more=st.tuples(st.integers(0, 5), st.integers(0, 9_000)))
def test_a_share_does_not_shrink_with_weight_or_request(
    total: int, bounds: list[tuple[int, int]], more: tuple[int, int]
) -> None:
    (weight, most), *others = bounds
    before = divide({"cpu": total}, queues(bounds))["q0"].get("cpu", 0)
    after = divide({"cpu": total}, queues([(weight + more[0], most + more[1]), *others]))["q0"].get("cpu", 0)
    assert after >= before - 0.5


CPU = {"cpu": 12.0}


@pytest.mark.parametrize(
    ("weights", "request_of", "shares"),
    [
        ({"a": 1, "b": 3}, {"a": 20, "b": 20}, {"a": 3, "b": 9}),
        ({"a": 1, "b": 1}, {"a": 2, "b": 20}, {"a": 2, "b": 10}),
        ({"a": 0, "b": 1}, {"a": 20, "b": 4}, {"a": 0, "b": 4}),
        ({"a": 0, "b": 0}, {"a": 20, "b": 20}, {"a": 0, "b": 0}),
        ({"a": -1, "b": 1}, {"a": 20, "b": 20}, {"a": 0, "b": 12}),
    ],
)
def test_what_a_queue_does_not_want_goes_to_the_others_by_weight(
    weights: dict[str, int], request_of: dict[str, float], shares: dict[str, float]
) -> None:
    made = [WeightedQueue(name, weight, {"cpu": request_of[name]}, CPU) for name, weight in weights.items()]
    assert {name: share.get("cpu", 0) for name, share in divide(CPU, made).items()} == pytest.approx(shares)


def test_a_guarantee_is_the_least_share_also_of_a_queue_that_wants_nothing() -> None:
    a = WeightedQueue("a", 1, {}, CPU, {"cpu": 4})
    b = WeightedQueue("b", 1, {"cpu": 20}, {"cpu": 8}, {})
    found = divide(CPU, [a, b])
    assert (found["a"]["cpu"], found["b"]["cpu"]) == (4, 8)


def test_a_queue_is_cut_to_its_capability() -> None:
    made = [WeightedQueue("a", 1, {"cpu": 20}, {"cpu": 2}), WeightedQueue("b", 1, {"cpu": 20}, CPU)]
    found = divide(CPU, made)
    assert (found["a"]["cpu"], found["b"]["cpu"]) == pytest.approx((2, 10))


def test_guarantees_of_others_are_no_part_of_what_a_queue_may_use() -> None:
    whole, guaranteed = {"cpu": 10.0}, {"cpu": 6.0}
    assert real_capability({}, {"cpu": 2}, whole, guaranteed) == {"cpu": 6}
    assert real_capability({"cpu": 3, "gpu": 1}, {}, whole, guaranteed) == {"cpu": 3, "gpu": 1}
