"""Balancing of similar groups, and which nodes Cluster Autoscaler would remove."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.autoscale.expanders.balancing import GroupSize, NodeProfile, are_similar, balanced
from shoal.autoscale.expanders.scale_down import (
    ScaleDownNode,
    ScaleDownOptions,
    ScaleDownPod,
    removability,
)
from shoal.units.errors import UserError

_NODE: Mapping[str, int] = {"cpu": 1000, "memory": 1000}


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6), st.integers(0, 40))
def test_new_nodes_go_to_the_smallest_groups_below_their_maximum(sizes: list[tuple[int, int]], new: int) -> None:
    groups = [GroupSize(f"g{n}", target, most) for n, (target, most) in enumerate(sizes)]
    grown = balanced(groups, new)
    after = {each.group: grown.get(each.group, each.target) for each in groups}

    free = sum(max(each.most - each.target, 0) for each in groups)
    assert sum(after.values()) - sum(each.target for each in groups) == min(new, free)
    for each in groups:
        assert after[each.group] <= max(each.most, each.target)
        if each.group in grown:
            others = [other for other in groups if after[other.group] < other.most]
            assert all(after[each.group] <= after[other.group] + 1 for other in others)


def test_no_groups_cannot_be_balanced() -> None:
    with pytest.raises(UserError):
        balanced([], 1)


def _profile(
    memory: int = 16_000, cpu: int = 4000, used: int = 0, labels: Mapping[str, str] | None = None
) -> NodeProfile:
    amounts = {"cpu": cpu, "memory": memory}
    return NodeProfile(amounts, amounts, labels or {}, {"cpu": used})


def test_similar_nodes_differ_little_in_memory_and_not_in_other_capacity() -> None:
    assert are_similar(_profile(16_000), _profile(15_800))
    assert not are_similar(_profile(16_000), _profile(15_700))
    assert not are_similar(_profile(cpu=4000), _profile(cpu=4001))
    assert not are_similar(_profile(), _profile(used=400))


def test_labels_of_places_do_not_matter() -> None:
    zoned = {"topology.kubernetes.io/zone": "a"}

    assert are_similar(_profile(labels=zoned), _profile())
    assert not are_similar(_profile(labels={"team": "a"}), _profile(labels={"team": "b"}))
    assert are_similar(_profile(labels={"team": "a"}), _profile(labels={"team": "b"}), ignored_labels=["team"])


def test_a_node_at_the_threshold_is_a_candidate() -> None:
    half = [ScaleDownPod({"cpu": 500})]

    assert removability(ScaleDownNode(_NODE), half).is_removable
    assert removability(ScaleDownNode(_NODE), [ScaleDownPod({"cpu": 501})]).reason == "not-underutilized"


def test_only_gpus_count_on_a_gpu_node() -> None:
    allocatable = {**_NODE, "nvidia.com/gpu": 8}
    pods = [ScaleDownPod({"cpu": 900, "nvidia.com/gpu": 2})]

    assert removability(ScaleDownNode(allocatable, gpu_resource="nvidia.com/gpu"), pods).utilization == 0.25
    assert removability(ScaleDownNode(_NODE, gpu_resource="nvidia.com/gpu"), pods).utilization == 0


def test_marks_annotations_and_readiness_come_before_utilization() -> None:
    disabled = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    keeps_unready = ScaleDownOptions(removes_unready=False)

    assert removability(ScaleDownNode(_NODE, marked_for_s=299), []).reason == "being-deleted"
    assert removability(ScaleDownNode(_NODE, marked_for_s=300), []).is_removable
    assert removability(ScaleDownNode(_NODE, annotations=disabled), []).reason == "disabled-annotation"
    assert removability(ScaleDownNode(_NODE, is_ready=False), [], keeps_unready).reason == "unready"
    assert removability(ScaleDownNode({"cpu": 1000}), []).reason == "error"


def test_ignored_pods_are_taken_out_of_both_sides() -> None:
    pods = [
        ScaleDownPod({"cpu": 200}),
        ScaleDownPod({"cpu": 500}, owner_kind="DaemonSet"),
        ScaleDownPod({"cpu": 100}, annotations={"kubernetes.io/config.mirror": ""}),
        ScaleDownPod({"cpu": 100}, deleted_for_s=31),
    ]
    both = ScaleDownOptions(ignores_daemon_sets=True, ignores_mirror_pods=True)

    assert removability(ScaleDownNode(_NODE), pods).utilization == 0.8
    assert removability(ScaleDownNode(_NODE), pods, both).utilization == 0.5
