"""MIG layouts: what the shipped table says, and which mistakes in it would be noticed."""

import copy
import json
from collections.abc import Callable
from importlib.resources import files
from itertools import combinations
from typing import Any

import pytest

from shoal.data.mig import (
    Layout,
    Profile,
    compute_instances,
    layout,
    layout_of_product,
    layouts,
    parse_layouts,
)
from shoal.units.errors import BugError

FACTS = json.loads(files("shoal.data").joinpath("mig.json").read_bytes())


def a100() -> Layout:
    found = layout("A100-40GB")
    assert found is not None
    return found


def profile(name: str) -> Profile:
    found = a100().profile(name)
    assert found is not None
    return found


PRODUCTS = {
    "a board name": ("A100-SXM4-40GB", "A100-40GB"),
    "another of the same part": ("A100-80GB-PCIe", "A100-80GB"),
    "in lower case": ("h100-80gb-hbm3", "H100-80GB"),
    "with more words behind it": ("RTX-PRO-6000-Blackwell-Server-Edition", "RTX-PRO-6000-96GB"),
    "the longer of two that begin alike": ("H200-NVL", "H200-141GB"),
    "a whole word, not a beginning of one": ("H20", "H100-96GB"),
    "nor an end of one": ("GB200", "GB200-186GB"),
    "a part without MIG": ("L4", None),
    "a name too short to tell": ("A100", None),
}


@pytest.mark.parametrize(("product", "want"), PRODUCTS.values(), ids=PRODUCTS)
def test_a_layout_is_found_by_product(product: str, want: str | None) -> None:
    found = layout_of_product(product)
    assert (found.name if found else None) == want


SPELLINGS = {
    "by its name": ("1g.5gb", "1g.5gb"),
    "by its resource": ("nvidia.com/mig-1g.5gb", "1g.5gb"),
    "with media engines": ("1g.5gb+me", "1g.5gb+me"),
    "with media engines, as a resource spells it": ("nvidia.com/mig-1g.5gb.me", "1g.5gb+me"),
}


@pytest.mark.parametrize(("spelling", "want"), SPELLINGS.values(), ids=SPELLINGS)
def test_a_profile_is_found(spelling: str, want: str) -> None:
    assert profile(spelling).name == want
    assert a100().profile(profile(spelling).resource) is profile(spelling)


def test_a_profile_of_another_part_is_not_found() -> None:
    assert a100().profile("1g.18gb") is None


def test_slices_are_a_mask_of_the_occupied_range() -> None:
    assert profile("3g.20gb").slices(4) == 0b1111_0000
    assert profile("1g.10gb").slices(2) == 0b0000_1100


def test_one_name_means_different_things_on_different_parts() -> None:
    small, large = (layout(name) for name in ("GB300", "H200-141GB"))
    assert small is not None
    assert large is not None
    pair = small.profile("1g.35gb"), large.profile("1g.35gb")
    assert [p.width for p in pair if p is not None] == [1, 2]


def test_an_instance_can_be_divided_into_compute_instances() -> None:
    assert compute_instances(3) == {1: 3, 2: 1, 3: 1}
    assert compute_instances(5) == {}


@pytest.mark.parametrize("one", layouts(), ids=lambda one: one.name)
def test_every_profile_reaches_its_maximum_by_some_choice_of_places(one: Layout) -> None:
    """By brute force: no choice of disjoint places is larger, and one is as large."""
    for each in one.profiles:
        best = 0
        for size in range(1, len(each.starts) + 1):
            for starts in combinations(each.starts, size):
                masks = [each.slices(start) for start in starts]
                if sum(masks) == _union(masks):
                    best = max(best, size)
        assert each.max == (1 if each.holds_media() else best), each.name


def _union(masks: list[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def edit(change: Callable[[dict[str, Any]], object]) -> bytes:
    facts = copy.deepcopy(FACTS)
    change(facts)
    return json.dumps(facts).encode()


def first(facts: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = facts["layouts"][0]["profiles"][0]
    return found


MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a start outside the slices": (lambda f: first(f)["starts"].append(4), "A30-24GB 1g.6gb: a placement lies outside"),
    "starts out of order": (lambda f: first(f).update(starts=[1, 0, 2, 3]), "starts are not in order"),
    "no start": (lambda f: first(f).update(starts=[]), "no start"),
    "more instances than places": (lambda f: first(f).update(max=5), "max is 5, placements allow 4"),
    "fewer instances than places": (lambda f: first(f).update(max=3), "max is 3, placements allow 4"),
    "a name that disagrees": (lambda f: first(f).update(compute=2), "name and compute slices disagree"),
    "a name like no other": (lambda f: first(f).update(name="small"), "the name is not like"),
    "a name given twice": (lambda f: f["layouts"][0]["profiles"].append(first(f)), "profile is given 2 times"),
    "a product given twice": (lambda f: f["layouts"][1]["products"].append("a30"), "A30: product is given 2 times"),
    "more memory than there is": (lambda f: first(f).update(memory_mib=9000), "exceeds the memory"),
    "a source nobody listed": (lambda f: f["layouts"][0].update(sources=["x"]), "a source that is not listed"),
    "nothing for the whole GPU": (lambda f: f["layouts"][0]["profiles"].pop(), "no profile takes the whole GPU"),
    "a misspelt field": (lambda f: first(f).update(starst=[0]), "unknown field `starst`"),
    "a missing field": (lambda f: first(f).pop("id"), "missing required field `id`"),
    "parts larger than the whole": (lambda f: f["compute_instances"].update({"3": {"2": 2}}), "do not fit"),
}


@pytest.mark.parametrize(("change", "complaint"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_table_is_named(change: Callable[[dict[str, Any]], object], complaint: str) -> None:
    with pytest.raises(BugError) as bug:
        parse_layouts(edit(change))
    assert str(bug.value).startswith("data/mig.json: ")
    assert complaint in str(bug.value)
