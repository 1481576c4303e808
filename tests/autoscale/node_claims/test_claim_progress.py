"""What a NodeClaim needs next, which nodes are repaired, and how long a failed offering is avoided."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.api.conditions import Condition
from shoal.api.decode import convert
from shoal.api.node import Node
from shoal.autoscale.disruption.repair import NodeHealth, unhealthy_nodes
from shoal.autoscale.node_claims.claim import claim_of
from shoal.autoscale.node_claims.offering_failures import OfferingFailures
from shoal.autoscale.node_claims.pool_refusals import PoolRefusals
from shoal.autoscale.node_claims.progress import ClaimStep, ProvisionLimits, step_of
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.units.errors import Where

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LIMITS = ProvisionLimits(launch_s=300)


def _claim(*true: str, age_s: float = 100.0, **meta: Any) -> Any:
    since = (NOW - timedelta(seconds=age_s)).isoformat()
    conditions = [{"type": type_, "status": "True", "lastTransitionTime": since} for type_ in true]
    status = {"conditions": conditions, "providerID": "x", "capacity": {"nvidia.com/gpu": "8", "cpu": "96"}}
    return claim_of({"metadata": {"name": "c", "creationTimestamp": since, **meta}, "status": status})


def _node(gpus: int = 8, ready: str = "True", *taints: str) -> Node:
    raw = {
        "metadata": {"name": "n"},
        "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]},
        "status": {
            "allocatable": {"cpu": "95", "nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
    return convert(raw, Node, Where())


L, R, DONE = "Launched", "Registered", "Initialized"
STEPS: dict[str, tuple[Any, Node | None, bool, ClaimStep]] = {
    "a new claim is launched": (_claim(), None, False, ClaimStep.LAUNCH),
    "one that is not launched for long is given up": (_claim(age_s=301), None, False, ClaimStep.GIVE_UP),
    "a launched one waits for its node": (_claim(L), None, True, ClaimStep.WAIT),
    "an instance that is not listed at once is waited for": (_claim(L, age_s=30), None, False, ClaimStep.WAIT),
    "an instance that is gone is lost": (_claim(L), None, False, ClaimStep.LOST),
    "a node that is there registers": (_claim(L), _node(), True, ClaimStep.REGISTER),
    "a node that does not register is given up": (_claim(L, age_s=901), None, True, ClaimStep.GIVE_UP),
    "a ready node with all GPUs is initialized": (_claim(L, R), _node(), True, ClaimStep.INITIALIZE),
    "a node without its GPUs waits": (_claim(L, R), _node(0), True, ClaimStep.WAIT),
    "a node with seven of eight GPUs waits": (_claim(L, R), _node(7), True, ClaimStep.WAIT),
    "a node that is not ready waits": (_claim(L, R), _node(8, "False"), True, ClaimStep.WAIT),
    "a node with the taint of new nodes waits": (
        _claim(L, R),
        _node(8, "True", "node.kubernetes.io/not-ready"),
        True,
        ClaimStep.WAIT,
    ),
    "a node that never starts is given up": (_claim(L, R, age_s=901), _node(0), True, ClaimStep.GIVE_UP),
    "a node that was deleted is lost": (_claim(L, R, DONE), None, True, ClaimStep.LOST),
    "a node that works needs nothing": (_claim(L, R, DONE, age_s=9000), _node(), True, ClaimStep.NONE),
    "a deleted claim is ended": (_claim(L, deletionTimestamp=NOW.isoformat()), None, True, ClaimStep.TERMINATE),
}


@pytest.mark.parametrize("case", STEPS.values(), ids=STEPS.keys())
def test_the_next_step(case: tuple[Any, Node | None, bool, ClaimStep]) -> None:
    claim, node, has_instance, wanted = case
    found = step_of(claim, node, has_instance=has_instance, now_s=NOW.timestamp(), limits=LIMITS)
    assert found.step is wanted


def test_an_offering_that_fails_again_is_avoided_for_longer_until_it_starts() -> None:
    failures, offer = OfferingFailures(), ("t", "a", "spot")
    assert failures.note_failure(offer, 0.0) == 180.0
    assert failures.note_failure(offer, 10.0) == 180.0, "a request that was on its way"
    assert failures.note_failure(offer, 200.0) == 560.0
    assert failures.note_failure(offer, 600.0) == 1320.0
    types = [InstanceType("t", {}, offerings=(Offering("a", "spot", 1.0), Offering("b", "spot", 1.0)))]
    (one,) = failures.applied(types, 700.0)
    assert [each.is_available for each in one.offerings] == [False, True]
    assert failures.next_s(700.0) == 1320.0
    failures.note_start(offer)
    assert failures.note_failure(offer, 2000.0) == 2180.0


def test_a_pool_that_is_refused_again_is_left_out_for_longer_until_its_node_class_is_another_one() -> None:
    refusals = PoolRefusals()
    types = [InstanceType("t", {}, offerings=(Offering("a", "spot", 1.0),))]

    def is_usable(pool: str, node_class: str, now_s: float) -> bool:
        (one,) = refusals.applied(pool, node_class, types, now_s)
        return one.offerings[0].is_available

    assert refusals.note_refusal("p", "old", "no template", 0.0) == 30.0
    assert refusals.note_refusal("p", "old", "no template", 1.0) == 30.0, "a request that was on its way"
    assert [is_usable("p", "old", 29.0), is_usable("p", "old", 30.0), is_usable("q", "old", 1.0)] == [False, True, True]
    assert refusals.note_refusal("p", "old", "no template", 40.0) == 100.0
    assert refusals.next_s(50.0) == 100.0
    assert refusals.words("p", "old") == "no template"
    assert is_usable("p", "new", 50.0)
    assert refusals.words("p", "new") == ""
    assert refusals.note_refusal("p", "new", "no image", 50.0) == 80.0
    refusals.note_grant("p")
    assert is_usable("p", "new", 60.0)


def test_gpus_get_ten_minutes_and_a_node_that_is_not_ready_half_an_hour() -> None:
    def broken(name: str, type_: str, status: str, minutes: float) -> NodeHealth:
        since = NOW - timedelta(minutes=minutes)
        return NodeHealth(name, "gpu", (Condition(type_, status, last_transition_time=since),))

    well = [NodeHealth(f"w{number}", "gpu", (Condition("Ready", "True"),)) for number in range(20)]
    nodes = [
        broken("gpu-young", "GPUHealthy", "False", 9),
        broken("gpu-old", "GPUHealthy", "False", 11),
        broken("slow", "Ready", "Unknown", 29),
        broken("dead", "Ready", "False", 31),
    ]
    assert set(unhealthy_nodes([*well, *nodes], NOW)) == {"gpu-old", "dead"}
    assert unhealthy_nodes([*well[:5], *nodes], NOW) == {}, "more than a fifth of the pool is broken"
    assert set(unhealthy_nodes(nodes[1:2], NOW)) == {"gpu-old"}, "the only node of its pool"
