"""Whatever happens to a node: no device is had twice, what is counted is there, and who leaves leaves no trace."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.gpu_pods import device_manager, gpu_pod
from shoal.data.mig import Layout, layouts
from shoal.devices.pod_refusal import Refused
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_gpus import Use
from shoal.embedded.machines.mig_cuts import cut

SPECS = (
    "p5.48xlarge",
    "g5.12xlarge[time-slicing=3]",
    "g5.12xlarge[mps=4,many-per-request,rename]",
    "dgx-a100-80[mig=all-balanced]",
    "dgx-a100-40[mig=all-1g.5gb,strategy=single]",
    "h100-pcie-box-4[numa-policy=restricted]",
)


def state(node: DeviceManager) -> Any:
    return (
        {name: (one.capacity, one.allocatable) for name, one in node.resources().items()},
        [(uid, held) for uid, held in node.held()],
        node.gpus,
        [node.programs.on_gpu(index) for index in range(len(node.gpus))],
    )


steps = st.lists(
    st.tuples(st.sampled_from(["admit", "release", "fail", "mend"]), st.integers(0, 7), st.integers(1, 5)), max_size=40
)


@given(st.sampled_from(SPECS), steps)
@settings(max_examples=examples(30), deadline=None)
def test_no_device_is_held_twice_and_none_is_given_broken(spec: str, taken: list[tuple[str, int, int]]) -> None:
    node = device_manager(spec)
    names = sorted(node.resources())
    for kind, number, amount in taken:
        if kind == "admit":
            if any(uid == str(number) for uid, _ in node.held()):
                continue
            found = node.admit(gpu_pod(str(number), amount, names[amount % len(names)]))
            if not isinstance(found, Refused):
                assert [len(grant.device_ids) for grant in found] == [amount]
                assert all(node.is_healthy(one) for grant in found for one in grant.device_ids)
        elif kind == "release":
            node.release(str(number))
        elif kind == "fail":
            node.fail(number, 79)
        else:
            node.mend(number)
        ids = Counter(device.id for _, held in node.held() for one in held for device in one.devices)
        assert set(ids.values()) <= {1}
        for counted in node.resources().values():
            assert 0 <= counted.allocatable <= counted.capacity


@given(st.sampled_from(SPECS), st.integers(1, 4), st.floats(0, 1))
@settings(max_examples=examples(40), deadline=None)
def test_a_pod_that_came_and_went_leaves_no_trace(spec: str, amount: int, util: float) -> None:
    node = device_manager(spec)
    name = min(node.resources())
    node.admit(gpu_pod("stays", 1, name))
    node.start("stays", "main", Use())
    before = state(node)
    node.admit(gpu_pod("goes", amount, name))
    node.start("goes", "main", Use(util=util))
    node.release("goes")
    assert state(node) == before


def is_legal(facts: Layout, wanted: list[str]) -> bool:
    """Brute force: some choice of starts without an overlap."""

    def fits(rest: list[str], free: int) -> bool:
        if not rest:
            return True
        profile = facts.profile(rest[0])
        assert profile is not None
        masks = [profile.slices(start) for start in profile.starts]
        return any(mask & free == mask and fits(rest[1:], free & ~mask) for mask in masks)

    media = sum(profile.holds_media() for name in wanted if (profile := facts.profile(name)) is not None)
    return media <= 1 and fits(wanted, (1 << facts.memory_slices) - 1)


@given(st.sampled_from(layouts()), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_gpus_are_cut_exactly_where_it_is_legal(facts: Layout, data: st.DataObject) -> None:
    names = [profile.name for profile in facts.profiles]
    wanted = data.draw(st.lists(st.sampled_from(names), max_size=5))
    counts = tuple(sorted(Counter(wanted).items()))
    found = cut("node", 0, facts, counts, 81920)
    limited = all(count <= profile.max for name, count in counts if (profile := facts.profile(name)) is not None)
    assert (found is not None) == (limited and is_legal(facts, wanted))
    if found is not None:
        assert Counter(one.profile.name for one in found) == Counter(wanted)
        assert all(one.start in one.profile.starts for one in found)
        masks = [one.profile.slices(one.start) for one in found]
        assert all(one & other == 0 for one, other in combinations(masks, 2))
        assert len({one.uuid for one in found}) == len(found)


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_counted_is_what_can_be_had(spec: str) -> None:
    node = device_manager(spec.replace("numa-policy=restricted", "spot"))
    for name, counted in node.resources().items():
        for number in range(counted.capacity):
            assert not isinstance(node.admit(gpu_pod(f"{name}{number}", 1, name)), Refused)
        assert isinstance(node.admit(gpu_pod("more", 1, name)), Refused)
