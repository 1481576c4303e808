"""Division of one resource among sibling queues, as KAI divides, against worked examples and exact water-filling."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from build.depth import examples
from shoal.engine.queues.disciplines.kai.division import ShareRequest, divide, divide_over_quota

GPU = 1000


def queue(
    name: str, requested: int, quota: int | None = 0, weight: float = 1, priority: int = 100, limit: int | None = None
) -> ShareRequest:
    return ShareRequest(name, requested, quota, limit, weight, priority)


def test_quotas_are_granted_even_if_together_they_exceed_the_amount() -> None:
    found = divide(1000, [queue("a", 900, 900), queue("b", 800, 800)])
    assert (found.shares, found.left) == ({"a": 900, "b": 800}, 0)


def test_an_unlimited_quota_is_the_whole_amount_of_the_level() -> None:
    found = divide(1000, [queue("a", 1500, None), queue("b", 300, None)])
    assert found.shares == {"a": 1000, "b": 300}


def test_a_queue_of_higher_priority_takes_all_it_wants_before_the_next_band_gets_anything() -> None:
    found = divide(10, [queue("low", 9), queue("high", 8, priority=200, weight=0.001)])
    assert found.shares == {"low": 2, "high": 8}


def test_weight_zero_gets_neither_a_part_nor_a_unit_that_is_left_over() -> None:
    found = divide(5 * GPU, [queue("a", 9 * GPU, weight=0), queue("b", 2 * GPU)], unit=GPU)
    assert (found.shares, found.left) == ({"a": 0, "b": 2 * GPU}, 3 * GPU)


def test_a_queue_that_wants_less_than_its_part_leaves_the_rest_for_another_round() -> None:
    found = divide(12 * GPU, [queue("a", 1 * GPU), queue("b", 9 * GPU), queue("c", 9 * GPU)], unit=GPU)
    # Parts of 4: a is content with 1; of the 3 that are left b and c get 1 each, and the older one the last.
    assert found.shares == {"a": 1 * GPU, "b": 6 * GPU, "c": 5 * GPU}


def test_what_rounding_down_leaves_goes_to_the_next_band_before_single_units_are_dealt_out() -> None:
    high = [queue("a", 9 * GPU, priority=2), queue("b", 9 * GPU, priority=2)]
    found = divide(5 * GPU, [*high, queue("low", 9 * GPU, priority=1)], unit=GPU)
    assert found.shares == {"a": 2 * GPU, "b": 2 * GPU, "low": 1 * GPU}


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ({"a": 3.0, "b": 2.0, "c": 2.0}, {"a": 4, "b": 3, "c": 3}),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 4, "b": 3, "c": 3}),
        ({"a": 1.0, "b": 5.0, "c": 1.0}, {"a": 2, "b": 7, "c": 1}),
    ],
)
def test_units_left_over_go_to_the_largest_remainders_then_to_the_older(
    weights: dict[str, float], shares: dict[str, int]
) -> None:
    """Of 10: 4.29 2.86 2.86; 3.33 each; 1.43 7.14 1.43."""
    found = divide(10, [queue(name, 100, weight=weight) for name, weight in weights.items()])
    assert found.shares == shares


def test_a_queue_gets_at_most_one_unit_of_what_is_left_over_and_no_more_than_it_wants() -> None:
    found = divide(2 * GPU, [queue("a", 1 * GPU + 500), queue("b", 1 * GPU + 500)], unit=GPU)
    assert (found.shares, found.left) == ({"a": GPU, "b": GPU}, 0)
    more = divide_over_quota(1200, [queue("a", 1500, weight=1), queue("b", 1500, weight=1)], {"a": 1000, "b": 1000})
    assert more.shares == {"a": 1500, "b": 1500}


def test_a_queue_that_used_more_than_its_weight_gets_less_of_the_rest() -> None:
    used = replace(queue("a", 100), usage=0.75)
    # Weights of one half each become 0.5 - 0.25 and 0.5 + 0.25 of ... as 0.25 : 0.75.
    assert divide(100, [used, replace(queue("b", 100), usage=0.25)], k=1).shares == {"a": 25, "b": 75}
    assert divide(100, [used, replace(queue("b", 100), usage=0.25)], k=-3).shares == {"a": 50, "b": 50}


def test_queues_whose_corrected_weights_are_all_zero_get_no_over_quota() -> None:
    used = [replace(queue(name, 100, quota=10), usage=1.0) for name in ("a", "b")]
    found = divide(100, used, k=1)
    assert (found.shares, found.left) == ({"a": 10, "b": 10}, 80)


AMOUNTS = st.integers(0, 60)
QUEUES = st.lists(
    st.builds(
        ShareRequest,
        name=st.just(""),
        requested=AMOUNTS,
        quota=st.none() | st.integers(0, 20),
        limit=st.none() | AMOUNTS,
        weight=st.sampled_from([0, 0.5, 1, 2, 3]),
        priority=st.sampled_from([50, 100]),
        usage=st.just(0.0) | st.floats(0, 1),
    ),
    min_size=1,
    max_size=5,
).map(lambda found: [replace(each, name=f"q{at}") for at, each in enumerate(found)])


@given(total=AMOUNTS, queues=QUEUES, unit=st.sampled_from([1, 4]), k=st.sampled_from([0.0, 1.0, 2.5]))
@settings(max_examples=examples(60), deadline=None)
def test_shares_add_up_and_stay_within_request_limit_and_amount(
    total: int, queues: list[ShareRequest], unit: int, k: float
) -> None:
    found = divide(total, queues, unit=unit, k=k)
    quotas = 0
    for each in queues:
        most = each.requested if each.limit is None else min(each.requested, each.limit)
        least = min(total if each.quota is None else each.quota, most)
        quotas += least
        assert least <= found.shares[each.name] <= most
        assert each.weight or found.shares[each.name] == least
    assert sum(found.shares.values()) + found.left == max(total, quotas)
    if k == 0 and all(each.weight for each in queues):
        wanted = sum(each.requested if each.limit is None else min(each.requested, each.limit) for each in queues)
        assert sum(found.shares.values()) == max(quotas, min(total, wanted))


@given(total=st.integers(0, 10_000), queues=QUEUES)
@settings(max_examples=examples(60), deadline=None)
def test_one_band_is_water_filling_up_to_rounding(total: int, queues: list[ShareRequest]) -> None:
    band = [replace(each, requested=each.requested * 97, quota=0, limit=None, priority=1, usage=0.0) for each in queues]
    found = divide(total, band)
    level = _water_level(total, band)
    for each in band:
        exact = min(Fraction(each.requested), level * Fraction(each.weight))
        assert abs(found.shares[each.name] - exact) <= len(band)


def _water_level(total: int, band: list[ShareRequest]) -> Fraction:
    """The level at which every queue holds its weight times the level, or all it wants."""
    wants = [(Fraction(each.requested), Fraction(each.weight)) for each in band if each.weight and each.requested]
    level = Fraction(0)
    for stop in sorted({wish / weight for wish, weight in wants}):
        full = sum((wish for wish, weight in wants if wish <= level * weight), Fraction(0))
        rising = sum((weight for wish, weight in wants if wish > level * weight), Fraction(0))
        reach = (total - full) / rising
        if reach <= stop:
            return reach
        level = stop
    return level


@given(total=AMOUNTS, queues=QUEUES, at=st.integers(0, 4), more=st.integers(1, 30), what=st.sampled_from("wqr"))
@settings(max_examples=examples(60), deadline=None)
def test_a_larger_weight_quota_or_request_never_costs_the_queue_anything(
    total: int, queues: list[ShareRequest], at: int, more: int, what: str
) -> None:
    own = replace(queues[at % len(queues)], usage=0.0)
    queues = [own if each.name == own.name else replace(each, usage=0.0) for each in queues]
    before = divide(total, queues).shares[own.name]
    larger = {
        "w": replace(own, weight=own.weight + more),
        "q": replace(own, quota=None if own.quota is None else own.quota + more),
        "r": replace(own, requested=own.requested + more),
    }[what]
    after = divide(total, [larger if each.name == own.name else each for each in queues]).shares[own.name]
    # Rounding down moves single units between bands and rounds.
    assert after >= before - len(queues)
