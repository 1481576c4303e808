"""Objects of every ecosystem as events: gangs, parts, wishes, standings, budgets, in an order that makes sense."""

from __future__ import annotations

import json
from typing import Any

import pytest

from build.manifests import (
    Object,
    exactly,
    group,
    hyper_node,
    job,
    kai_group,
    node,
    pod,
    priority_class,
    replicas,
    thing,
    topology,
    volcano_group,
)
from shoal.api.decode import read
from shoal.engine.events import (
    BudgetSeen,
    GroupSeen,
    NamespaceSeen,
    NodeSeen,
    OthersSeen,
    PodArrived,
    PodBound,
    TopologySeen,
)
from shoal.engine.groups import GangSubgroup, GroupFacts, TopologyFacts, TopologyRequirement
from shoal.engine.pod_identity import PodIdentity
from shoal.store.manifest_cluster import ManifestCluster, manifest_cluster_of
from shoal.units.errors import UserError

GROUP = "scheduling.k8s.io/group-name"
KAI_GROUP = "pod-group-name"
TIER = "shoal.dev/hypernode-tier-{}"
KUEUE, KAI = "kueue.x-k8s.io/v1beta1", "kai.scheduler/v1alpha1"


def world(*objects: Object) -> ManifestCluster:
    return manifest_cluster_of(read(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), "w.json"))


def seen(kind: type, *objects: Object) -> list[Any]:
    return [event for event in world(*objects).events if isinstance(event, kind)]


def gangs(*objects: Object) -> dict[str, GroupFacts]:
    return {event.group.name: event.group for event in seen(GroupSeen, *objects)}


def whos(*objects: Object) -> dict[str, PodIdentity]:
    return {event.key: event.who for event in world(*objects).events if isinstance(event, PodArrived | PodBound)}


def who(*objects: Object) -> PodIdentity:
    (only,) = whos(*objects).values()
    return only


# -- order ---------------------------------------------------------------------------------------------------


def test_nothing_is_mentioned_before_it_is_known() -> None:
    everything = [
        pod("t/late", annotations={GROUP: "g"}),
        pod("t/runs", on="n"),
        volcano_group("t/g", 1),
        thing("policy/v1", "PodDisruptionBudget", "t/b", spec={"minAvailable": 1, "selector": {}}),
        node("n"),
        topology(KUEUE, "default", "rack"),
        thing("v1", "Namespace", "t"),
    ]
    kinds = [type(event) for event in world(*everything).events]
    assert kinds == [NamespaceSeen, TopologySeen, GroupSeen, NodeSeen, BudgetSeen, PodBound, PodArrived]


def test_the_present_is_the_latest_moment_written_down() -> None:
    started = pod("t/a", on="n", status={"startTime": "2026-01-01T00:00:10Z"})
    born = pod("t/b", meta={"creationTimestamp": "2026-01-01T00:00:00Z"})
    assert world(started, born).now_s == 1767225610.0


def test_the_members_of_a_gang_go_by_age_wherever_they_were_written() -> None:
    old = pod("t/old", annotations={GROUP: "g"}, meta={"creationTimestamp": "2026-01-01T00:00:00Z"})
    new = pod("t/new", annotations={GROUP: "g"}, meta={"creationTimestamp": "2026-01-01T00:00:01Z"})
    for written in ([old, new], [new, old]):
        found = whos(*written)
        assert found["t/old"].order < found["t/new"].order


# -- whom a pod belongs to -----------------------------------------------------------------------------------

SPELLINGS: dict[str, Object] = {
    "Volcano's annotation": pod("t/p", annotations={GROUP: "g"}),
    "Volcano's newer annotation": pod("t/p", annotations={"scheduling.volcano.sh/group-name": "g"}),
    "KAI's annotation": pod("t/p", annotations={KAI_GROUP: "g"}),
    "the label of the scheduler plugins": pod("t/p", labels={"scheduling.x-k8s.io/pod-group": "g"}),
    "their older label": pod("t/p", labels={"pod-group.scheduling.sigs.k8s.io": "g"}),
    "their oldest label": pod("t/p", labels={"pod-group.scheduling.sigs.k8s.io/name": "g"}),
    "Kueue's label": pod("t/p", labels={"kueue.x-k8s.io/pod-group-name": "g"}),
    "Kubernetes' own field": pod("t/p", schedulingGroup={"podGroupName": "g"}),
    "two spellings that agree": pod("t/p", annotations={GROUP: "g"}, labels={"scheduling.x-k8s.io/pod-group": "g"}),
}


@pytest.mark.parametrize("written", SPELLINGS.values(), ids=SPELLINGS)
def test_a_pod_names_its_gang_by(written: Object) -> None:
    assert who(written).group == "t/g"


def test_pods_name_a_group_inside_a_workload() -> None:
    policy = {"gang": {"minCount": 2}}
    workload = thing(
        "scheduling.k8s.io/v1alpha1", "Workload", "t/w", spec={"podGroups": [{"name": "g", "policy": policy}]}
    )
    pods = [
        pod(f"t/p{n}", workloadRef={"name": "w", "podGroup": "g", "podGroupReplicaKey": str(n % 2)}) for n in range(4)
    ]
    names = ("t/w/g/0", "t/w/g/1")
    assert gangs(workload, *pods) == {name: GroupFacts(name, minimum=2, has_fixed_minimum=True) for name in names}
    workload["spec"]["podGroups"][0]["policy"] = {"basic": {}}
    assert {each.group for each in whos(workload, *pods).values()} == {""}


def test_pods_may_carry_the_minimum_themselves() -> None:
    light = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "3"}
    assert gangs(pod("t/p", labels=light))["t/g"].minimum == 3
    total = pod(
        "t/p",
        labels={"kueue.x-k8s.io/pod-group-name": "g"},
        annotations={"kueue.x-k8s.io/pod-group-total-count": "4"},
    )
    assert gangs(total)["t/g"].minimum == 4


@pytest.mark.parametrize("word", ["pod-group-fast-admission", "pod-group-serving"])
def test_a_group_that_kueue_lets_start_one_by_one_is_no_gang(word: str) -> None:
    annotations = {
        "kueue.x-k8s.io/pod-group-total-count": "3",
        f"kueue.x-k8s.io/{word}": "true",
        "kueue.x-k8s.io/podset-required-topology": "rack",
    }
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    first = pod("t/db-0", labels={"kueue.x-k8s.io/pod-group-name": "g"}, annotations=annotations)
    first["metadata"]["ownerReferences"] = [owner]
    assert gangs(topology(KUEUE, "net", "rack"), replicas("StatefulSet", "t/db", 3), first) == {}
    assert who(first).group == ""
    marked = replicas("StatefulSet", "t/db", 3, annotations={"shoal.dev/gang": "true"})
    marked["spec"]["podManagementPolicy"] = "Parallel"
    assert gangs(marked, first)["t/db"].minimum == 3, "it asks for a gang itself"


def test_a_group_of_kueue_is_no_gang_where_kueue_itself_runs() -> None:
    controller = replicas("Deployment", "kueue-system/kueue-controller-manager", 0)
    controller["status"] = {"readyReplicas": 1}
    words: Object = {
        "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
    }
    one = pod("t/p", **words)
    assert gangs(controller, one) == {}
    assert {each.group for each in whos(controller, one).values()} == {""}
    controller["metadata"]["namespace"] = "of-a-tenant"
    assert set(gangs(controller, one)) == {"t/g"}
    controller["metadata"]["namespace"] = "kueue-system"
    words["annotations"]["shoal.dev/gang"] = "true"
    assert set(gangs(controller, pod("t/p", **words))) == {"t/g"}, "it asks for a gang itself"


KUEUES: Object = {
    "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
    "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
}


def kueue_at_work(namespace: str) -> Object:
    controller = replicas("Deployment", f"{namespace}/kueue-controller-manager", 0)
    return {**controller, "status": {"readyReplicas": 1}}


def leader(namespace: str, holder: str = "kueue-1") -> Object:
    spec = {"holderIdentity": holder}
    return thing("coordination.k8s.io/v1", "Lease", f"{namespace}/c1f6bfd2.kueue.x-k8s.io", spec=spec)


def kueue_config(namespace: str) -> Object:
    return {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": namespace}


def shoal_config(namespace: str) -> Object:
    head = {"apiVersion": "config.shoal.dev/v1alpha1", "kind": "ShoalConfiguration"}
    return {**head, "namespaces": {"kueue": namespace}}


SIGNS: dict[str, tuple[list[Object], bool]] = {
    "its Deployment in its usual namespace": ([kueue_at_work("kueue-system")], True),
    "its Deployment where its configuration says": ([kueue_at_work("queues"), kueue_config("queues")], True),
    "its Deployment where ours says": ([kueue_at_work("queues"), shoal_config("queues")], True),
    "its Deployment elsewhere": ([kueue_at_work("queues")], False),
    "its leader's Lease": ([leader("kueue-system")], True),
    "a Lease elsewhere": ([leader("queues")], False),
    "a Lease that was given up": ([leader("kueue-system", "")], False),
}


@pytest.mark.parametrize("case", SIGNS)
def test_kueue_is_known_by_the_signs_by_which_it_is_known_live(case: str) -> None:
    objects, is_at_work = SIGNS[case]
    assert gangs(*objects, pod("t/p", **KUEUES)).keys() == (set() if is_at_work else {"t/g"})


@pytest.mark.parametrize("turned", [False, True])
def test_a_group_is_a_gang_where_one_of_its_pods_names_it_for_another_scheduler_too(turned: bool) -> None:
    other = {**KUEUES["labels"], "pod-group.scheduling.sigs.k8s.io/name": "g"}
    pods = [pod("t/a", **KUEUES), pod("t/b", labels=other, annotations=KUEUES["annotations"])]
    found = gangs(kueue_at_work("kueue-system"), *(pods[::-1] if turned else pods))
    assert found["t/g"].minimum == 2


@pytest.mark.parametrize("turned", [False, True])
def test_a_gang_needs_as_many_as_any_of_its_pods_says(turned: bool) -> None:
    light = {"pod-group.scheduling.sigs.k8s.io/name": "g"}
    told = {**light, "pod-group.scheduling.sigs.k8s.io/min-available": "2"}
    pods = [pod("t/a", labels=light), pod("t/b", labels=told)]
    assert gangs(*(pods[::-1] if turned else pods))["t/g"].minimum == 2


PLACED: dict[str, tuple[list[Object], bool]] = {
    "whole GPUs by another scheduler": ([pod("t/p", on="n", gpus=1)], True),
    "no GPU": ([pod("t/p", on="n", cpu=1)], False),
    "a part of a GPU": ([pod("t/p", on="n", annotations={"gpu-fraction": "0.5"})], False),
    "by us": ([pod("t/p", on="n", gpus=1, schedulerName="shoal")], False),
    "by us under another name": ([pod("t/p", on="n", gpus=1, annotations={"shoal.dev/devices": "0"})], False),
    "by a scheduler for which others wait here": ([pod("t/p", on="n", gpus=1), pod("t/waits")], False),
}


@pytest.mark.parametrize("case", PLACED)
def test_pods_with_gpus_that_others_placed_are_told(case: str) -> None:
    objects, is_reported = PLACED[case]
    events = world(node("n", gpus=2), *objects).events
    assert [event for event in events if isinstance(event, OthersSeen)] == [OthersSeen(place_gpus=True)] * is_reported


def test_a_controller_may_be_a_gang() -> None:
    assert gangs(job("t/j", 4, annotations={"kai.scheduler/batch-min-member": "3"})) == {
        "t/j": GroupFacts("t/j", minimum=3)
    }
    marked = replicas("Deployment", "t/d", 3, annotations={"scheduling.volcano.sh/group-min-member": "2"})
    assert gangs(marked) == {"t/d": GroupFacts("t/d", minimum=2)}
    assert set(whos(marked)) == {"t/d-0", "t/d-1", "t/d-2"}
    assert {each.group for each in whos(marked).values()} == {"t/d"}
    assert gangs(job("t/j", 4)) == {}


def test_controllers_without_a_name_are_not_one_gang() -> None:
    jobs = [job("t/", 2, annotations={"kai.scheduler/batch-min-member": "2"}) for _ in range(2)]
    for made, begins in zip(jobs, ("train-", "eval-"), strict=True):
        made["metadata"] |= {"name": "", "generateName": begins}
    assert sorted(gangs(*jobs)) == ["t/eval", "t/train"]
    assert {pod: who.group for pod, who in whos(*jobs).items()} == {
        "t/train-0": "t/train",
        "t/train-1": "t/train",
        "t/eval-0": "t/eval",
        "t/eval-1": "t/eval",
    }


# -- standing ------------------------------------------------------------------------------------------------

YIELDS: dict[str, tuple[list[Object], bool]] = {
    "anybody": ([pod("t/p")], True),
    "of a high priority": ([pod("t/p", priority=1000)], True),
    "what Volcano calls not preemptable": ([pod("t/p", annotations={"volcano.sh/preemptable": "false"})], False),
    "what KAI calls non-preemptible": ([pod("t/p", labels={"kai.scheduler/preemptibility": "non-preemptible"})], False),
    "KAI's work of priority 100": ([pod("t/p", labels={"kai.scheduler/queue": "q"}, priority=100)], False),
    "KAI's work of priority 99": ([pod("t/p", labels={"kai.scheduler/queue": "q"}, priority=99)], True),
    "KAI's preemptible work of priority 100": (
        [pod("t/p", labels={"kai.scheduler/queue": "q", "kai.scheduler/preemptibility": "preemptible"}, priority=100)],
        True,
    ),
    "the system's own": ([pod("t/p", priorityClassName="system-node-critical")], False),
}


@pytest.mark.parametrize(("objects", "is_preemptible"), YIELDS.values(), ids=YIELDS)
def test_who_yields(objects: list[Object], is_preemptible: bool) -> None:
    assert who(*objects).is_preemptible is is_preemptible


def test_who_makes_others_yield() -> None:
    quiet = priority_class("quiet", 10, preemptionPolicy="Never")
    assert who(pod("t/p")).preempts
    assert not who(pod("t/p", preemptionPolicy="Never")).preempts
    assert not who(quiet, pod("t/p", priorityClassName="quiet")).preempts


def test_when_it_started_and_when_its_work_was_saved() -> None:
    status = {"startTime": "1970-01-01T00:01:00Z"}
    saved = pod("t/p", on="n", annotations={"shoal.dev/last-checkpoint": "1970-01-01T01:01:30+01:00"}, status=status)
    assert (who(saved).since_s, who(saved).saved_s) == (60.0, 90.0)


def test_the_queue_of_a_group_is_its_pods() -> None:
    assert who(kai_group("t/g", 1, queue="q"), pod("t/p", annotations={KAI_GROUP: "g"})).queue == "q"
    assert who(volcano_group("t/g", 1, queue="q"), pod("t/p", annotations={GROUP: "g"})).queue == "q"
    assert who(volcano_group("t/g", 1, queue="default"), pod("t/p", annotations={GROUP: "g"})).queue == ""


# -- group objects -------------------------------------------------------------------------------------------


def test_a_volcano_group_counts_pods_and_roles() -> None:
    high = priority_class("high", 7)
    written = volcano_group("t/g", 3, minTaskMember={"worker": 2, "idle": 0}, priorityClassName="high")
    assert gangs(high, written)["t/g"] == GroupFacts("t/g", minimum=3, roles=(("worker", 2),), priority=7)


@pytest.mark.parametrize(
    ("least", "roles"), [(3, ()), (4, (("master", 1), ("worker", 3))), (5, (("master", 1), ("worker", 3)))]
)
def test_roles_that_ask_for_more_together_than_their_volcano_group_are_not_held_to(
    least: int, roles: tuple[tuple[str, int], ...]
) -> None:
    written = volcano_group("t/g", least, minTaskMember={"worker": 3, "master": 1})
    assert gangs(written)["t/g"] == GroupFacts("t/g", minimum=least, roles=roles)


def test_a_volcano_group_is_cut_by_labels() -> None:
    policy = {"name": "cell", "matchLabelKeys": ["cell"], "subGroupSize": 2, "minSubGroups": 1}
    written = volcano_group("t/g", 2, subGroupPolicy=[policy, {"name": "unused", "matchLabelKeys": ["other"]}])
    pods = [pod(f"t/p{n}", annotations={GROUP: "g"}, labels={"cell": str(n // 2)}) for n in range(4)]
    assert gangs(written, *pods)["t/g"].parts == (
        GangSubgroup("cell", minimum=1),
        GangSubgroup("cell/0", "cell", 2),
        GangSubgroup("cell/1", "cell", 2),
    )
    assert [each.part for each in whos(written, *pods).values()] == ["cell/0", "cell/0", "cell/1", "cell/1"]


def test_a_kai_group_is_a_tree_whose_leaves_count_pods() -> None:
    levels = topology(KAI, "net", "zone", "rack")
    near = {"topology": "net", "requiredTopologyLevel": "rack", "preferredTopologyLevel": ""}
    parts = [
        {"name": "a", "topologyConstraint": near},
        {"name": "b", "parent": "a", "minMember": 2},
        {"name": "c", "parent": "a", "minMember": 1},
    ]
    assert gangs(levels, kai_group("t/g", subGroups=parts, minSubGroup=1))["t/g"] == GroupFacts(
        "t/g",
        parts=(
            GangSubgroup("a", "", 2, TopologyRequirement("kai/net", "rack")),
            GangSubgroup("b", "a", 2),
            GangSubgroup("c", "a", 1),
        ),
        parts_minimum=1,
    )


def test_a_kai_group_of_high_priority_does_not_yield() -> None:
    assert gangs(kai_group("t/g", 1, priorityClassName="build"))["t/g"].is_preemptible is False
    assert gangs(kai_group("t/g", 1, priorityClassName="train"))["t/g"].is_preemptible is True
    assert (
        gangs(kai_group("t/g", 1, priorityClassName="build", preemptibility="preemptible"))["t/g"].is_preemptible
        is True
    )


def test_a_group_of_the_scheduler_plugins_has_a_minimum_only() -> None:
    assert gangs(group("scheduling.x-k8s.io/v1alpha1", "t/g", minMember=2))["t/g"] == GroupFacts("t/g", minimum=2)


def test_a_group_of_kubernetes_itself() -> None:
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "disruptionMode": "PodGroup",
        "priority": 5,
        "preemptionPolicy": "Never",
    }
    assert gangs(group("scheduling.k8s.io/v1alpha2", "t/g", **spec))["t/g"] == GroupFacts(
        "t/g",
        minimum=2,
        requirement=TopologyRequirement("", "rack"),
        priority=5,
        preempts=False,
        is_evicted_whole=True,
        has_fixed_minimum=True,
    )


def test_a_group_that_promises_nothing_is_no_gang() -> None:
    basic = group("scheduling.k8s.io/v1alpha2", "t/g", schedulingPolicy={"basic": {}})
    member = pod("t/p", schedulingGroup={"podGroupName": "g"})
    assert gangs(basic, member) == {}
    assert who(basic, member).group == ""


# -- wishes --------------------------------------------------------------------------------------------------


def test_kueues_annotations_on_the_pods_of_a_job() -> None:
    levels = topology(KUEUE, "default", "block", "rack")
    template = {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}}
    assert gangs(levels, job("t/j", 2, template=template)) == {
        "t/j": GroupFacts("t/j", minimum=2, requirement=TopologyRequirement("kueue/default", "rack"))
    }
    assert gangs(job("t/j", 2, template=template))["t/j"].requirement == TopologyRequirement("", "rack")


def test_kueues_slices() -> None:
    annotations = {
        "kueue.x-k8s.io/podset-preferred-topology": "block",
        "kueue.x-k8s.io/podset-slice-required-topology": "rack",
        "kueue.x-k8s.io/podset-slice-size": "2",
    }
    requirement = gangs(job("t/j", 4, template={"annotations": annotations}))["t/j"].requirement
    assert requirement == TopologyRequirement("", preferred="block", slice_level="rack", slice_size=2)


def test_kais_annotations_on_a_job() -> None:
    annotations = {"kai.scheduler/topology": "net", "kai.scheduler/topology-preferred-placement": "rack"}
    found = gangs(topology(KAI, "net", "zone", "rack"), job("t/j", 2, annotations=annotations))
    assert found == {"t/j": GroupFacts("t/j", minimum=2, requirement=TopologyRequirement("kai/net", preferred="rack"))}


def test_topologies_of_two_ecosystems_may_share_a_name() -> None:
    facts = [event.topology for event in seen(TopologySeen, topology(KUEUE, "a", "x"), topology(KAI, "a", "y"))]
    assert facts == [TopologyFacts("kueue/a", ("x",)), TopologyFacts("kai/a", ("y",))]


NETWORK = [
    node("n0"),
    node("n1"),
    node("n2", labels={"shape": "odd"}),
    hyper_node("s0", 1, exactly("Node", "n0"), tier_name="switch"),
    hyper_node("s1", 1, {"type": "Node", "selector": {"regexMatch": {"pattern": "^n1$"}}}, tier_name="switch"),
    hyper_node(
        "spine",
        2,
        exactly("HyperNode", "s0"),
        {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"shape": "odd"}}}},
        tier_name="spine",
    ),
]


def test_hyper_nodes_become_labels_by_tier() -> None:
    tiers = {
        event.node.name: {key: value for key, value in event.node.labels.items() if "hypernode" in key}
        for event in seen(NodeSeen, *NETWORK)
    }
    top = {"shoal.dev/hypernode-top": "all"}
    assert tiers == {
        "n0": {**top, TIER.format(1): "s0", TIER.format(2): "spine"},
        # Nothing of tier 2 holds it: what holds it at tier 1 stands in.
        "n1": {**top, TIER.format(1): "s1", TIER.format(2): "s1"},
        "n2": {**top, TIER.format(2): "spine"},
    }
    (event,) = seen(TopologySeen, *NETWORK)
    assert event.topology == TopologyFacts("hypernodes", ("shoal.dev/hypernode-top", TIER.format(2), TIER.format(1)))


TIERS: dict[str, tuple[dict[str, Any], TopologyRequirement]] = {
    "at most a tier": (
        {"mode": "hard", "highestTierAllowed": 1},
        TopologyRequirement("hypernodes", TIER.format(1), closest=True),
    ),
    "a tier by name": (
        {"mode": "hard", "highestTierName": "spine"},
        TopologyRequirement("hypernodes", TIER.format(2), closest=True),
    ),
    "above all tiers": (
        {"mode": "hard", "highestTierAllowed": 9},
        TopologyRequirement("hypernodes", "shoal.dev/hypernode-top", closest=True),
    ),
    "any tier, the closer the better": ({"mode": "soft"}, TopologyRequirement("hypernodes", closest=True)),
}


@pytest.mark.parametrize(("network", "requirement"), TIERS.values(), ids=TIERS)
def test_volcano_wishes_for(network: dict[str, Any], requirement: TopologyRequirement) -> None:
    assert gangs(*NETWORK, volcano_group("t/g", 1, networkTopology=network))["t/g"].requirement == requirement


IN_CIRCLE = [hyper_node("a", 1, exactly("HyperNode", "b")), hyper_node("b", 2, exactly("HyperNode", "a"))]

WRONG: dict[str, tuple[list[Object], str]] = {
    "a tier that nobody named": (
        [*NETWORK, volcano_group("t/g", 1, networkTopology={"mode": "hard", "highestTierName": "swich"})],
        'spec.networkTopology.highestTierName: tier "swich" not found; did you mean switch?',
    ),
    "a tier below all": (
        [*NETWORK, volcano_group("t/g", 1, networkTopology={"mode": "hard", "highestTierAllowed": 0})],
        "spec.networkTopology.highestTierAllowed: no HyperNode is of tier 0 or a faster one; the fastest is tier 1",
    ),
    "a network that is not there": (
        [volcano_group("t/g", 1, networkTopology={"mode": "hard", "highestTierAllowed": 1})],
        "(PodGroup t/g): spec.networkTopology: no HyperNodes found; add the HyperNodes to the manifests",
    ),
    "a topology that is not there": (
        [kai_group("t/g", 1, topologyConstraint={"topology": "net", "requiredTopologyLevel": "rack"})],
        'spec.topologyConstraint.topology: Topology "net" not found; there is none at all',
    ),
    "a level that the topology does not have": (
        [
            topology(KAI, "net", "example.com/rack"),
            kai_group("t/g", 1, topologyConstraint={"topology": "net", "requiredTopologyLevel": "example.com/rak"}),
        ],
        'requiredTopologyLevel: level of Topology net "example.com/rak" not found; did you mean example.com/rack?',
    ),
    "a hyper node inside itself": (IN_CIRCLE, 'spec.members[0]: "a" would be inside itself'),
    "required and preferred at once": (
        [
            job(
                "t/j",
                2,
                template={
                    "annotations": {
                        "kueue.x-k8s.io/podset-required-topology": "a",
                        "kueue.x-k8s.io/podset-preferred-topology": "b",
                    }
                },
            )
        ],
        (
            "(Job t/j): spec.template.metadata.annotations[kueue.x-k8s.io/podset-preferred-topology]: contradicts "
            "kueue.x-k8s.io/podset-required-topology; only one of them can be set"
        ),
    ),
    "a slice without a size": (
        [job("t/j", 2, template={"annotations": {"kueue.x-k8s.io/podset-slice-required-topology": "a"}})],
        "needs kueue.x-k8s.io/podset-slice-size beside it",
    ),
}


@pytest.mark.parametrize(("objects", "words"), WRONG.values(), ids=WRONG)
def test_one_line_about(objects: list[Object], words: str) -> None:
    with pytest.raises(UserError) as refusal:
        world(*objects)
    assert words in str(refusal.value)
    assert str(refusal.value).startswith("w.json: document 1 (")


# -- budgets -------------------------------------------------------------------------------------------------


def budget(**more: Any) -> Object:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    return thing("policy/v1", "PodDisruptionBudget", "t/b", spec=spec, **more)


def test_a_budget_without_status_is_counted_from_the_pods() -> None:
    labels = {"app": "x"}
    terminating = pod("t/c", on="n", labels=labels, meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    pods = [*(pod(f"t/{name}", on="n", labels=labels) for name in "ab"), terminating, pod("t/d", labels=labels)]
    strangers = [pod("t/e", on="n"), pod("u/a", on="n", labels=labels)]
    (event,) = seen(BudgetSeen, budget(), *pods, *strangers)
    assert (event.budget.allowed, event.budget.pods) == (1, {"t/a", "t/b", "t/c", "t/d"})


def test_the_status_of_a_budget_is_believed() -> None:
    (event,) = seen(BudgetSeen, budget(status={"disruptionsAllowed": 0}), pod("t/a", on="n", labels={"app": "x"}))
    assert event.budget.allowed == 0


# -- warnings ------------------------------------------------------------------------------------------------


def test_a_group_without_pods_is_told_about() -> None:
    assert world(volcano_group("t/g", 2)).warnings == ["w.json: document 1 (PodGroup t/g): no pod belongs to it"]


def test_pods_on_nodes_that_are_not_there_are_told_about_by_node() -> None:
    pods = [pod(f"t/p{n}", on="gone" if n else "n") for n in range(3)]
    assert world(node("n"), *pods).warnings == ["2 pods run on node gone, which is not among the manifests: left out"]


def test_anti_affinity_that_leaves_out_its_own_pod_is_told_once() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "other"}}}
    deployment = replicas("Deployment", "t/d", 3)
    deployment["spec"]["template"]["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    }
    (line,) = world(deployment).warnings
    assert "does not select the pod itself, so its replicas do not avoid each other" in line


def test_pods_of_one_controller_share_a_warning() -> None:
    asking = {"nvidia.com/mig-9g.9gb": 1}
    made = replicas("Deployment", "t/d", 3)
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = asking
    first, second = world(node("n"), made, pod("t/own", limits=asking)).warnings
    field = "spec.containers[0].resources.limits[nvidia.com/mig-9g.9gb]: "
    assert f"document 1 (Pod t/own): {field}" in first
    assert f"document 1 (Deployment t/d): spec.template.{field}" in second
    assert second.endswith("; the same in 2 more of its pods")


def test_a_volcano_group_without_its_priority_class_counts_with_none_and_it_is_said() -> None:
    group = volcano_group("g", 1)
    group["spec"]["priorityClassName"] = "high"
    found = world(group, pod("a", annotations={GROUP: "g"}))
    (seen_group,) = (event.group for event in found.events if isinstance(event, GroupSeen))
    assert (seen_group.minimum, seen_group.priority) == (1, None)
    (said,) = found.warnings
    assert 'PodGroup default/g): spec.priorityClassName: PriorityClass "high" not found' in said
