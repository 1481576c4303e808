"""The device is chosen, not only the node: whole GPUs are empty ones, shares go where the policy says."""

from __future__ import annotations

from collections import Counter

import pytest

from build.devices import bench
from build.nodes import node
from build.pods import AskBuilder, ask
from build.scenario import Scenario
from shoal.engine.device_choice import TIGHTEST
from shoal.engine.device_demand import Demand, GpuShare, WholeGpus, compute_grant
from shoal.engine.devices.kinds import kind_of
from shoal.engine.pod_mix import PodClass, PodMix
from shoal.engine.profile import POLICIES

MIX = PodMix.of([PodClass(2000, 300, 1), PodClass(4000, 500, 1), PodClass(8000, 1000, 1), PodClass(16000, 1000, 2)])

TIGHTEST_CASES: dict[str, tuple[list[int], Demand, tuple[int, ...] | None]] = {
    "a share goes to the device left with least": ([1000, 400, 300, 700], GpuShare(300), (2,)),
    "of equal devices the lowest is taken": ([700, 500, 500], GpuShare(200), (1,)),
    "a share opens an empty device when no other fits": ([100, 1000, 1000], GpuShare(200), (1,)),
    "a share that fits nowhere gets nothing": ([100, 150], GpuShare(200), None),
    "whole GPUs are the empty ones of lowest number": ([1000, 999, 1000, 1000], WholeGpus(2), (0, 2)),
    "a GPU with a sliver missing is not whole": ([999, 999], WholeGpus(1), None),
    "too few empty GPUs are none": ([1000, 500, 1000], WholeGpus(3), None),
    "no devices at all": ([], GpuShare(1), None),
}


@pytest.mark.parametrize(("free", "demand", "devices"), TIGHTEST_CASES.values(), ids=TIGHTEST_CASES)
def test_the_tightest_choice(free: list[int], demand: Demand, devices: tuple[int, ...] | None) -> None:
    grant = kind_of(demand).tightest(bench(free), demand)
    assert (None if grant is None else grant.devices) == devices


def test_equal_grants_are_one_object() -> None:
    assert compute_grant((0, 1), 1000) is compute_grant((0, 1), 1000)


SHARES_ON_ONE_NODE = ask().share(300), ask().share(600), ask().share(400), ask().gpus(1)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_gpu_pod_that_is_placed_gets_its_devices(policy: str) -> None:
    world = Scenario(node("n").gpus(4), policy=policy, mix=MIX)
    for index, wanted in enumerate(SHARES_ON_ONE_NODE):
        world.arrive(f"p{index}", wanted)
        for place in world.round().placed:
            assert place.grant is not None
            assert len(place.grant.devices) == 1
    assert sum(world.pieces("n")) == 4000 - 300 - 600 - 400 - 1000


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("first", "second", "third"),
    [(333, 333, 333), (5, 991, None), (1, 999, None), (995, 5, None), (499, 499, 2)],
    ids=[
        "three thirds",
        "a sliver, then the rest",
        "a thousandth",
        "nearly all, then a sliver",
        "two halves and a crumb",
    ],
)
def test_shares_that_are_no_round_number_fill_one_gpu(policy: str, first: int, second: int, third: int | None) -> None:
    world = Scenario(node("n").gpus(1), policy=policy, mix=MIX)
    milli = [m for m in (first, second, third) if m is not None]
    for index, amount in enumerate(milli):
        world.arrive(f"p{index}", ask().share(amount))
        (place,) = world.round().placed
        assert place.grant is not None
        assert place.grant.parts == ((0, 0, amount),)
    assert world.pieces("n") == [1000 - sum(milli)]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_whole_gpu_is_never_one_in_use_and_never_given_twice(policy: str) -> None:
    world = Scenario(node("n").gpus(4), policy=policy, mix=MIX)
    world.bind("sharer", ask().share(10), "n", devices=(1,)).bind("holder", ask().gpus(1), "n", devices=(2,))
    world.arrive("two", ask().gpus(2)).arrive("one", ask().gpus(1))
    plan = world.round()
    assert [(place.pod, world.devices_of(place.pod)) for place in plan.placed] == [("two", (0, 3))]
    assert [refusal.pod for refusal in plan.refused] == ["one"]


def test_random_shares_use_every_device_that_fits_and_no_other() -> None:
    seen: Counter[tuple[int, ...]] = Counter()
    world = Scenario(node("n").gpus(4), policy="Random").bind("holder", ask().share(900), "n", devices=(2,))
    for draw in range(400):
        choice = world.choice(ask().share(200), draw << 20)
        assert choice is not None
        seen[choice[1]] += 1
    assert set(seen) == {(0,), (1,), (3,)}
    assert min(seen.values()) > 80


def test_random_takes_every_node_that_fits_and_no_other() -> None:
    world = Scenario(node("a").gpus(1), node("b"), node("c").gpus(1), node("d").gpus(1), policy="Random")
    world.bind("holder", ask().gpus(1), "c")
    assert {world.choice(ask().gpus(1), draw) for draw in range(50)} == {("a", (0,)), ("d", (0,))}


class TestPodsPutThereByOthers:
    """A pod seen on a node without a word about devices: the engine picks, and never refuses what is a fact."""

    def test_it_picks_the_tightest_that_fits(self) -> None:
        world = Scenario(node("n").gpus(3)).bind("a", ask().share(500), "n", devices=(1,))
        assert world.bind("b", ask().share(400), "n").devices_of("b") == (1,)
        assert world.bind("c", ask().gpus(2), "n").devices_of("c") == (0, 2)

    def test_when_nothing_fits_the_emptiest_are_overcommitted_and_recover(self) -> None:
        world = Scenario(node("n").gpus(2)).bind("a", ask().share(500), "n", devices=(0,))
        world.bind("b", ask().gpus(2), "n")
        assert world.pieces("n") == [-500, 0]
        assert world.fitting(ask().share(1)) == set()
        world.go("b")
        assert world.pieces("n") == [500, 1000]

    def test_a_grant_that_comes_with_the_pod_is_taken_as_it_is(self) -> None:
        world = Scenario(node("n").gpus(4)).bind("a", ask().gpus(2), "n", devices=(1, 3))
        assert world.pieces("n") == [1000, 0, 1000, 0]

    def test_a_gpu_pod_on_a_node_without_gpus_is_held_without_devices(self) -> None:
        world = Scenario(node("n")).bind("a", ask().gpus(1), "n")
        assert world.devices_of("a") == ()
        world.go("a")
        assert world.fitting(ask().gpus(1)) == set()

    @pytest.mark.parametrize("policy", POLICIES)
    def test_a_gpu_given_away_many_times_over_breaks_no_policy(self, policy: str) -> None:
        world = Scenario(node("n").gpus(1), node("m").gpus(1), policy=policy, mix=MIX)
        for index in range(4):
            world.bind(f"p{index}", ask().gpus(1), "n")
        assert world.pieces("n") == [-3000]
        assert world.fitting(ask().share(10)) == {"m"}
        world.arrive("new", ask().share(10)).arrive("cpu", ask().cpu(1))
        assert {place.pod for place in world.round().placed} == {"new", "cpu"}
        for index in range(4):
            world.go(f"p{index}")
        assert world.pieces("n") == [1000] or world.pieces("m") == [1000]


class TestNodesThatChangeTheirDevices:
    def test_devices_that_stay_keep_what_is_on_them(self) -> None:
        world = Scenario(node("n").gpus(2)).bind("a", ask().share(300), "n", devices=(1,)).see(node("n").gpus(4))
        assert world.pieces("n") == [1000, 700, 1000, 1000]

    def test_a_pod_on_a_device_that_vanished_gives_nothing_back(self) -> None:
        world = Scenario(node("n").gpus(4)).bind("a", ask().gpus(1), "n", devices=(3,)).see(node("n").gpus(2))
        assert world.fitting(ask().gpus(1)) == {"n"}
        assert world.fitting(ask().gpus(2)) == set(), "its request counts against the two that are left"
        world.go("a")
        assert world.pieces("n") == [1000, 1000]
        assert world.fitting(ask().gpus(2)) == {"n"}
        assert world.fitting(ask().gpus(3)) == set()

    def test_a_device_that_comes_back_is_still_taken(self) -> None:
        world = Scenario(node("n").gpus(2)).bind("a", ask().gpus(1), "n", devices=(1,))
        world.see(node("n").gpus(1)).see(node("n").gpus(2))
        assert world.pieces("n") == [1000, 0]


WANTED: list[AskBuilder] = [ask().gpus(1), ask().gpus(2), ask().share(250)]


@pytest.mark.parametrize("wanted", WANTED)
def test_what_the_summary_says_fits_the_devices_can_give(wanted: AskBuilder) -> None:
    world = Scenario(node("n").gpus(2))
    for index in range(8):
        fitting = world.fitting(wanted)
        grant = TIGHTEST.grant(world.cluster, wanted.made(), 0, 0)
        assert (grant is not None) is (fitting == {"n"})
        world.arrive(f"p{index}", wanted)
        world.round()
    assert min(world.pieces("n")) >= 0
