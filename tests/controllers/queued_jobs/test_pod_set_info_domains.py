"""Pods of other schedulers get a gate if their admission has several domains, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.controllers.queued_work.pod_set_info import TOPOLOGY_GATE, PodSetInfo, pod_set_infos, restored_template

_HOST = "kubernetes.io/hostname"


def info_of(hosts: list[str], scheduler: str) -> PodSetInfo:
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
def test_domains_and_gates_of_pod_set_infos(
    hosts: list[str], scheduler: str, selector: dict[str, str], is_gated: bool
) -> None:
    found = info_of(hosts, scheduler)
    assert found.node_selector == selector
    assert found.gates == ([{"name": TOPOLOGY_GATE}] if is_gated else [])


def test_the_restored_template_has_only_the_gates_of_its_owner() -> None:
    info = info_of(["a", "b"], "other")
    own = {"spec": {"schedulingGates": [{"name": "mine"}]}}
    gated = {"spec": {"schedulingGates": [{"name": "mine"}, *info.gates]}}
    assert restored_template(gated, info, own)["spec"]["schedulingGates"] == [{"name": "mine"}]
