"""A world that is watched change by change knows what manifests of the same objects say, and decides the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.fed_worlds import FedWorld, manifest_events, manifest_facts
from build.manifests import (
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
from shoal.client.item import Obj
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.events import Event
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import profile_named

_NAMES = ("a", "b", "c", "d", "e", "f")
_OWNERS = (("Job", "j"), ("Job", "k"), ("ReplicaSet", "r"), ("Mystery", "m"))
_GROUPS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"annotations": {"scheduling.k8s.io/group-name": "volcanic"}},
    {"labels": {"pod-group.scheduling.sigs.k8s.io/name": "light"}},
    {"labels": {"pod-group.scheduling.sigs.k8s.io/name": "own", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}},
    {"annotations": {"pod-group-name": "kai"}, "labels": {"kai.scheduler/queue": "team"}},
    {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}},
)
_GANGS: tuple[dict[str, str], ...] = (
    {},
    {"shoal.dev/gang": "true"},
    {"shoal.dev/gang": "2"},
    {"shoal.dev/gang": "false"},
    {"kueue.x-k8s.io/podset-preferred-topology": "rack"},
)


@st.composite
def pods(draw: st.DrawFn) -> Obj:
    words = draw(st.sampled_from(_GROUPS))
    labels = {**words.get("labels", {}), **draw(st.sampled_from([{}, {"app": "x"}, {"app": "y"}]))}
    meta: dict[str, Any] = {}
    owner = draw(st.none() | st.sampled_from(_OWNERS))
    if owner is not None:
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "uid": "u", "controller": True}]
    made = pod(
        f"{draw(st.sampled_from(('default', 'team')))}/{draw(st.sampled_from(_NAMES))}",
        gpus=draw(st.sampled_from((0, 1, 2))),
        labels=labels or None,
        annotations=words.get("annotations"),
        meta=meta,
        limits={"cpu": draw(st.sampled_from(("1", "30")))},
    )
    status: dict[str, Any] = {}
    where = draw(st.sampled_from(("waits", "waits", "waits", "runs", "ended", "failed", "gated", "leaves")))
    if where == "gated":
        made["spec"]["schedulingGates"] = [{"name": "later"}]
    if where in {"runs", "ended", "failed", "leaves"}:
        made["spec"]["nodeName"] = draw(st.sampled_from(("n1", "n2")))
        status = {"phase": {"ended": "Succeeded", "failed": "Failed"}.get(where, "Running")}
        status["startTime"] = "2026-01-02T00:00:00Z"
    if where == "leaves":
        made["metadata"]["deletionTimestamp"] = "2026-01-03T00:00:00Z"
    if draw(st.booleans()):
        made["spec"]["priorityClassName"] = "high"
    made["status"] = status
    return made


@st.composite
def makers(draw: st.DrawFn) -> Obj:
    name = draw(st.sampled_from(("j", "k")))
    annotations = draw(st.sampled_from(_GANGS))
    labels = draw(st.sampled_from([None, {"kueue.x-k8s.io/queue-name": "q"}]))
    namespace = draw(st.sampled_from(("default", "team")))
    made = job(f"{namespace}/{name}", draw(st.sampled_from((1, 2, 4))), labels=labels, annotations=dict(annotations))
    completions = draw(st.sampled_from((None, 1, 3)))
    if completions is not None:
        made["spec"]["completions"] = completions
    made["status"] = {"succeeded": draw(st.sampled_from((0, 1)))}
    return made


def surroundings() -> st.SearchStrategy[Obj]:
    small = st.sampled_from((1, 2, 3))
    return st.one_of(
        st.builds(lambda name, gpus: node(name, gpus), st.sampled_from(("n1", "n2", "n3")), st.sampled_from((0, 4))),
        st.builds(lambda rack: node("n1", 4, labels={"rack": rack}), st.sampled_from(("r1", "r2"))),
        st.builds(lambda least: volcano_group("default/volcanic", least, queue="q"), small),
        st.builds(lambda least: group("scheduling.x-k8s.io/v1alpha1", "default/light", minMember=least), small),
        st.builds(lambda least: kai_group("team/kai", least), small),
        st.builds(lambda value: priority_class("high", value), st.sampled_from((5, 50))),
        st.builds(lambda *levels: topology("kueue.x-k8s.io/v1beta1", "racks", *levels), st.just("rack")),
        st.builds(lambda name: hyper_node("h", 1, exactly("Node", name)), st.sampled_from(("n1", "n2"))),
        st.builds(lambda above: _replica_set(above), st.booleans()),
        st.builds(lambda allowed: _budget(allowed), st.sampled_from((None, 0, 2))),
        st.just(thing("v1", "Namespace", "team", metadata={"name": "team", "labels": {"kind": "work"}})),
    )


def _replica_set(above: bool) -> Obj:
    made = replicas("ReplicaSet", "default/r", 2, annotations={"shoal.dev/gang": "true"} if not above else {})
    if above:
        made["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "d", "uid": "u", "controller": True}]
    return made


def _budget(allowed: int | None) -> Obj:
    made = thing("policy/v1", "PodDisruptionBudget", "default/b")
    made["spec"] = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    if allowed is not None:
        made["status"] = {"disruptionsAllowed": allowed}
    return made


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(("put", "put", "put", "put", "drop", "drain")),
        st.one_of(pods(), pods(), pods(), makers(), surroundings()),
    ),
    min_size=10,
    max_size=40,
)


@given(_STEPS)
@settings(max_examples=examples(60), deadline=None)
def test_whatever_happened_in_between_what_is_known_is_what_manifests_would_say(steps: list[tuple[str, Obj]]) -> None:
    fed = _world()
    for what, obj in steps:
        _step(fed, what, obj)
    fed.drain()
    expected = manifest_facts(fed.objects.values())
    # An engine never forgets a namespace, and knows more gangs than are told of in manifests for none.
    known = {key: value for key, value in fed.facts.items() if key[0] != "namespace" or key in expected}
    assert known == expected


@given(_STEPS)
@settings(max_examples=examples(20), deadline=None)
def test_the_decisions_are_those_on_manifests(steps: list[tuple[str, Obj]]) -> None:
    fed = _world()
    for what, obj in steps:
        if what != "drain":
            _step(fed, what, obj)
    in_order = sorted(fed.objects.values(), key=lambda obj: int(obj["metadata"]["resourceVersion"]))
    assert _decided(fed.drain()).intentions == _decided(manifest_events(in_order)).intentions


def _world() -> FedWorld:
    """Without its class a pod would not be let in by any server, and manifests with such a pod are refused."""
    fed = FedWorld()
    fed.put(priority_class("high", 5), node("n1", 4), node("n2", 4))
    return fed


def _step(fed: FedWorld, what: str, obj: Obj) -> None:
    if what == "put":
        if obj["kind"] == "Pod" and not _can_become(fed, obj):
            fed.drop(obj)
        fed.put(obj)
    elif what == "drop" and obj["kind"] != "PriorityClass":
        fed.drop(obj)
    elif what == "drain":
        fed.drain()


def _can_become(fed: FedWorld, made: Obj) -> bool:
    """Whether a server would let the pod of this name be changed into that; else it is another one of its name."""
    known = fed.objects.get(("Pod", made["metadata"]["namespace"], made["metadata"]["name"]))
    if known is None:
        return True
    before, after = dict(known["spec"]), dict(made["spec"])
    node_before, node_after = before.pop("nodeName", ""), after.pop("nodeName", "")
    gates_before, gates_after = before.pop("schedulingGates", None), after.pop("schedulingGates", None)
    has_ended = known["status"].get("phase") in {"Succeeded", "Failed"} or "deletionTimestamp" in known["metadata"]
    is_later = node_before in {"", node_after} and (gates_after is None or gates_before is not None)
    return before == after and is_later and not has_ended


def _decided(events: list[Event]) -> Plan:
    cluster = Cluster()
    intake = Intake(cluster)
    for event in events:
        intake.apply(event)
    return cycle(cluster, Placement(cluster, profile_named("Shoal", cluster, PodMix())), now_s=1_800_000_000.0, seed=1)
