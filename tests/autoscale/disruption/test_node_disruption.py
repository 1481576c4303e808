"""Which nodes are removed or replaced, and what keeps the others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import structs

from build.pool_worlds import machine, pod, pool, standing, world
from shoal.api.pod import Pod
from shoal.api.selectors import LabelSelector
from shoal.autoscale.disruption.candidates import DisruptableNode
from shoal.autoscale.disruption.lost_work import LostWork
from shoal.autoscale.disruption.protection import DisruptionLimit
from shoal.autoscale.disruption.searches import DisruptionInput, NodeDisruption
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.nodes.pools import NodePool

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
BIG, MIDDLE, SMALL = machine("big", 16, price=8), machine("middle", 8, price=3), machine("small", 4, price=1)


def _running(name: str, cpu: str = "1", **spec: Any) -> Pod:
    return pod(name, cpu, start="2026-11-27T11:00:00Z", **spec)


def _searches(
    nodes: Sequence[ExistingNode],
    types: Sequence[InstanceType] = (BIG, MIDDLE, SMALL),
    *,
    pools: Sequence[NodePool] | None = None,
    limits: Sequence[DisruptionLimit] = (),
    spot_to_spot: bool = False,
    gangs: dict[str, str] | None = None,
    pending: Sequence[Pod] = (),
    lost_s: dict[str, float] | None = None,
    **facts: Any,
) -> NodeDisruption:
    """`facts` are those of every node."""
    usual: dict[str, Any] = {"is_consolidatable": True}
    given = DisruptionInput(
        planning=world(types, pending, pools=pools, nodes=nodes, gangs=gangs or {}),
        nodes=tuple(DisruptableNode(node, **{**usual, **facts}) for node in nodes),
        now=NOW,
        limits=tuple(limits),
        spot_to_spot=spot_to_spot,
        lost_work=LostWork(lost_s or {}),
    )
    return NodeDisruption(given)


def test_empty_nodes_are_removed_together() -> None:
    nodes = [standing("n1", BIG), standing("n2", BIG), standing("n3", BIG, _running("p"))]
    decision = _searches(nodes).decide("emptiness")

    assert (decision.action, decision.nodes, decision.saved) == ("delete", ("n1", "n2"), 16)


def test_a_node_with_daemon_pods_only_is_empty() -> None:
    assert _searches([standing("n", BIG, _running("d", owner="DaemonSet"))]).decide("emptiness").nodes == ("n",)


def test_a_node_whose_pods_fit_elsewhere_is_removed() -> None:
    nodes = [standing("n1", SMALL, _running("p", "1")), standing("n2", BIG, _running("q", "8"))]
    decision = _searches(nodes, (BIG, SMALL)).decide("single")

    assert (decision.action, decision.nodes, decision.replacements) == ("delete", ("n1",), ())
    assert decision.why == "their pods fit on other nodes"


def test_a_node_is_replaced_by_a_cheaper_one() -> None:
    decision = _searches([standing("n", BIG, _running("p", "2"))]).decide("single")

    assert decision.action == "replace"
    assert [one.name for one in decision.replacements[0].types] == ["small", "middle"]
    assert decision.saved == 7


def test_several_nodes_are_replaced_by_one() -> None:
    both = machine("both", 16, price=5)
    nodes = [standing(f"n{n}", MIDDLE, _running(f"p{n}", "6")) for n in range(2)]
    decision = _searches(nodes, (both, MIDDLE)).decide("multi")

    assert (decision.action, decision.nodes) == ("replace", ("n0", "n1"))
    assert [one.name for one in decision.replacements[0].types] == ["both"]


def test_of_several_nodes_one_is_not_replaced_by_its_own_type() -> None:
    nodes = [standing(f"n{n}", MIDDLE, _running(f"p{n}", "4")) for n in range(2)]
    decision = _searches(nodes, (MIDDLE,)).decide("multi")

    assert decision.action == "none", "removing one of them would do"


def test_nothing_is_replaced_at_the_same_price() -> None:
    decision = _searches([standing("n", SMALL, _running("p", "2"))]).decide("single")

    assert decision.action == "none"
    assert decision.kept == {"n": "no cheaper node would hold its pods"}


def test_a_pool_that_is_consolidated_when_empty_keeps_underused_nodes() -> None:
    pools = [pool(disruption={"consolidationPolicy": "WhenEmpty"})]
    searches = _searches([standing("n", BIG, _running("p")), standing("m", BIG)], pools=pools)

    assert searches.decide("single").action == "none"
    assert searches.decide("emptiness").nodes == ("m",)


def test_a_node_must_have_been_quiet_for_long_enough() -> None:
    pools = [pool(disruption={"consolidateAfter": "5m"})]
    early = _searches(
        [standing("n", BIG)], pools=pools, is_consolidatable=None, last_pod_event=NOW - timedelta(minutes=4)
    )
    late = _searches(
        [standing("n", BIG)], pools=pools, is_consolidatable=None, last_pod_event=NOW - timedelta(minutes=5)
    )

    assert early.decide("emptiness").kept == {"n": "it was quiet for 240 s of 300 s"}
    assert late.decide("emptiness").nodes == ("n",)


def test_annotations_and_budgets_protect_pods() -> None:
    guarded = _running("g", annotations={"karpenter.sh/do-not-disrupt": "true"})
    recent = _running("r", annotations={"karpenter.sh/do-not-disrupt": "2h"})
    past = _running("o", annotations={"karpenter.sh/do-not-disrupt": "30m"})
    budgeted = _running("b", labels={"app": "x"})
    limit = DisruptionLimit("x", "default", LabelSelector(match_labels={"app": "x"}), 0)

    for protected in (guarded, recent, budgeted):
        assert _searches([standing("n", BIG, protected)], limits=[limit]).decide("single").action == "none"
    assert _searches([standing("n", BIG, past)], limits=[limit]).decide("single").action == "replace"


def test_a_pod_that_cluster_autoscaler_may_not_evict_keeps_its_node() -> None:
    key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    guarded = _running("g", annotations={key: "false"})
    decision = _searches([standing("n", BIG, guarded)]).decide("single")

    assert decision.action == "none"
    assert decision.kept == {"n": f"pod default/g has annotation {key}: false"}
    assert _searches([standing("n", BIG, _running("g", annotations={key: "true"}))]).decide("single").nodes == ("n",)


def test_pods_of_daemon_sets_that_may_not_be_evicted_keep_no_node() -> None:
    daemon = _running("d", owner="DaemonSet", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})

    assert _searches([standing("n", BIG, daemon)]).decide("emptiness").nodes == ("n",)


def test_a_node_that_cluster_autoscaler_may_not_remove_stays() -> None:
    key = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
    for method in ("emptiness", "drift"):
        node = standing("n", BIG)
        guarded = structs.replace(
            node,
            node=structs.replace(node.node, metadata=structs.replace(node.node.metadata, annotations={key: "true"})),
        )
        searches = _searches([guarded], drifted_since=NOW)
        assert searches.decide(method).action == "none"
        assert searches.decide(method).kept == {"n": f"it has annotation {key}"}
        assert _searches([node], drifted_since=NOW).decide(method).nodes == ("n",)


def test_a_drifted_node_with_a_grace_period_is_replaced_in_spite_of_its_pods() -> None:
    guarded = _running("g", annotations={"karpenter.sh/do-not-disrupt": "true"})
    drifted: dict[str, Any] = {"drifted_since": NOW - timedelta(hours=1)}
    nodes = [standing("n", SMALL, guarded)]

    assert _searches(nodes, **drifted).decide("drift").action == "none"
    assert _searches(nodes, **drifted, termination_grace_s=60.0).decide("drift").action == "replace"


def test_expired_nodes_are_removed_whatever_protects_them() -> None:
    pools = [pool(disruption={"budgets": [{"nodes": "0"}]})]
    nodes = [standing("n", BIG, _running("p", annotations={"karpenter.sh/do-not-disrupt": "true"}))]
    facts: dict[str, Any] = {"created": NOW - timedelta(hours=2), "expire_after_s": 7200.0}

    assert _searches(nodes, pools=pools, **facts).decide("expiry").nodes == ("n",)
    assert _searches(nodes, pools=pools, **{**facts, "expire_after_s": 7201.0}).decide("expiry").action == "none"


def test_pods_do_not_wait_for_a_node_that_starts() -> None:
    nodes = [standing("n1", SMALL, _running("p")), standing("n2", BIG, is_initialized=False)]

    assert _searches(nodes, (BIG, SMALL)).decide("single").action == "none"


def test_a_gang_is_not_split() -> None:
    nodes = [standing(f"n{n}", BIG, _running(f"p{n}", "1")) for n in range(2)]
    gangs = {"default/p0": "train", "default/p1": "train"}
    searches = _searches(nodes, gangs=gangs)

    assert searches.decide("single").kept == {"n0": "gang train would be split", "n1": "gang train would be split"}
    assert searches.decide("multi").nodes == ("n0", "n1")


def test_a_single_spot_node_needs_many_cheaper_types() -> None:
    def types(count: int) -> list[InstanceType]:
        return [machine(f"s{n:02}", 4, price=9, spot=0.1 + n / 100) for n in range(count + 1)]

    def search(count: int, *, is_on: bool) -> tuple[str, int]:
        kinds = types(count)
        node = standing("n", kinds[-1], _running("p"), capacity_type="spot")
        decision = _searches([node], kinds, spot_to_spot=is_on).decide("single")
        return decision.action, sum(len(new.types) for new in decision.replacements)

    assert search(20, is_on=False) == ("none", 0)
    assert search(14, is_on=True) == ("none", 0)
    assert search(20, is_on=True) == ("replace", 15)


def test_an_on_demand_node_is_replaced_by_spot_only_if_spot_was_compared() -> None:
    kind = machine("x", 4, price=2, spot=0.5)
    new = _searches([standing("n", kind, _running("p"))], (kind,)).decide("single").replacements[0]

    assert new.capacity_types == ("spot",)
    assert new.offering.capacity_type == "spot"


def test_pods_of_leaving_nodes_need_a_place_too() -> None:
    leaving = standing("n0", SMALL, _running("q", "3"), is_deleting=True)
    nodes = [leaving, standing("n1", SMALL, _running("p", "3")), standing("n2", SMALL)]

    assert _searches(nodes, (SMALL,)).decide("single").action == "none"


def test_the_node_that_saves_most_for_each_eviction_comes_first() -> None:
    nodes = [
        standing("n1", MIDDLE, _running("a"), _running("b")),
        standing("n2", MIDDLE, _running("c")),
        standing("n3", BIG, _running("d", "8", annotations={"karpenter.sh/do-not-disrupt": "true"})),
    ]

    assert _searches(nodes).decide("single").nodes == ("n2",)


def test_a_spot_node_is_not_replaced_where_its_pool_could_launch_spot_again() -> None:
    dear = machine("dear", 8, price=9, spot=5)
    plain = machine("plain", 4, price=1)
    node = standing("n", dear, _running("p"), capacity_type="spot")
    on_demand = [pool("default", ("karpenter.sh/capacity-type", "In", ["on-demand"]))]

    assert _searches([node], (dear, plain)).decide("single").action == "none"
    assert _searches([node], (dear, plain), pools=on_demand).decide("single").action == "replace"


def test_nothing_is_disrupted_for_less_than_the_work_that_it_loses() -> None:
    node = standing("n", BIG, _running("p", "2"))

    # A cheaper node saves 7 an hour; the pod loses 8 an hour for as long as it must work again.
    assert _searches([node], lost_s={"default/p": 3000.0}).decide("single").action == "replace"
    long = _searches([node], lost_s={"default/p": 3600.0}).decide("single")
    assert long.action == "none"
    assert long.kept == {"n": "its pods would lose work worth $8.00, and $7.00 per hour would be saved"}


def test_a_node_that_was_chosen_because_it_is_not_interrupted_is_not_replaced_by_spot() -> None:
    def kept(interruptions: float, **training: str) -> dict[str, str]:
        kind = machine("x", 4, price=2, spot=0.5, gpus=1, interruptions=interruptions)
        annotations = {f"shoal.dev/{key.replace('_', '-')}": value for key, value in training.items()}
        node = standing("n", kind, _running("p", gpus=1, owner="Job", annotations=annotations))
        return dict(_searches([node], (kind,)).decide("single").kept)

    assert kept(0.3, checkpoint_every="1h") == {}
    assert kept(0.3) == {
        "n": "interruptions of the new node would lose work worth $1.81 per hour more, "
        "and $1.50 per hour would be saved"
    }


def test_a_dear_node_is_replaced_by_on_demand_where_spot_would_lose_too_much_work() -> None:
    dear = machine("dear", 4, price=40, gpus=1)

    def replacement(price: float) -> tuple[str, float] | None:
        other = machine("other", 4, price=price, spot=15, gpus=1, interruptions=0.3)
        node = standing("n", dear, _running("p", gpus=1, owner="Job"))
        found = _searches([node], (dear, other)).decide("single")
        for new in found.replacements:
            assert new.requirements.get("karpenter.sh/capacity-type").has("spot") is False
        return next(((new.offering.capacity_type, found.saved) for new in found.replacements), None)

    assert replacement(20) == ("on-demand", 20.0)
    assert replacement(41) is None


def test_lost_work_does_not_keep_drifted_and_expired_nodes() -> None:
    nodes = [standing("n", BIG, _running("p", "2"))]
    drifted = _searches(nodes, lost_s={"default/p": 1e6}, drifted_since=NOW)
    expired = _searches(nodes, lost_s={"default/p": 1e6}, created=NOW - timedelta(hours=2), expire_after_s=60.0)

    assert drifted.decide("drift").action == "replace"
    assert expired.decide("expiry").action == "delete"


def test_a_balanced_pool_saves_enough_for_the_pods_that_it_evicts() -> None:
    balanced = [pool(disruption={"consolidationPolicy": "Balanced"})]
    pods = [_running(f"p{number}", "100m") for number in range(20)]
    full = [standing(f"n{number}", BIG, _running(f"q{number}", "16")) for number in range(9)]
    nodes = [standing("n", machine("odd", 4, price=0.9), *pods), *full]
    kinds = (machine("odd", 4, price=0.9), BIG, machine("tiny", 3, price=0.8))

    assert _searches(nodes, kinds).decide("single").nodes == ("n",)
    assert _searches(nodes, kinds, pools=balanced).decide("single").kept["n"] == (
        "0 % of its pool's cost would be saved for 54 % of its pods"
    )


def test_a_node_that_is_paid_already_is_not_replaced_by_one_that_costs_more() -> None:
    paid = structs.replace(BIG, offerings=(Offering("a", "reserved", 20),))
    node = standing("n", paid, _running("p", "2"), capacity_type="reserved")

    assert _searches([node], (paid, SMALL)).decide("single").action == "none"
