"""The operator has every permission that it gives to a component: RBAC lets no user grant more than it has."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from build.operator_objects import Built
from shoal.data.permissions import IN_NAMESPACE, lines_of
from shoal.data.role_lines import rules

NVIDIA = {"repository": "nvcr.io/nvidia", "image": "i", "version": "v"}
ON = {**NVIDIA, "enabled": True}
NAMES = ("devicePlugin", "gfd", "validator", "dcgmExporter", "migManager", "dcgm", "nodeStatusExporter")
SANDBOX = ("vgpuManager", "vgpuDeviceManager", "vfioManager", "sandboxDevicePlugin", "kataManager", "ccManager")
POLICIES: dict[str, dict[str, Any]] = {
    "Shoal's images": {"dcgmExporter": {"enablePodLabels": True}},
    "NVIDIA's images": {name: dict(ON) for name in NAMES},
    "virtual machines": {"sandboxWorkloads": {"enabled": True}, **{name: dict(ON) for name in SANDBOX}},
}


def _granted(some: Any) -> set[tuple[str, str, str]]:
    return {one for rule in some for one in product(rule["apiGroups"], rule["resources"], rule["verbs"])}


@pytest.mark.parametrize("case", POLICIES)
def test_the_operator_may_itself_do_what_it_allows_to_a_component(case: str) -> None:
    everywhere = _granted(rules(lines_of(("operator",))))
    inside = everywhere | _granted(rules(IN_NAMESPACE["operator"]))
    objects = Built(POLICIES[case]).objects
    roles = {name: one for (kind, name), one in objects.items() if kind in ("Role", "ClusterRole")}
    assert roles
    for name, role in roles.items():
        own = inside if role["kind"] == "Role" else everywhere
        assert _granted(role["rules"]) - own == set(), name


def test_the_operator_changes_no_object_of_other_namespaces_but_pods() -> None:
    changing = {"create", "delete", "patch", "update"}
    changed = {
        (group, resource) for group, resource, verb in _granted(rules(lines_of(("operator",)))) if verb in changing
    }
    assert {resource for _, resource in changed} == {
        *("clusterpolicies/finalizers", "clusterpolicies/status", "nvidiadrivers/finalizers", "nvidiadrivers/status"),
        *("clusterrolebindings", "clusterroles", "events", "nodes", "nodes/status", "runtimeclasses"),
        *("pods", "pods/devices", "pods/eviction", "pods/status"),
    }
