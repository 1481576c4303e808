"""What pods that were there leave behind in the scheduler's columns, counts and verdicts: nothing that grows."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from shoal.api.node import Node
from shoal.api.wire import dec_hook
from shoal.client.item import Item, Obj
from shoal.embedded.scheduler.node_choice import Chooser
from shoal.embedded.scheduler.node_columns import NodeColumns
from shoal.embedded.scheduler.pod_affinity import PodAffinity
from shoal.embedded.scheduler.pod_info import PodInfo, PodRequest, read_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"


def node(name: str) -> Node:
    has = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    obj = {"metadata": {"name": name, "labels": {HOST: name}}, "status": {"allocatable": has}}
    return msgspec.convert(obj, Node, dec_hook=dec_hook)


def facts(name: str, requests: dict[str, str] | None = None, **affinity: Any) -> PodInfo:
    container = {"name": "main", "resources": {"requests": requests or {}}}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": name}}
    obj: Obj = {"metadata": meta, "spec": {"containers": [container], "affinity": affinity}}
    return read_pod(Item("default", name, name, 1, msgspec.json.encode(obj)))


def on_node(name: str) -> Obj:
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}


class World:
    def __init__(self, nodes: int) -> None:
        self.columns = NodeColumns()
        for number in range(nodes):
            self.columns.put(node(f"n{number}"))
        self.pod_affinity = PodAffinity(self.columns, {})
        self.chooser = Chooser(self.columns, self.pod_affinity)

    def best(self, pod: PodInfo) -> str:
        return self.columns.name(self.chooser.best(pod, self.chooser.filter(pod, []).rows))

    def add(self, pod: PodInfo, name: str, sign: int = 1) -> None:
        if sign > 0:
            self.columns.take(name, pod)
        else:
            self.columns.give(name, pod.uid)
        self.pod_affinity.add(name, pod, sign)


def test_anti_affinity_of_pods_that_are_gone_is_asked_no_more() -> None:
    state = World(2)
    pods = []
    for number in range(50):
        term = {"labelSelector": {"matchLabels": {"app": f"p{number}"}}, "topologyKey": HOST}
        pods.append(facts(f"p{number}", podAntiAffinity={REQUIRED: [term, term]}))
    for pod in pods:
        state.add(pod, "n0")
    twin = facts("p7")
    assert [state.columns.name(row) for row in state.chooser.filter(twin, []).rows.tolist()] == ["n1"]
    for pod in pods:
        state.add(pod, "n0", -1)
    assert not state.pod_affinity._keepers
    assert len(state.chooser.filter(twin, []).rows) == 2


def test_resources_that_nobody_offers_are_refused_and_leave_no_column() -> None:
    state = World(3)
    for number in range(50):
        look = state.chooser.filter(facts(f"p{number}", {f"example.com/r{number}": "1"}), [])
        assert dict(look.refusal.counts) == {f"Insufficient example.com/r{number}": 3}
    assert set(state.columns._has) | set(state.columns._taken) <= {"cpu", "memory", "pods"}


def test_the_column_that_all_unknown_resources_share_cannot_be_written_to() -> None:
    columns = World(1).columns
    with pytest.raises(ValueError, match="read-only"):
        columns.taken("example.com/none")[0] = 1


def test_unknown_resources_are_refused_on_every_row_of_a_fleet_that_grew() -> None:
    columns = World(200).columns
    assert columns.has("example.com/none").shape == (columns.size,)
    assert not np.any(columns.has("example.com/none"))


def test_pods_that_each_name_their_node_do_not_push_out_what_is_known_of_others() -> None:
    state = World(3)
    filtered = state.chooser.node_filters.of(PodRequest())
    for number in range(600):
        state.chooser.node_filters.of(facts(f"p{number}", {"cpu": f"{number}m"}, nodeAffinity=on_node("n1")).request)
    assert state.chooser.node_filters.of(PodRequest()) is filtered


def test_of_a_pod_that_names_its_node_only_that_node_is_looked_at() -> None:
    state = World(3)
    look = state.chooser.filter(facts("a", nodeAffinity=on_node("n1")), [])
    assert [state.columns.name(row) for row in look.rows.tolist()] == ["n1"]
    assert dict(look.refusal.counts) == {"node(s) didn't satisfy plugin(s) [NodeAffinity]": 2}
    nowhere = state.chooser.filter(facts("b", nodeAffinity=on_node("elsewhere")), [])
    assert dict(nowhere.refusal.counts) == {"node(s) didn't satisfy plugin(s) [NodeAffinity]": 3}


def test_pods_that_ask_for_nothing_spread_over_equal_nodes() -> None:
    state = World(4)
    found = []
    for number in range(8):
        pod = facts(f"p{number}")
        found.append(state.best(pod))
        state.add(pod, found[-1])
    assert found == ["n0", "n1", "n2", "n3"] * 2
