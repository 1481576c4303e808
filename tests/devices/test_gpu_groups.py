"""The best-connected GPUs are found: a search over all divisions, written in the simplest way, finds no better ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.gpu_pods import device_manager
from shoal.devices.gpu_groups import Scores, best_group, pair_scores

Groups = tuple[tuple[str, ...], ...]


def divisions(gpus: tuple[str, ...], size: int, short: int) -> Iterator[Groups]:
    """All ways to divide the GPUs into groups, with one group of `short` GPUs unless it is zero."""
    if not gpus:
        yield ()
        return
    for count in {size, short} - {0}:
        for more in combinations(gpus[1:], count - 1):
            group = (gpus[0], *more)
            left = tuple(gpu for gpu in gpus if gpu not in group)
            for rest in divisions(left, size, 0 if count == short and count != size else short):
                yield (group, *rest)


def total(groups: Groups, scores: Scores) -> int:
    return sum(scores.get(pair, 0) for group in groups for pair in combinations(group, 2))


def best_choices(gpus: tuple[str, ...], required: tuple[str, ...], size: int, scores: Scores) -> set[frozenset[str]]:
    """The best groups of the best divisions."""
    complete = [
        (groups, [group for group in groups if len(group) == size and {*required} <= {*group}])
        for groups in divisions(gpus, size, len(gpus) % size)
    ]
    possible = [(groups, usable) for groups, usable in complete if usable]
    most = max(total(groups, scores) for groups, _ in possible)
    found = set()
    for groups, usable in possible:
        if total(groups, scores) == most:
            highest = max(total((group,), scores) for group in usable)
            found |= {frozenset(group) for group in usable if total((group,), scores) == highest}
    return found


@st.composite
def requests(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[str, ...], int, Mapping[tuple[str, str], int]]:
    gpus = tuple(f"GPU-{index}" for index in range(draw(st.integers(2, 7))))
    values = draw(st.sampled_from([(10, 20), (10, 110, 220), (0, 10, 20, 30, 130, 250)]))
    scores = {}
    for one, other in combinations(gpus, 2):
        scores[one, other] = scores[other, one] = draw(st.sampled_from(values))
    size = draw(st.integers(1, len(gpus)))
    required = tuple(draw(st.lists(st.sampled_from(gpus), max_size=min(size, 2), unique=True)))
    return gpus, required, size, scores


@given(requests())
@settings(max_examples=examples(150), deadline=None)
def test_no_division_is_better_than_that_of_the_chosen_gpus(
    request: tuple[tuple[str, ...], tuple[str, ...], int, Mapping[tuple[str, str], int]],
) -> None:
    gpus, required, size, scores = request
    assert frozenset(best_group(gpus, required, size, scores)) in best_choices(gpus, required, size, scores)


@pytest.mark.parametrize("machine", ["dgx-a100-80", "dgx-h100", "g5.48xlarge", "g6.48xlarge"])
def test_four_of_the_free_gpus_of_a_machine_are_as_good_as_a_search_over_all_divisions_finds(machine: str) -> None:
    gpus = device_manager(machine).reported
    scores = pair_scores(gpus)
    for count in (4, 5, 6, 7, 8):
        for free in combinations([gpu.uuid for gpu in gpus], count):
            assert frozenset(best_group(free, (), 4, scores)) in best_choices(free, (), 4, scores)


def test_a_score_is_the_number_of_nvlinks_and_the_pcie_relation() -> None:
    scores = pair_scores(device_manager("dgx-h100").reported)
    uuids = [gpu.uuid for gpu in device_manager("dgx-h100").reported]
    assert (scores[uuids[0], uuids[3]], scores[uuids[0], uuids[4]]) == (1820, 1810)


@pytest.mark.parametrize(
    ("required", "size"),
    [((), 0), ((), 4), (("a", "b"), 1), (("z",), 1)],
    ids=["none", "too many", "more required than requested", "a required one that is not available"],
)
def test_a_request_that_cannot_be_fulfilled_gets_nothing(required: tuple[str, ...], size: int) -> None:
    assert best_group(["a", "b", "c"], required, size, {}) == []


def test_the_first_of_equally_connected_gpus_are_chosen() -> None:
    gpus = [f"GPU-{index:02d}" for index in range(16)]
    scores = {(one, other): 1810 for one in gpus for other in gpus if one != other}
    assert best_group(gpus, (), 8, scores) == gpus[:8]
    assert best_group(gpus, ["GPU-09"], 3, scores) == ["GPU-09", "GPU-10", "GPU-11"]
