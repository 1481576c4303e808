"""Decisions on small worlds, held against a plain reading of the rules, one node and one pod at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.api.node import Node
from shoal.api.wire import dec_hook
from shoal.client.item import Item, Obj
from shoal.embedded.scheduler.node_choice import Chooser
from shoal.embedded.scheduler.node_columns import NodeColumns
from shoal.embedded.scheduler.pod_affinity import PodAffinity
from shoal.embedded.scheduler.pod_info import PodInfo, read_pod

GPU, HOST, ZONE = "nvidia.com/gpu", "kubernetes.io/hostname", "zone"
TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def node_of(name: str, gpus: int, zone: str, tainted: bool, cordoned: bool) -> Obj:
    labels = {HOST: name} | ({ZONE: zone} if zone else {})
    has = {"cpu": "4", "memory": "8Gi", "pods": "3", GPU: str(gpus)}
    spec: Obj = {"taints": [TAINT] if tainted else [], "unschedulable": cordoned}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": has}}


def term(app: str, key: str) -> Obj:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

nodes = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["a", "b", ""]), st.booleans(), st.booleans()), min_size=1, max_size=6
)
apps = st.sampled_from(["web", "db"])
keys = st.sampled_from([HOST, ZONE])
pods = st.lists(
    st.fixed_dictionaries(
        {
            "app": apps,
            "gpus": st.integers(0, 3),
            "cpu": st.sampled_from(["500m", "2", "5"]),
            "tolerates": st.booleans(),
            "zone": st.sampled_from(["", "", "a"]),
            "named": st.none() | st.lists(st.sampled_from(["n0", "n1", "n9"]), min_size=1, max_size=2),
            "port": st.sampled_from([0, 0, 80]),
            "anti": st.none() | st.tuples(apps, keys),
            "near": st.none() | st.tuples(apps, keys),
            "spread": st.none() | st.tuples(apps, keys),
        }
    ),
    min_size=1,
    max_size=8,
)


def pod_of(number: int, wish: dict[str, Any]) -> tuple[PodInfo, Obj]:
    container: Obj = {"name": "main", "resources": {"requests": {"cpu": wish["cpu"]}}}
    if wish["gpus"]:
        container["resources"]["limits"] = {GPU: str(wish["gpus"])}
    if wish["port"]:
        container["ports"] = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    affinity: Obj = {}
    for name, field in (("anti", "podAntiAffinity"), ("near", "podAffinity")):
        if wish[name]:
            affinity[field] = {REQUIRED: [term(*wish[name])]}
    if wish["named"]:
        fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in wish["named"]]
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [one]} for one in fields]}}
    spec: Obj = {"containers": [container], "affinity": affinity}
    if wish["tolerates"]:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if wish["zone"]:
        spec["nodeSelector"] = {ZONE: wish["zone"]}
    if wish["spread"]:
        app, key = wish["spread"]
        selector = {"matchLabels": {"app": app}}
        rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        spec["topologySpreadConstraints"] = [rule]
    meta = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}", "labels": {"app": wish["app"]}}
    obj: Obj = {"metadata": meta, "spec": spec}
    return read_pod(Item("default", f"p{number}", f"u{number}", 1, msgspec.json.encode(obj))), obj


class Plain:
    """The rules, read word by word."""

    def __init__(self, found: list[Obj]) -> None:
        self.nodes = {one["metadata"]["name"]: one for one in found}
        self.on: dict[str, list[tuple[Obj, dict[str, Any]]]] = {name: [] for name in self.nodes}

    def reasons(self, name: str, obj: Obj, wish: dict[str, Any]) -> list[str]:
        """Why a node does not take the pod; empty when it does."""
        one = self.nodes[name]
        if wish["named"] and name not in wish["named"]:
            return ["node(s) didn't satisfy plugin(s) [NodeAffinity]"]
        if one["spec"]["unschedulable"]:
            return ["node(s) were unschedulable"]
        if one["spec"]["taints"] and not wish["tolerates"]:
            return ["node(s) had untolerated taint(s)"]
        if wish["zone"] and self._label(name, ZONE) != wish["zone"]:
            return ["node(s) didn't match Pod's node affinity/selector"]
        if wish["port"] and any(other["port"] for _, other in self.on[name]):
            return ["node(s) didn't have free ports for the requested pod ports"]
        return list(self._lacks(name, wish)) or self._pod_affinity(name, obj, wish)

    def _lacks(self, name: str, wish: dict[str, Any]) -> Iterator[str]:
        others = [other for _, other in self.on[name]]
        if len(others) >= 3:
            yield "Too many pods"
        if sum(_milli(other) for other in [*others, wish]) > 4000:
            yield "Insufficient cpu"
        has = int(self.nodes[name]["status"]["allocatable"][GPU])
        if wish["gpus"] and sum(other["gpus"] for other in [*others, wish]) > has:
            yield f"Insufficient {GPU}"

    def _pod_affinity(self, name: str, obj: Obj, wish: dict[str, Any]) -> list[str]:
        if wish["spread"]:
            app, key = wish["spread"]
            if not self._label(name, key):
                return ["node(s) didn't match pod topology spread constraints (missing required label)"]
            if self._skew(name, wish, app, key) > 1:
                return ["node(s) didn't match pod topology spread constraints"]
        if wish["near"] and not self._meets_affinity(name, wish, *wish["near"]):
            return ["node(s) didn't match pod affinity rules"]
        if wish["anti"] and self._count(name, *wish["anti"]):
            return ["node(s) didn't match pod anti-affinity rules"]
        for place, others in self.on.items():
            for _, other in others:
                if other["anti"] and other["anti"][0] == wish["app"] and self._is_same(place, name, other["anti"][1]):
                    return ["node(s) didn't satisfy existing pods anti-affinity rules"]
        return []

    def _skew(self, name: str, wish: dict[str, Any], app: str, key: str) -> int:
        sums: dict[str, int] = {}
        for place in self.nodes:
            if self._label(place, key) and self._is_chosen(place, wish):
                count = sum(other["app"] == app for _, other in self.on[place])
                sums[self._label(place, key)] = sums.get(self._label(place, key), 0) + count
        return sums.get(self._label(name, key), 0) + int(wish["app"] == app) - min(sums.values(), default=0)

    def _is_chosen(self, name: str, wish: dict[str, Any]) -> bool:
        is_in_zone = not wish["zone"] or self._label(name, ZONE) == wish["zone"]
        return is_in_zone and (not wish["named"] or name in wish["named"])

    def _meets_affinity(self, name: str, wish: dict[str, Any], app: str, key: str) -> bool:
        if not self._label(name, key):
            return False
        if self._count(name, app, key):
            return True
        is_first = not any(self._count(place, app, key) for place in self.nodes)
        return is_first and wish["app"] == app

    def _count(self, name: str, app: str, key: str) -> int:
        places = [place for place in self.nodes if self._is_same(place, name, key)]
        return sum(other["app"] == app for place in places for _, other in self.on[place])

    def _is_same(self, one: str, other: str, key: str) -> bool:
        return bool(self._label(one, key)) and self._label(one, key) == self._label(other, key)

    def _label(self, name: str, key: str) -> str:
        return str(self.nodes[name]["metadata"]["labels"].get(key, ""))


def _milli(wish: dict[str, Any]) -> int:
    return {"500m": 500, "2": 2000, "5": 5000}[str(wish["cpu"])]


@settings(max_examples=examples(60), deadline=None)
@given(nodes, pods, st.lists(st.integers(0, 7), max_size=3))
def test_every_decision_is_that_of_a_plain_reading(
    shapes: list[tuple[int, str, bool, bool]], wishes: list[dict[str, Any]], terminating: list[int]
) -> None:
    found = [node_of(f"n{number}", *shape) for number, shape in enumerate(shapes)]
    plain, columns = Plain(found), NodeColumns()
    pod_affinity = PodAffinity(columns, {})
    chooser = Chooser(columns, pod_affinity)
    for one in found:
        columns.put(msgspec.convert(one, Node, dec_hook=dec_hook))
    placed: dict[int, tuple[str, PodInfo]] = {}
    for number, wish in enumerate(wishes):
        pod, obj = pod_of(number, wish)
        look = chooser.filter(pod, [])
        expected = {name: plain.reasons(name, obj, wish) for name in plain.nodes}
        assert {columns.name(row) for row in look.rows.tolist()} == {name for name, why in expected.items() if not why}
        counts: dict[str, int] = {}
        for why in expected.values():
            for reason in why:
                counts[reason] = counts.get(reason, 0) + 1
        assert dict(look.refusal.counts) == counts
        if len(look.rows):
            name = columns.name(chooser.best(pod, look.rows))
            columns.take(name, pod)
            pod_affinity.add(name, pod, 1)
            plain.on[name].append((obj, wish))
            placed[number] = (name, pod)
        if number in terminating and number in placed:
            name, pod = placed.pop(number)
            columns.give(name, pod.uid)
            pod_affinity.add(name, pod, -1)
            plain.on[name] = [one for one in plain.on[name] if one[0] is not obj]
    _never_too_much(columns)


def _never_too_much(columns: NodeColumns) -> None:
    for resource in ("cpu", GPU, "pods"):
        assert (columns.taken(resource) <= columns.has(resource)).all(), resource


@settings(max_examples=examples(30), deadline=None)
@given(st.permutations(list(range(6))))
def test_taking_and_giving_back_leaves_no_trace(order: list[int]) -> None:
    columns = NodeColumns()
    columns.put(msgspec.convert(node_of("n", 4, "a", tainted=False, cordoned=False), Node, dec_hook=dec_hook))
    wish = {"app": "web", "cpu": "500m", "tolerates": True, "zone": "", "port": 80, "anti": None, "near": None}
    wish |= {"spread": None, "named": None}
    pods_ = [pod_of(number, {**wish, "gpus": number % 3})[0] for number in range(6)]
    for pod in pods_:
        columns.take("n", pod)
    for number in order:
        columns.give("n", pods_[number].uid)
    assert not any(columns.taken(resource).any() for resource in ("cpu", GPU, "pods"))
    assert not columns.ports
    assert not any(column.any() for column in columns.scored)


def test_a_pod_bound_to_a_node_not_seen_yet_is_charged_when_the_node_comes() -> None:
    columns = NodeColumns()
    wish = {"app": "w", "cpu": "2", "gpus": 2, "tolerates": 0, "zone": "", "port": 0, "anti": 0, "near": 0, "spread": 0}
    wish["named"] = None
    columns.take("late", pod_of(0, wish)[0])
    columns.put(msgspec.convert(node_of("late", 4, "a", tainted=False, cordoned=False), Node, dec_hook=dec_hook))
    assert columns.taken(GPU)[columns.row_of["late"]] == 2
