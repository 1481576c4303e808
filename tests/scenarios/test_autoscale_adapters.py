"""The adapters of the autoscaling families pass what is right, and fail what is not."""

from __future__ import annotations

from typing import Any

import pytest

from .disruption import results as disruption
from .expanders import results as expanders
from .nodes import results as nodes
from .requirements import results as requirements

_TYPE = {
    "name": "only",
    "capacity": {"cpu": "4", "memory": "16Gi", "pods": "20"},
    "overhead": {},
    "labels": {"node.kubernetes.io/instance-type": ["only"]},
    "offerings": [{"zone": "z1", "capacityType": "on-demand", "price": 1.0, "available": True}],
}
_POOL = {"metadata": {"name": "default"}, "spec": {"template": {"spec": {"requirements": []}}}}
_POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}

_WITH_P: dict[str, Any] = {"pods": ["p"]}


def _status(family: Any, case: dict[str, Any], expect: Any) -> str:
    (result,) = family.results_of_case({"id": "case", **case, "expect": expect})
    return str(result.status)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ({"newNodes": 1, "pending": []}, {"newNodes": 2}),
        ({"nodes": [{"pods": ["p"], "pool": "default", "types": ["only"], "zones": ["z1"], "launch": ["only"]}]},
         {"nodes": [{"pods": ["p"], "pool": "other"}]}),
        ({"pendingCount": 0}, {"pending": ["p"]}),
        ({"eachNode": {"capacityTypes": ["on-demand"]}}, {"eachNode": {"capacityTypes": ["spot"]}}),
        ({"together": [["p"]]}, {"placed": {"p": "n1"}}),
        ({"nodes": [_WITH_P | {"typesInclude": ["only"]}]}, {"nodes": [_WITH_P | {"typesExclude": ["only"]}]}),
    ],
)  # fmt: skip
def test_expectations_about_new_nodes(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    case = {"instanceTypes": [_TYPE], "nodePools": [_POOL], "pods": [_POD]}

    assert _status(nodes, case, right) == "pass"
    assert _status(nodes, case, wrong) == "fail"


def test_expectations_about_spread_pods() -> None:
    labelled = {**_POD, "metadata": {"name": "p", "labels": {"app": "web"}}}
    case = {"instanceTypes": [_TYPE], "nodePools": [_POOL], "pods": [labelled]}
    spread = {"key": "kubernetes.io/hostname", "labels": {"app": "web"}}

    assert _status(nodes, case, {"spread": {**spread, "counts": [1]}}) == "pass"
    assert _status(nodes, case, {"spread": {**spread, "counts": [2]}}) == "fail"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ({"action": "delete", "nodes": ["n1"]}, {"action": "delete", "nodes": ["n2"]}),
        ({"action": "delete", "nodesCount": 1}, {"action": "delete", "nodesCount": 2}),
        ({"action": "delete", "perPool": {"default": 1}}, {"action": "delete", "perPool": {"default": 2}}),
        ({"action": "delete"}, {"action": "none"}),
    ],
)
def test_expectations_about_removed_nodes(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    node = {
        "name": "n1",
        "labels": {
            "karpenter.sh/nodepool": "default",
            "node.kubernetes.io/instance-type": "only",
            "topology.kubernetes.io/zone": "z1",
            "karpenter.sh/capacity-type": "on-demand",
        },
        "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "20"},
        "consolidatable": True,
        "pods": [],
    }
    case = {
        "method": "emptiness",
        "now": "2026-01-01T12:00:00Z",
        "instanceTypes": [_TYPE],
        "nodePools": [_POOL],
        "nodes": [node],
    }

    assert _status(disruption, case, right) == "pass"
    assert _status(disruption, case, wrong) == "fail"


def test_expectations_about_budgets() -> None:
    case = {"method": "budget", "reason": "Empty", "now": "2026-01-01T12:00:00Z", "instanceTypes": [_TYPE], "nodes": []}
    pool = {**_POOL, "spec": {**_POOL["spec"], "disruption": {"budgets": [{"nodes": "3"}]}}}  # type: ignore[dict-item]

    assert _status(disruption, {**case, "nodePools": [pool]}, {"action": "allowance", "allowed": 3}) == "pass"
    assert _status(disruption, {**case, "nodePools": [pool]}, {"action": "allowance", "allowed": 4}) == "fail"


@pytest.mark.parametrize(
    ("case", "right", "wrong"),
    [
        (
            {"kind": "choose", "expander": {"name": "least-nodes"}, "options": [{"group": "a", "nodes": 1}]},
            {"chosen": ["a"]},
            {"chosen": []},
        ),
        (
            {"kind": "choose", "expander": {"name": "random"}, "options": [{"group": "a", "nodes": 1}]},
            {"chosenOneOf": ["a"]},
            {"chosenOneOf": ["b"]},
        ),
        (
            {"kind": "balance", "groups": [{"group": "a", "max": 3, "target": 1}], "newNodes": 1},
            {"sizes": {"a": 2}},
            {"error": True},
        ),
        ({"kind": "balance", "groups": [], "newNodes": 1}, {"error": True}, {"sizes": {}}),
        (
            {"kind": "scaleDown", "node": {"allocatable": {"cpuMilli": 1, "memoryBytes": 1}}},
            {"removable": True, "utilization": 0.0},
            {"removable": True, "utilization": 0.5},
        ),
    ],
)
def test_expectations_about_groups(case: dict[str, Any], right: dict[str, Any], wrong: dict[str, Any]) -> None:
    assert _status(expanders, case, right) == "pass"
    assert _status(expanders, case, wrong) == "fail"


def test_expectations_about_requirements() -> None:
    check = {"a": {"operator": "Gt", "values": ["1"]}, "b": {"operator": "Exists"}, "overlaps": True}

    def status(expect: dict[str, Any]) -> str:
        case = {"id": "case", "op": "intersection", "checks": [{**check, "expect": expect}]}
        return str(requirements.results_of_case(case)[0].status)

    assert status({"kind": "Exists", "gte": 2}) == "pass"
    assert status({"kind": "Exists", "gte": 1}) == "fail"
    assert str(requirements.results_of_case({"id": "case", "op": "has", "checks": []})[0].status) == "fail"
