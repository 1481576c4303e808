"""What of a plan is still right when its nodes are about to be provisioned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from build.pool_worlds import homes, machine, pod, pool, standing, world
from shoal.api.pod import Pod
from shoal.autoscale.nodes.confirmation import confirmed
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.nodes.planning_input import PlanningInput

ONE = machine("gpu-1", 8, price=4, gpus=1)
SINGLE = [pod("one", gpus=1), pod("two", gpus=1)]
GANG = {"default/one": "train", "default/two": "train"}


def _world(
    pods: Sequence[Pod] = SINGLE, nodes: Sequence[ExistingNode] = (), gangs: Mapping[str, str] = {}
) -> PlanningInput:
    return world((ONE,), pods, nodes=nodes, gangs=gangs)


def _left(before: PlanningInput, now: PlanningInput) -> list[tuple[str, ...]]:
    return [pods for _, pods in homes(confirmed(plan_nodes(before), before, now))]


def test_a_plan_stays_as_it_is_while_nothing_changes() -> None:
    assert _left(_world(), _world()) == [("one",), ("two",)]


def test_a_pod_that_is_gone_or_runs_needs_no_node_and_the_others_get_theirs() -> None:
    assert _left(_world(), _world(SINGLE[:1])) == [("one",)]


def test_pods_that_came_meanwhile_do_not_hold_up_the_others() -> None:
    assert _left(_world(), _world([*SINGLE, pod("late", gpus=1)])) == [("one",), ("two",)]


def test_a_pod_that_was_deleted_and_created_again_is_planned_again() -> None:
    again = replace(SINGLE[0], metadata=replace(SINGLE[0].metadata, uid="another"))

    assert _left(_world(), _world([again, SINGLE[1]])) == [("two",)]


def test_a_pod_for_which_a_node_became_free_needs_no_new_one() -> None:
    assert _left(_world(), _world(nodes=[standing("free", ONE)])) == [("two",)]
    full = standing("full", ONE, pod("other", gpus=1))
    assert _left(_world(), _world(nodes=[full])) == [("one",), ("two",)]


def test_a_node_that_starts_counts_with_the_gpus_that_it_will_have() -> None:
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    starting = standing("starting", ONE, allocatable=allocatable, is_initialized=False)

    assert _left(_world(), _world(nodes=[starting])) == [("two",)]


def test_a_pod_that_the_plan_puts_on_a_present_node_keeps_that_place() -> None:
    free = standing("free", ONE)

    assert _left(_world(nodes=[free]), _world(nodes=[replace(free, is_initialized=False)])) == [("two",)]


def test_a_gang_that_lost_a_pod_is_planned_again_as_a_whole() -> None:
    assert _left(_world(gangs=GANG), _world(gangs=GANG)) == [("one",), ("two",)]
    assert _left(_world(gangs=GANG), _world(SINGLE[:1], gangs=GANG)) == []


def test_a_gang_of_which_only_a_part_finds_a_place_keeps_its_new_nodes() -> None:
    assert _left(_world(gangs=GANG), _world(nodes=[standing("free", ONE)], gangs=GANG)) == [("one",), ("two",)]
    both = [standing("free-1", ONE), standing("free-2", ONE)]
    assert _left(_world(gangs=GANG), _world(nodes=both, gangs=GANG)) == []


def test_nothing_is_provisioned_for_pods_that_quota_forbids_by_now() -> None:
    now = replace(_world(), forbidden={"default/one": "over quota"})

    assert _left(_world(), now) == [("two",)]


def test_the_nodes_of_a_pool_that_changed_are_planned_again() -> None:
    limited = replace(_world(), pools=(pool(limits={"nodes": 1}),))
    dearer = replace(_world(), types={"default": (machine("gpu-1", 8, price=40, gpus=1),)})

    assert _left(_world(), limited) == []
    assert _left(_world(), dearer) == []
