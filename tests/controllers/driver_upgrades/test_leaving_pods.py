"""Which pods leave a node, and when none does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.api.selector_text import parse_label_selector
from shoal.client.item import Item
from shoal.controllers.driver_upgrades.leaving_pods import leaving_pods
from shoal.operator.upgrades.policy import PodRemoval

_FORCED = PodRemoval(is_forced=True)


def pod(name: str, owner: str = "ReplicaSet", phase: str = "Running", **more: Any) -> Item:
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": name, **more.pop("metadata", {})}
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "u", "controller": True}]
    obj = {"metadata": metadata, "spec": more, "status": {"phase": phase}}
    return Item("default", name, name, 1, json.dumps(obj).encode())


_WITH_DATA: Any = {"volumes": [{"name": "data", "emptyDir": {}}]}


@pytest.mark.parametrize(
    ("pods", "removal", "left", "problem"),
    [
        pytest.param([pod("a"), pod("b", "Job")], PodRemoval(), ["a", "b"], "", id="pods with a controller leave"),
        pytest.param([pod("a", "DaemonSet"), pod("b")], PodRemoval(), ["b"], "", id="pods of DaemonSets stay"),
        pytest.param(
            [pod("a", "Node", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})],
            PodRemoval(),
            [],
            "",
            id="mirror pods stay",
        ),
        pytest.param(
            [pod("a"), pod("b", "")],
            PodRemoval(),
            [],
            "pod default/b without a controller would not be made again; set force",
            id="a pod without a controller keeps all",
        ),
        pytest.param([pod("b", "")], _FORCED, ["b"], "", id="with force it leaves"),
        pytest.param([pod("b", "", "Succeeded")], PodRemoval(), ["b"], "", id="a finished pod leaves without force"),
        pytest.param(
            [pod("a", **_WITH_DATA)],
            PodRemoval(),
            [],
            "pod default/a would lose the data of emptyDir volumes; set deleteEmptyDir",
            id="a pod with data keeps all",
        ),
        pytest.param(
            [pod("a", **_WITH_DATA)], PodRemoval(deletes_empty_dirs=True), ["a"], "", id="with deleteEmptyDir it leaves"
        ),
        pytest.param(
            [pod(name, "") for name in "abcde"],
            PodRemoval(),
            [],
            "pods default/a, default/b, default/c and 2 more without a controller would not be made again; set force",
            id="three pods are named",
        ),
    ],
)
def test_pods_leave_as_with_a_drain_of_kubectl(
    pods: list[Item], removal: PodRemoval, left: list[str], problem: str
) -> None:
    found = leaving_pods(pods, removal)
    assert ([item.name for item in found.pods], found.problem) == (left, problem)


def test_only_the_meant_pods_that_the_selector_matches_leave_and_others_cause_no_problem() -> None:
    pods = [pod("a", metadata={"labels": {"x": "1"}}), pod("b", ""), pod("c", metadata={"labels": {"x": "2"}})]
    found = leaving_pods(pods, PodRemoval(), parse_label_selector("x"), lambda item: item.name != "c")
    assert ([item.name for item in found.pods], found.problem) == (["a"], "")
