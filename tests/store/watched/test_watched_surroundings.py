"""Nodes, namespaces, classes, topologies, budgets and DaemonSets of a living cluster."""

from __future__ import annotations

from build.fed_worlds import FedWorld
from build.manifests import exactly, hyper_node, node, pod, priority_class, thing, topology, volcano_group
from shoal.client.item import Obj
from shoal.engine.events import (
    BudgetGone,
    BudgetSeen,
    DaemonSetGone,
    DaemonSetSeen,
    GroupSeen,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PodArrived,
    TopologyGone,
    TopologySeen,
)


def budget(allowed: int = 1, **spec: object) -> Obj:
    made = thing("policy/v1", "PodDisruptionBudget", "b", status={"disruptionsAllowed": allowed})
    made["spec"] = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}, **spec}
    return made


def daemon_set(cpu: str = "1") -> Obj:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return thing("apps/v1", "DaemonSet", "kube-system/agent", spec={"template": {"spec": {"containers": containers}}})


def test_a_node_that_only_reports_itself_is_not_told_again() -> None:
    fed = FedWorld()
    fed.put(node("n1", 4))
    assert len(fed.heard(NodeSeen)) == 1
    fed.wakes = 0
    beating = node("n1", 4)
    beating["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]
    fed.put(beating)
    assert fed.wakes == 0
    assert fed.drain() == []


def test_a_node_that_is_cordoned_is_told_and_one_that_is_deleted_is_gone() -> None:
    fed = FedWorld()
    fed.put(node("n1"))
    fed.drain()
    fed.put(node("n1", spec={"unschedulable": True}))
    assert [event.node.unschedulable for event in fed.heard(NodeSeen)] == [True]
    fed.drop(node("n1"))
    assert [event.name for event in fed.heard(NodeGone)] == ["n1"]


def test_a_node_that_cannot_be_read_stays_as_it_was_known() -> None:
    fed = FedWorld()
    fed.put(node("n1", 4))
    fed.drain()
    fed.put(node("n1", 4, labels={"nvidia.com/gpu.count": "many", "nvidia.com/gpu.replicas": "x"}))
    assert fed.heard(NodeGone) == []
    fed.put(node("n1", 5))
    assert [event.node.gpus for event in fed.heard(NodeSeen)] == [5]


def test_a_network_gives_nodes_labels_that_groups_can_wish_for() -> None:
    fed = FedWorld()
    fed.put(node("n1"), node("n2"), volcano_group("g", 1, networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    fed.drain()
    fed.put(hyper_node("h1", 1, exactly("Node", "n1")))
    events = fed.drain()
    labels = {event.node.name: event.node.labels for event in events if isinstance(event, NodeSeen)}
    assert labels["n1"]["shoal.dev/hypernode-tier-1"] == "h1"
    assert "shoal.dev/hypernode-tier-1" not in labels["n2"]
    assert [event.group.requirement.required for event in events if isinstance(event, GroupSeen)] == [
        "shoal.dev/hypernode-tier-1"
    ]
    order = [type(event) for event in events]
    assert order.index(TopologySeen) < order.index(GroupSeen)


def test_topologies_come_and_go() -> None:
    fed = FedWorld()
    fed.put(topology("kueue.x-k8s.io/v1beta1", "default", "rack"), topology("kai.scheduler/v1alpha1", "default", "row"))
    seen = {event.topology.name: event.topology.levels for event in fed.heard(TopologySeen)}
    assert seen == {"kueue/default": ("rack",), "kai/default": ("row",)}
    fed.drop(topology("kai.scheduler/v1alpha1", "default"))
    assert [event.name for event in fed.heard(TopologyGone)] == ["kai/default"]


def test_a_namespace_carries_its_name_as_a_label() -> None:
    fed = FedWorld()
    fed.put(thing("v1", "Namespace", "team"))
    assert [event.labels for event in fed.heard(NamespaceSeen)] == [{"kubernetes.io/metadata.name": "team"}]


def test_a_class_decides_whether_its_pods_have_others_removed() -> None:
    fed = FedWorld()
    fed.put(priority_class("gentle", 7, preemptionPolicy="Never"), pod("a", priority=7, priorityClassName="gentle"))
    assert [(event.priority, event.who.preempts) for event in fed.heard(PodArrived)] == [(7, False)]


def test_a_class_that_nobody_names_makes_nobody_be_read_again() -> None:
    fed = FedWorld()
    fed.put(pod("a"))
    fed.drain()
    fed.put(priority_class("new", 7))
    assert fed.drain() == []


def test_a_budget_follows_its_pods_and_believes_its_status() -> None:
    fed = FedWorld()
    fed.put(budget(2), pod("a", labels={"app": "x"}), pod("b", labels={"app": "y"}))
    (seen,) = fed.heard(BudgetSeen)
    assert (seen.budget.allowed, set(seen.budget.pods)) == (2, {"default/a"})
    fed.put(pod("c", labels={"app": "x"}))
    assert [event.budget.pods for event in fed.heard(BudgetSeen)] == [{"default/a", "default/c"}]
    fed.put(budget(0))
    assert [event.budget.allowed for event in fed.heard(BudgetSeen)] == [0]
    fed.drop(pod("a"))
    assert [event.budget.pods for event in fed.heard(BudgetSeen)] == [{"default/c"}]
    fed.drop(budget())
    assert [event.name for event in fed.heard(BudgetGone)] == ["b"]


def test_a_daemon_set_is_told_when_what_its_pods_ask_changes() -> None:
    fed = FedWorld()
    fed.put(daemon_set())
    assert [event.name for event in fed.heard(DaemonSetSeen)] == ["kube-system/agent"]
    fed.put({**daemon_set(), "status": {"numberReady": 3}})
    assert fed.drain() == []
    fed.put(daemon_set("2"))
    assert len(fed.heard(DaemonSetSeen)) == 1
    fed.drop(daemon_set())
    assert [event.name for event in fed.heard(DaemonSetGone)] == ["kube-system/agent"]


def test_nothing_is_mentioned_before_it_is_known() -> None:
    fed = FedWorld()
    fed.put(pod("late"), pod("b", on="n1"), volcano_group("g", 1), node("n1"), thing("v1", "Namespace", "team"))
    order = [type(event).__name__ for event in fed.drain()]
    assert order == ["NamespaceSeen", "NodeSeen", "GroupSeen", "PodBound", "PodArrived"]
