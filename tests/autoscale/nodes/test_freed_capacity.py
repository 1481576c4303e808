"""What is held back from provisioning: the order of the steps, their times, and what holds for all plans."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from shoal.api.conditions import Condition
from shoal.api.decode import convert
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.run_configuration import NodeScalingRules, RunConfiguration
from shoal.autoscale.nodes.before_provisioning import (
    STEPS,
    Freeing,
    FreeingPolicy,
    RepartitionableNode,
    UnitOutcome,
    WaitingUnit,
    held_back,
    layouts_serving,
    outcome,
    waiting_units,
)
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.nodes.plan import PlanningSettings
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.autoscale.nodes.pool_reading import pool_of
from shoal.autoscale.nodes.yielding_pods import freed_by_pods
from shoal.cli.preemption_options import steps_of_rules
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.events import NodeSeen, PodArrived, PodBound
from shoal.engine.from_api import ask_of_pod, node_facts_of
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Evict, Plan
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.preemption.policy import VictimPolicy
from shoal.engine.profile import Profile
from shoal.store.freed_capacity import CHANGED, freed_capacity
from shoal.store.mig_relabelling import layouts_for, under_layout
from shoal.units.errors import UserError, Where

NOW_S = 1_767_225_600.0
SLICE = "nvidia.com/mig-1g.10gb"


def pod(name: str, **requests: str) -> Pod:
    part = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", **requests}, "limits": requests}}
    raw = {"metadata": {"name": name, "namespace": "a"}, "spec": {"schedulerName": "shoal", "containers": [part]}}
    made = convert(raw, Pod, Where(obj=name))
    refused = Condition("PodScheduled", "False", "Unschedulable", "", datetime.fromtimestamp(NOW_S, UTC))
    return replace(made, status=replace(made.status, conditions=(refused,)))


def mig_node(name: str, gpus: int = 2) -> RepartitionableNode:
    labels = {
        "kubernetes.io/hostname": name,
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig.config": "all-disabled",
    }
    has = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
    raw = {"metadata": {"name": name, "labels": labels}, "status": {"capacity": has, "allocatable": has}}
    node = convert(raw, Node, Where(obj=name))
    layouts = {layout: under_layout(node, layout) for layout in layouts_for(node, (), 0)}
    return RepartitionableNode(ExistingNode(node, is_managed=False), layouts)


def given_for(pods: list[Pod], nodes: list[RepartitionableNode], gangs: dict[str, str] | None = None) -> PlanningInput:
    requirements = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]
    raw: dict[str, Any] = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {"template": {"spec": {"requirements": requirements}}},
    }
    offers = (Offering("z1", "on-demand", 10.0),)
    types = tuple(
        InstanceType(f"t{count}", {"cpu": 96_000, "memory": 1 << 40, "pods": 110, SLICE: count}, offerings=offers)
        for count in (4, 14)
    )
    return PlanningInput(
        pools=(pool_of(raw),),
        types={"gpu": types},
        nodes=tuple(node.existing for node in nodes),
        pods=tuple(pods),
        gangs=gangs or {},
        settings=PlanningSettings(packing="LeastCost"),
    )


UNIT = WaitingUnit("a/p", (pod("p"),), NOW_S)
EVERY = Freeing({"a/p": (("n1", "all-1g.10gb"),)}, {"a/p": NOW_S + 60}, {"a/p": NOW_S + 90})
MOVES = FreeingPolicy(has_moves=True)


@pytest.mark.parametrize("first", STEPS)
def test_the_first_step_of_the_order_that_serves_a_pod_is_chosen(first: Any) -> None:
    order = (first, *(step for step in STEPS if step != first))
    found = outcome(UNIT, EVERY, replace(MOVES, order=order), NOW_S)
    assert found.hold is not None
    assert found.hold.step == first
    assert found.notes == {}


@pytest.mark.parametrize(
    ("freeing", "policy", "step", "words"),
    [
        (Freeing(), MOVES, "repartition", "no idle GPUs"),
        (Freeing(), FreeingPolicy(), "consolidate", "preemption.moves is off"),
        (Freeing(), MOVES, "consolidate", "found no moves"),
        (Freeing(), MOVES, "reclaim", "found no pods of lower priority"),
        (Freeing(), replace(MOVES, schedulers=frozenset({"other"})), "reclaim", "another scheduler"),
        (Freeing(yielded_s={"a/p": NOW_S + 900}), MOVES, "reclaim", "would serve it at 00:15:00 UTC, but"),
    ],
)
def test_each_step_that_does_not_help_says_why(freeing: Freeing, policy: FreeingPolicy, step: Any, words: str) -> None:
    found = outcome(UNIT, freeing, policy, NOW_S)
    assert found.hold is None
    assert words in found.notes[step]


def test_no_pod_is_held_back_for_ever() -> None:
    """Whatever a step promises, and however often the decision is made anew."""
    draw = random.Random(5)
    for _ in range(200):
        timeouts: Any = {step: draw.choice([10.0, 300.0, 3600.0]) for step in STEPS}
        order: Any = tuple(draw.sample(STEPS, draw.randint(0, 3)))
        policy = replace(MOVES, order=order, timeouts_s=timeouts)
        end_s = NOW_S + max((timeouts[step] for step in order), default=0.0)
        for now_s in (NOW_S, NOW_S + 200, end_s - 1, end_s, end_s + 1e6):
            promised = {"a/p": draw.uniform(0, 2 * now_s)}
            found = outcome(UNIT, Freeing(EVERY.layouts, promised, promised), policy, now_s)
            assert found.hold is None or (now_s < found.hold.until_s <= end_s)
            assert found.hold is None or found.hold.step in order


def test_a_refusal_that_lies_in_the_future_holds_nothing_back_for_longer() -> None:
    """Clocks differ between processes, and jump."""
    for created_s, now_s, is_held in ((0.0, 0.0, True), (0.0, 301.0, False), (86_400.0, 0.0, False)):
        refused = datetime.fromtimestamp(NOW_S + 86_400, UTC)
        waiting = pod("p")
        meta = replace(waiting.metadata, creation_timestamp=datetime.fromtimestamp(NOW_S + created_s, UTC))
        condition = replace(waiting.status.conditions[0], last_transition_time=refused)
        waiting = replace(waiting, metadata=meta, status=replace(waiting.status, conditions=(condition,)))
        (unit,) = waiting_units(given_for([waiting], []), NOW_S + now_s)
        found = outcome(unit, EVERY, MOVES, NOW_S + now_s)
        assert (found.hold is not None) is is_held


def test_what_a_layout_serves_is_not_provisioned_and_plans_do_not_get_dearer() -> None:
    draw = random.Random(11)
    held_once = False
    for _ in range(12):
        pods = [pod(f"p{number}", **{SLICE: str(draw.randint(1, 3))}) for number in range(draw.randint(1, 14))]
        gangs = {pod_key(each): f"a/g{draw.randrange(3)}" for each in pods if draw.random() < 0.4}
        nodes = [mig_node(f"n{number}", draw.randint(1, 2)) for number in range(draw.randint(0, 2))]
        given = given_for(pods, nodes, gangs)
        units = waiting_units(given, NOW_S)
        layouts = layouts_serving(given, units, nodes)
        found: list[tuple[WaitingUnit, UnitOutcome]] = [
            (unit, outcome(unit, Freeing(layouts), FreeingPolicy(), NOW_S)) for unit in units
        ]
        before, after = plan_nodes(given), plan_nodes(held_back(found, given))
        assert after.price <= before.price
        held = {key for unit, each in found if each.hold is not None for key in unit.keys}
        assert held == {key for unit in units if unit.name in layouts for key in unit.keys}
        assert held.isdisjoint(key for node in after.new_nodes for key in node.pods)
        held_once |= bool(held)
        # Gangs are held back as a whole, and one node gets one layout.
        assert {gangs[key] for key in held if key in gangs}.isdisjoint(
            gangs[key] for key in {pod_key(each) for each in pods} - held if key in gangs
        )
        chosen = {each for of_unit in layouts.values() for each in of_unit}
        assert len({node for node, _ in chosen}) == len(chosen)
        # The layouts serve all of these pods together.
        names = dict(chosen)
        under = [
            replace(node.existing, node=node.layouts[names[node.existing.name]])
            if node.existing.name in names
            else node.existing
            for node in nodes
        ]
        asked = tuple(each for each in pods if pod_key(each) in held)
        assert held <= plan_nodes(replace(given, nodes=tuple(under), pods=asked, pools=())).placed.keys()
    assert held_once


ALLOWED_LABELS = {"shoal.dev/mig-repartition": "true", "nvidia.com/mig.config.state": "success"}


def one_node(labels: dict[str, str], notes: dict[str, str], *residents: Pod, bound: Pod | None = None) -> bool:
    """Whether the GPUs of the node would be repartitioned for a pod that waits."""
    existing = mig_node("n1").existing
    meta = existing.node.metadata
    node = replace(existing.node, metadata=replace(meta, labels={**meta.labels, **labels}, annotations=notes))
    cluster = Cluster()
    intake = Intake(cluster)
    intake.apply(NodeSeen(node_facts_of(node)))
    if bound is not None:
        intake.apply(PodBound(pod_key(bound), ask_of_pod(bound), "n1"))
    waiting = pod("p", **{SLICE: "1"})
    given = replace(given_for([waiting], []), nodes=(replace(existing, node=node, pods=residents),))
    found = freed_capacity(cluster, given, FreeingPolicy(), datetime.fromtimestamp(NOW_S, UTC))
    assert found.is_holding is bool(found.layouts)
    return found.is_holding


def test_only_idle_gpus_whose_layout_may_be_changed_are_repartitioned() -> None:
    whole = pod("job", **{"nvidia.com/gpu": "1"})
    assert one_node(ALLOWED_LABELS, {})
    assert one_node(ALLOWED_LABELS, {}, pod("cpu"), bound=pod("cpu"))
    assert one_node(ALLOWED_LABELS, {CHANGED: "2025-12-31T22:00:00Z"})
    assert not one_node({}, {})
    assert not one_node({**ALLOWED_LABELS, "nvidia.com/mig.config.state": "pending"}, {})
    assert not one_node({**ALLOWED_LABELS, "nvidia.com/mig.capable": "false"}, {})
    assert not one_node(ALLOWED_LABELS, {}, bound=whole)
    for part in ("nvidia.com/gpu.shared", "nvidia.com/gpu-h100", "nvidia.com/gpumem", "koordinator.sh/gpu-core"):
        assert not one_node(ALLOWED_LABELS, {}, bound=pod("job", **{part: "1"}))
    assert not one_node(ALLOWED_LABELS, {}, whole), "capacity is kept for a pod that does not exist yet"
    # It was changed half an hour ago, and advertises what its layout says.
    assert not one_node(ALLOWED_LABELS, {CHANGED: "2025-12-31T23:30:00Z"})


def test_a_layout_that_is_being_applied_serves_until_its_time_is_over_or_it_failed() -> None:
    changing = {**ALLOWED_LABELS, "nvidia.com/mig.config": "all-1g.10gb"}
    assert one_node(changing, {CHANGED: "2025-12-31T23:58:00Z"})
    assert not one_node(changing, {CHANGED: "2025-12-31T23:50:00Z"})
    assert not one_node({**changing, "nvidia.com/mig.config.state": "failed"}, {CHANGED: "2025-12-31T23:58:00Z"})
    # A user has set a layout of the MIG manager's own file meanwhile.
    assert not one_node({**ALLOWED_LABELS, "nvidia.com/mig.config": "of-our-file"}, {CHANGED: "2025-12-31T23:59:00Z"})


def scattered(priority: int) -> Cluster:
    """Two nodes of two GPUs with one pod on each, and a pod that wants both GPUs of a node."""
    cluster = Cluster()
    intake = Intake(cluster)
    for number in range(2):
        intake.apply(NodeSeen(node_facts_of(mig_node(f"n{number}").existing.node)))
        resident = ask_of_pod(pod("r", **{"nvidia.com/gpu": "1"}))
        who = PodIdentity(since_s=NOW_S - 60 + number)
        intake.apply(PodBound(f"a/r{number}", resident, f"n{number}", who=who))
    intake.apply(PodArrived("a/p", ask_of_pod(pod("p", **{"nvidia.com/gpu": "2"})), priority=priority))
    return cluster


@pytest.mark.parametrize(("priority", "step"), [(0, "consolidate"), (10, "reclaim")])
def test_pods_that_will_have_run_long_enough_are_found_and_nothing_is_changed(priority: int, step: Any) -> None:
    cluster = scattered(priority)
    units = [WaitingUnit("a/p", (pod("p", **{"nvidia.com/gpu": "2"}),), NOW_S)]
    order: Any = (step,)
    policy = replace(MOVES, order=order, victims=VictimPolicy(min_runtime_s=120.0))
    for _ in range(2):
        (due_s,) = freed_by_pods(cluster, units, policy, NOW_S)[step].values()
        assert NOW_S + 60 <= due_s <= NOW_S + 61
        assert sorted(cluster.pods) == ["a/r0", "a/r1"]
        assert cluster.pending.in_order() == ["a/p"]
        assert not cluster.terminating
    assert not freed_by_pods(cluster, units, replace(policy, victims=VictimPolicy(min_runtime_s=3600.0)), NOW_S)[step]


def test_a_step_that_is_not_listed_is_taken_for_pods_that_have_waited_for_the_time_of_provisioning() -> None:
    cluster = scattered(10)
    own = RunConfiguration(node_scaling=NodeScalingRules(before_provisioning=(), provisioning_time="10m"))
    steps = steps_of_rules(own)
    placement = Placement(cluster, Profile("First"))
    for at_s in (0.0, 300.0, 599.0):
        assert not evicted(cycle(cluster, placement, now_s=NOW_S + at_s, seed=1, steps=steps))
    assert len(evicted(cycle(cluster, placement, now_s=NOW_S + 600, seed=1, steps=steps))) == 1


def evicted(plan: Plan) -> list[Evict]:
    return [each for each in plan.intentions if isinstance(each, Evict)]


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"beforeProvisioning": ["reclaim", "reclaim"]}, "beforeProvisioning"),
        ({"beforeProvisioning": ["repartition", "hope"]}, "beforeProvisioning"),
        ({"reclaimTimeout": "soon"}, "reclaimTimeout"),
        ({"consolidateTime": "5m"}, "consolidateTime"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_place(wrong: dict[str, Any], where: str) -> None:
    with pytest.raises(UserError) as error:
        convert({"nodeScaling": wrong}, RunConfiguration, Where()).check(Where())
    assert where in str(error.value)
