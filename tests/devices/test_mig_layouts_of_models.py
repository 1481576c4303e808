"""For every GPU model with MIG: all possible layouts, found by trying every place, are accepted and no other."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from shoal.data.mig import Layout, layouts
from shoal.devices.mig_instances import places
from shoal.devices.mig_layout_checks import counts_fit, counts_problem, gpu_instances, nearest
from shoal.devices.mig_layouts import Counts, default_layouts

MODELS = [one.name for one in layouts()]


@cache
def possible(name: str) -> frozenset[Counts]:
    """By brute force: every set of places that do not overlap, with the media engines given once."""
    facts = of(name)
    tiles = [(p.name, p.holds_media(), range(s, s + p.width)) for p in facts.profiles for s in p.starts]
    found: set[Counts] = set()

    def extend(at: int, taken: frozenset[int], media: bool, counts: Counter[str]) -> None:
        found.add(tuple(sorted(counts.items())))
        for number in range(at, len(tiles)):
            profile, is_media, place = tiles[number]
            if not taken.isdisjoint(place) or (is_media and media):
                continue
            extend(number + 1, taken.union(place), media or is_media, counts + Counter({profile: 1}))

    extend(0, frozenset(), False, Counter())
    return frozenset(found)


def of(name: str) -> Layout:
    return next(one for one in layouts() if one.name == name)


@pytest.mark.parametrize("name", MODELS)
def test_every_possible_layout_is_accepted_and_has_places(name: str) -> None:
    facts = of(name)
    for counts in possible(name):
        assert counts_problem(counts, facts) is None
        assert sorted(profile for profile, _ in places(facts, counts) or ()) == sorted(Counter(dict(counts)).elements())


@pytest.mark.parametrize("name", MODELS)
def test_one_instance_more_than_possible_is_refused_with_the_nearest_layout(name: str) -> None:
    """A part of a possible layout is possible, so these are all of the smallest impossible layouts."""
    facts, legal = of(name), possible(name)
    refused = 0
    for counts in legal:
        for profile in facts.profiles:
            more = tuple(sorted((Counter(dict(counts)) + Counter({profile.name: 1})).items()))
            if more in legal:
                continue
            refused += 1
            problem = counts_problem(more, facts)
            assert problem is not None
            near = nearest(more, facts)
            assert near in legal
            assert "nearest possible layout" in problem.fix
            assert all(f"{count} x {name}" in problem.fix for name, count in near)
    assert refused > len(facts.profiles)


@pytest.mark.parametrize("name", MODELS)
def test_every_generated_layout_is_possible(name: str) -> None:
    facts = of(name)
    assert "all-balanced" in default_layouts(name)
    assert all(counts_problem(spec.counts, facts) is None for specs in default_layouts(name).values() for spec in specs)


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ((("3g.20gb", 3),), (("3g.20gb", 2),)),
        ((("1g.10gb", 7),), (("1g.10gb", 4),)),
        ((("3g.20gb", 2), ("1g.5gb", 1)), (("3g.20gb", 2),)),
        ((("1g.6gb", 7),), (("1g.5gb", 7),)),
        ((("7g.80gb", 1),), (("7g.40gb", 1),)),
    ],
)
def test_the_nearest_layout_changes_the_fewest_slices(wanted: Counts, near: Counts) -> None:
    assert nearest(wanted, of("A100-40GB")) == near


@pytest.mark.parametrize(
    ("wanted", "instances", "fits"),
    [
        ((("1c.3g.20gb", 4),), (("3g.20gb", 2),), True),
        ((("1c.3g.20gb", 7),), (("3g.20gb", 3),), False),
        ((("2c.3g.20gb", 2),), (("3g.20gb", 2),), True),
        ((("1c.3g.20gb", 1), ("2c.3g.20gb", 1), ("4g.20gb", 1)), (("3g.20gb", 1), ("4g.20gb", 1)), True),
        ((("1c.2g.10gb", 6), ("1g.5gb", 1)), (("1g.5gb", 1), ("2g.10gb", 3)), True),
        ((("5c.7g.40gb", 1),), None, False),
    ],
)
def test_parts_of_gpu_instances_share_them(wanted: Counts, instances: Counts | None, fits: bool) -> None:
    assert gpu_instances(wanted) == instances
    assert counts_fit(wanted, of("A100-40GB")) is fits
