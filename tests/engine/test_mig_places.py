"""MIG instances cut on demand: only legal places count, held against every tiling that the tables allow."""

from __future__ import annotations

import itertools
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.nodes import node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.data.mig import Layout, Profile, layouts
from shoal.devices.tiling import Tiling, free_mask, occupancy, tiling
from shoal.engine.device_demand import MigTiles
from shoal.engine.devices.mig import starts_of

Placed = tuple[tuple[str, int], ...]
"""(profile, start) of every instance on one GPU."""

MODELS = {one.name: one for one in layouts()}
A100 = "A100-40GB"


def tiles(**counts: int) -> AskBuilder:
    """`tiles(_3g20gb=1)`: profiles as Python can spell them."""
    named = sorted((name[1:3] + "." + name[3:], count) for name, count in counts.items())
    return ask().demand(MigTiles(tuple(named)))


def is_legal(layout: Layout, placed: Placed) -> bool:
    """The tables' own rules, one by one: starts, no overlap, at most so many, media engines once, compute slices."""
    profiles = [profile_of(layout, name) for name, _ in placed]
    used: set[int] = set()
    for profile, (_, start) in zip(profiles, placed, strict=True):
        slices = set(range(start, start + profile.width))
        if start not in profile.starts or used & slices:
            return False
        used |= slices
    if sum(profile.holds_media() for profile in profiles) > 1:
        return False
    if sum(profile.compute for profile in profiles) > layout.compute_slices:
        return False
    return all(profiles.count(profile) <= profile.max for profile in profiles)


def profile_of(layout: Layout, name: str) -> Profile:
    profile = layout.profile(name)
    assert profile is not None
    return profile


@cache
def tilings(name: str) -> frozenset[Placed]:
    """Every legal set of instances on one GPU, by adding one at a time."""
    layout = MODELS[name]
    spots = [(profile.name, start) for profile in layout.profiles for start in profile.starts]
    found: set[Placed] = {()}
    edge: set[Placed] = {()}
    while edge:
        more = {tuple(sorted((*placed, spot))) for placed in edge for spot in spots if spot not in placed}
        edge = {placed for placed in more if placed not in found and is_legal(layout, placed)}
        found |= edge
    return frozenset(found)


def shape(layout: Layout) -> tuple[object, ...]:
    """All of a model that decides about places; names of profiles and sizes aside."""
    profiles = tuple((p.compute, p.width, p.starts, p.max, p.holds_media()) for p in layout.profiles)
    return layout.memory_slices, layout.compute_slices, profiles


SHAPES = sorted({shape(layout): name for name, layout in reversed(MODELS.items())}.values())
"""One model of every shape: what holds for it holds for all models of that shape, and so for all models."""


@pytest.mark.parametrize("name", SHAPES)
def test_a_tile_fits_exactly_where_a_legal_tiling_continues(name: str) -> None:
    layout, there = MODELS[name], tiling(name)
    for placed in tilings(name):
        free = state(there, placed)
        for profile in layout.profiles:
            goes = [
                start for start in profile.starts if tuple(sorted((*placed, (profile.name, start)))) in tilings(name)
            ]
            masks = [mask for mask in there.places(profile) if mask & free == mask]
            assert [start_of(mask) for mask in masks] == goes
            assert (there.best(profile.name, free) is not None) is bool(goes)


@pytest.mark.parametrize("name", SHAPES)
def test_the_room_for_one_profile_is_the_most_that_any_tiling_adds(name: str) -> None:
    layout, there = MODELS[name], tiling(name)
    full = sorted(tilings(name), key=len)
    for placed in full[:: max(len(full) // 60, 1)]:
        for profile in layout.profiles:
            most = max(
                sum(spot[0] == profile.name for spot in other) - sum(spot[0] == profile.name for spot in placed)
                for other in full
                if set(placed) <= set(other) and {spot[0] for spot in set(other) - set(placed)} <= {profile.name}
            )
            assert there.room(profile.name, state(there, placed)) == most


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_several_tiles_fit_exactly_when_tilings_of_the_devices_hold_them(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["A30-24GB", A100]))
    layout, there = MODELS[name], tiling(name)
    devices = data.draw(st.integers(1, 2))
    some = sorted(tilings(name))
    begun = [data.draw(st.sampled_from(some)) for _ in range(devices)]
    plain = [profile.name for profile in layout.profiles]
    names = sorted(data.draw(st.lists(st.sampled_from(plain), min_size=1, max_size=3, unique=True)))
    wanted = [(profile, data.draw(st.integers(1, 4))) for profile in names]
    states = [state(there, placed) for placed in begun]
    placed = there.place(list(enumerate(states)), wanted)
    assert (placed is not None) is holds(name, begun, wanted)
    assert there.fits(states, wanted) is (placed is not None)
    for device, mask in placed or ():
        assert mask & states[device] == mask, "nothing is placed on what is taken"
        states[device] &= ~mask


def holds(name: str, begun: list[Placed], wanted: list[tuple[str, int]]) -> bool:
    """Whether continuing each device's tiling in every possible way reaches the counts."""
    ways = []
    for placed in begun:
        more = [set(other) - set(placed) for other in tilings(name) if set(placed) <= set(other)]
        ways.append({tuple(sum(spot[0] == n for spot in added) for n, _ in wanted) for added in more})
    return any(
        all(sum(way[index] for way in choice) >= count for index, (_, count) in enumerate(wanted))
        for choice in itertools.product(*ways)
    )


def state(there: Tiling, placed: Placed) -> int:
    free = there.empty
    for name, start in placed:
        profile = profile_of(there.facts, name)
        free &= ~there.places(profile)[profile.starts.index(start)]
    return free


def start_of(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


@given(st.lists(st.integers(1, 511), max_size=12))
def test_what_is_held_twice_is_free_only_when_both_have_gone(masks: list[int]) -> None:
    taken = sum(occupancy(mask) for mask in masks)
    held = 0
    for mask in masks:
        held |= mask
    assert free_mask(taken, 511) == 511 & ~held


CUT = node("n").gpus(1).cut_on_demand(A100)

REFUSED: dict[str, tuple[list[AskBuilder], AskBuilder]] = {
    "enough slices, but none of its starts": ([tiles(_1g5gb=1)] * 5, tiles(_3g20gb=1)),
    "more of a profile than there are places": ([], tiles(_2g10gb=4)),
    "media engines twice": ([], ask().demand(MigTiles((("1g.5gb.me", 2),)))),
    "two that fit one by one but not together": ([], tiles(_4g20gb=1, _2g10gb=2)),
    "a profile of another GPU": ([], tiles(_1g6gb=1)),
    "a whole GPU of one in MIG mode": ([], ask().gpus(1)),
    "a share of one in MIG mode": ([], ask().share(100)),
}


@pytest.mark.parametrize(("before", "wanted"), REFUSED.values(), ids=REFUSED)
def test_refused(before: list[AskBuilder], wanted: AskBuilder) -> None:
    world = Scenario(CUT)
    for index, each in enumerate(before):
        world.arrive(f"p{index}", each)
        assert len(world.round().placed) == 1
    assert world.fitting(wanted) == set()
    world.arrive("last", wanted)
    assert [refusal.pod for refusal in world.round().refused] == ["last"]


def test_a_device_is_filled_to_the_last_place() -> None:
    world = Scenario(CUT)
    for index, wanted in enumerate([tiles(_3g20gb=1), tiles(_2g10gb=1), tiles(_1g5gb=2)]):
        world.arrive(f"p{index}", wanted)
        assert len(world.round().placed) == 1, index
    assert world.fitting(tiles(_1g5gb=1)) == set()


def test_a_small_tile_goes_where_it_spoils_least() -> None:
    """Not at the front, where three larger profiles could begin, and not on the empty device."""
    world = Scenario(node("n").gpus(2).cut_on_demand(A100)).arrive("large", tiles(_3g20gb=1))
    world.round()
    world.arrive("small", tiles(_1g5gb=1))
    (place,) = world.round().placed
    assert place.grant is not None
    large = world.cluster.pods["large"].grant
    assert large is not None
    assert starts_of(place.grant)[0][0] == starts_of(large)[0][0]
    assert world.fitting(tiles(_7g40gb=1)) == {"n"}


def test_places_that_running_pods_are_said_to_hold_are_taken() -> None:
    world = Scenario(CUT).held("a", tiles(_2g10gb=1), "n", (0,), (2,))
    assert world.fitting(tiles(_4g20gb=1)) == set()
    assert world.fitting(tiles(_3g20gb=1)) == {"n"}
    world.go("a")
    assert world.fitting(tiles(_4g20gb=1)) == {"n"}


def test_fixed_instances_are_counted_by_name_and_stay_on_nodes_that_have_them() -> None:
    fixed = node("fixed").resource("nvidia.com/mig-1g.5gb", 2)
    world = Scenario(fixed)
    for index in range(3):
        world.arrive(f"p{index}", tiles(_1g5gb=1))
    plan = world.round()
    assert len(plan.placed) == 2
    assert world.fitting(tiles(_1g5gb=1)) == set()
    world.see(CUT)
    assert world.fitting(tiles(_1g5gb=7)) == {"n"}
    assert world.fitting(tiles(_1g5gb=8)) == set()


def test_28_time_sliced_instances_are_28() -> None:
    world = Scenario(node("n").resource("nvidia.com/mig-1g.10gb", 28))
    world.arrive("most", ask().demand(MigTiles((("1g.10gb", 27),)))).round()
    assert world.fitting(ask().demand(MigTiles((("1g.10gb", 1),)))) == {"n"}
    assert world.fitting(ask().demand(MigTiles((("1g.10gb", 2),)))) == set()


def test_devices_beside_those_in_mig_mode_serve_as_ever() -> None:
    world = Scenario(node("n").gpus(4).cut_on_demand(A100, 2, 3))
    assert world.fitting(ask().gpus(2)) == {"n"}
    assert world.fitting(ask().gpus(3)) == set()
    assert world.fitting(tiles(_7g40gb=2)) == {"n"}
    world.arrive("a", ask().gpus(2)).round()
    assert world.devices_of("a") == (0, 1)


def test_a_node_that_is_no_longer_cut_on_demand_counts_what_it_says() -> None:
    world = Scenario(CUT).arrive("a", tiles(_3g20gb=1))
    world.round()
    fixed = node("n").resource("nvidia.com/mig-3g.20gb", 2)
    world.see(fixed)
    assert world.free("n", "nvidia.com/mig-3g.20gb") == 1
    world.see(CUT)
    assert world.free("n", "nvidia.com/mig-3g.20gb") == 1
    world.go("a")
    assert world.free("n", "nvidia.com/mig-3g.20gb") == 2
    world.see(fixed)
    assert world.free("n", "nvidia.com/mig-3g.20gb") == 2
