"""A plan keeps what can stay, never destroys what is in use, and reaches the layout."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from build.depth import examples
from shoal.data.mig import layout
from shoal.devices.mig_gpus import MigGpu
from shoal.devices.mig_instances import places, possible_counts
from shoal.devices.mig_layout_checks import Problem
from shoal.devices.mig_layouts import Counts, MigSpec
from shoal.devices.mig_plan import MigPlan, PresentGpu, planned
from shoal.devices.mig_port import GpuInstance
from shoal.devices.mig_profile_names import parse_profile
from shoal.devices.tiling import tiling

NAME = "H100-80GB"
FACTS = layout(NAME)
assert FACTS is not None


def instance(number: int, profile: str, start: int, compute: tuple[int, ...] = ()) -> GpuInstance:
    found = FACTS.profile(profile) if FACTS is not None else None
    assert found is not None
    return GpuInstance(number, profile, start, found.width, compute or (found.compute,))


def gpu(
    instances: tuple[GpuInstance, ...] = (), used: frozenset[int] = frozenset(), *, is_mig: bool = True
) -> PresentGpu:
    counts = Counter(one.profile for one in instances)
    described = MigGpu(index=0, pci=(), facts=FACTS, is_mig=is_mig, counts=tuple(sorted(counts.items())))
    return PresentGpu(described, "GPU-0", instances, used, bool(used))


def steps(counts: Counts, present: PresentGpu, *, is_forced: bool = False) -> list[str]:
    found = planned((MigSpec(enabled=True, counts=counts),), [present], is_forced=is_forced)
    assert isinstance(found, MigPlan), found
    return [str(step).removeprefix("GPU 0: ") for step in found.steps]


def test_an_instance_of_the_layout_stays_where_it_is() -> None:
    present = gpu((instance(1, "1g.10gb", 6), instance(2, "3g.40gb", 0)))
    assert steps((("1g.10gb", 1), ("2g.20gb", 1)), present) == [
        "destroy 3g.40gb at slice 0",
        "create 2g.20gb at slice 4",
    ]
    assert steps((("1g.10gb", 1), ("3g.40gb", 1)), present) == []


def test_of_instances_that_cannot_all_stay_the_largest_stay() -> None:
    small = tuple(instance(number, "1g.10gb", number) for number in (0, 1, 4))
    assert steps((("1g.10gb", 3), ("3g.40gb", 1)), gpu(small)) == [
        "destroy 1g.10gb at slice 4",
        "create 3g.40gb at slice 4",
        "create 1g.10gb at slice 2",
    ]


def test_an_instance_in_use_is_destroyed_only_if_that_is_forced() -> None:
    present = gpu((instance(1, "1g.10gb", 0), instance(2, "1g.10gb", 4)), frozenset({2}))
    assert steps((("1g.10gb", 1), ("3g.40gb", 1)), present) == [
        "destroy 1g.10gb at slice 0",
        "create 3g.40gb at slice 0",
    ]
    refused = planned((MigSpec(enabled=True, counts=(("7g.80gb", 1),)),), [present])
    assert isinstance(refused, Problem)
    assert str(refused).startswith(
        "GPU 0: an instance in use has no place in the layout: 1g.10gb at slice 4; end the work"
    )
    assert steps((("7g.80gb", 1),), present, is_forced=True)[-1] == "create 7g.80gb at slice 0"


def test_an_instance_in_use_that_blocks_all_places_is_refused() -> None:
    present = gpu((instance(1, "1g.10gb", 0), instance(2, "1g.10gb", 4)), frozenset({1, 2}))
    assert isinstance(planned((MigSpec(enabled=True, counts=(("1g.10gb", 2), ("4g.40gb", 1))),), [present]), Problem)


def test_the_mode_changes_between_destruction_and_creation() -> None:
    plain, cut = gpu(is_mig=False), gpu((instance(1, "1g.10gb", 0),))
    second = PresentGpu(MigGpu(index=1, pci=(), facts=FACTS, is_mig=True), "GPU-1")
    assert steps((("7g.80gb", 1),), plain) == ["enable MIG mode", "create 7g.80gb at slice 0"]
    found = planned((MigSpec(enabled=False),), [cut, second])
    assert isinstance(found, MigPlan)
    assert [str(step) for step in found.steps] == [
        "GPU 0: destroy 1g.10gb at slice 0",
        "GPU 0: disable MIG mode",
        "GPU 1: disable MIG mode",
    ]


def test_the_mode_of_a_gpu_in_use_does_not_change() -> None:
    used = PresentGpu(MigGpu(index=0, pci=(), facts=FACTS), "GPU-0", is_used=True)
    assert isinstance(planned((MigSpec(enabled=True),), [used]), Problem)
    assert steps((), used, is_forced=True) == ["enable MIG mode"]


def test_a_gpu_instance_without_its_compute_instances_is_made_again() -> None:
    broken = GpuInstance(1, "1g.10gb", 3, 1)
    assert steps((("1g.10gb", 1),), gpu((broken,)))[0] == "destroy 1g.10gb at slice 3"


def test_compute_instances_share_their_gpu_instance() -> None:
    found = planned((MigSpec(enabled=True, counts=(("1c.3g.40gb", 1), ("2c.3g.40gb", 1))),), [gpu()])
    assert isinstance(found, MigPlan)
    assert [(step.profile, step.compute) for step in found.steps] == [("3g.40gb", (2, 1))]


def test_a_gpu_without_an_entry_keeps_its_layout() -> None:
    present = gpu((instance(1, "1g.10gb", 0),))
    found = planned((MigSpec(enabled=False, devices=(1,)),), [present, PresentGpu(MigGpu(1, (), FACTS), "GPU-1")])
    assert isinstance(found, MigPlan)
    assert found.steps == ()


@pytest.mark.parametrize("seed", range(examples(20)))
def test_random_changes_reach_the_layout_and_keep_what_is_in_use(seed: int) -> None:
    draw = random.Random(seed)
    all_counts = possible_counts(NAME)
    assert FACTS is not None
    for _ in range(20):
        placed = places(FACTS, draw.choice(all_counts)) or ()
        present = tuple(instance(number, profile, start) for number, (profile, start) in enumerate(placed, 1))
        used = frozenset(one.number for one in present if draw.random() < 0.3)
        wanted = draw.choice(all_counts)
        found = planned((MigSpec(enabled=True, counts=wanted),), [gpu(present, used)])
        if isinstance(found, Problem):
            assert used
            continue
        left = {one.number: one for one in present}
        for number, step in enumerate(found.steps, 100):
            if step.kind == "destroy":
                assert left.pop(step.number).number not in used
            else:
                left[number] = instance(0, step.profile, step.start, step.compute)
        assert Counter(one.profile for one in left.values()) == Counter(dict(wanted))
        assert _are_apart(list(left.values()))
        assert found.kept <= len(present)


def _are_apart(instances: list[GpuInstance]) -> bool:
    tiles, free = tiling(NAME), tiling(NAME).empty
    for one in instances:
        profile = tiles.profile(one.profile)
        assert profile is not None
        assert parse_profile(one.profile).slices == profile.compute
        mask = tiles.places(profile)[profile.starts.index(one.start)]
        if mask & free != mask:
            return False
        free &= ~mask
    return True
