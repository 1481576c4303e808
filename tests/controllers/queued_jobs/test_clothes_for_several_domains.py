"""Pods that others place wait behind a gate where their admission has several domains, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.controllers.queued_work.pod_set_info import TOPOLOGY_GATE, PodSetInfo, pod_set_infos, restored_template

_HOST = "kubernetes.io/hostname"


def infos(hosts: list[str], scheduler: str) -> PodSetInfo:
    assigned: dict[str, Any] = {"name": "main", "flavors": {"cpu": "f"}, "count": len(hosts)}
    if hosts:
        domains = [{"values": [host], "count": 1} for host in hosts]
        assigned["topologyAssignment"] = {"levels": [_HOST], "domains": domains}
    template = {"spec": {"schedulerName": scheduler}}
    workload = {
        "metadata": {"name": "w"},
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": len(hosts), "template": template}]},
        "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": [assigned]}},
    }
    found = pod_set_infos(workload, lambda _: {"spec": {}}, frozenset({"shoal"}))
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("hosts", "scheduler", "selector", "is_gated"),
    [
        pytest.param(["a", "b"], "other", {}, True, id="several domains of another scheduler"),
        pytest.param(["a"], "other", {_HOST: "a"}, False, id="one domain of another scheduler"),
        pytest.param(["a", "b"], "shoal", {}, False, id="our own pods take the places kept for them"),
        pytest.param([], "other", {}, False, id="no topology"),
    ],
)
def test_what_pods_get(hosts: list[str], scheduler: str, selector: dict[str, str], is_gated: bool) -> None:
    found = infos(hosts, scheduler)
    assert found.node_selector == selector
    assert found.gates == ([{"name": TOPOLOGY_GATE}] if is_gated else [])


def test_the_gate_is_taken_off_again_and_the_owner_s_own_stay() -> None:
    worn = infos(["a", "b"], "other")
    own = {"spec": {"schedulingGates": [{"name": "mine"}]}}
    dressed = {"spec": {"schedulingGates": [{"name": "mine"}, *worn.gates]}}
    assert restored_template(dressed, worn, own)["spec"]["schedulingGates"] == [{"name": "mine"}]
