"""What is there from the start: complete, each once, in an order in which it could have been written."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.data.role_lines import rule
from shoal.embedded.apiserver.bootstrap.default_roles import default_roles
from shoal.embedded.apiserver.bootstrap.namespaces import namespace_defaults
from shoal.embedded.apiserver.bootstrap.objects import objects
from shoal.embedded.apiserver.bootstrap.own_service import own_endpoints
from shoal.embedded.apiserver.security.aggregation import outdated

SEEDS = list(objects("2026-11-21T10:00:00Z", "CERTIFICATE", "127.0.0.1", 6443))


def named(kind: str) -> dict[str, Any]:
    return {seed.ref.name: seed.obj for seed in SEEDS if seed.obj["kind"] == kind}


def test_no_object_comes_twice_and_each_is_where_its_address_says() -> None:
    refs = [seed.ref for seed in SEEDS]
    assert len(refs) == len(set(refs))
    for seed in SEEDS:
        metadata = seed.obj["metadata"]
        assert (metadata["name"], metadata.get("namespace", "")) == (seed.ref.name, seed.ref.namespace)
        assert seed.obj["apiVersion"].rpartition("/")[0] == seed.ref.home.group


def test_a_namespace_comes_before_what_is_in_it() -> None:
    seen: set[str] = set()
    for seed in SEEDS:
        if seed.obj["kind"] == "Namespace":
            seen.add(seed.ref.name)
        assert not seed.ref.namespace or seed.ref.namespace in seen
    assert seen == {"default", "kube-node-lease", "kube-public", "kube-system"}


def test_every_namespace_has_an_account_and_the_certificate_to_trust() -> None:
    made = list(namespace_defaults("team", "CERTIFICATE"))
    assert [(one.obj["kind"], one.ref.namespace, one.ref.name) for one in made] == [
        ("ServiceAccount", "team", "default"),
        ("ConfigMap", "team", "kube-root-ca.crt"),
    ]
    assert made[1].obj["data"] == {"ca.crt": "CERTIFICATE"}


def test_a_binding_names_a_role_that_is_there() -> None:
    roles = {(seed.ref.namespace, seed.ref.name) for seed in default_roles() if seed.obj["kind"].endswith("Role")}
    bindings = [seed for seed in default_roles() if seed.obj["kind"].endswith("Binding")]
    assert "cluster-admin" in {seed.ref.name for seed in bindings}
    assert {(seed.ref.namespace, seed.obj["roleRef"]["name"]) for seed in bindings} <= roles


def test_roles_that_gather_others_are_stored_with_what_they_gather() -> None:
    roles = list(named("ClusterRole").values())
    assert list(outdated(roles)) == []
    sizes = {name: len(named("ClusterRole")[name]["rules"]) for name in ("view", "edit", "admin")}
    assert sizes["view"] < sizes["edit"] < sizes["admin"]


def test_a_role_that_gathers_is_outdated_once_another_is_labelled_for_it() -> None:
    label = "rbac.authorization.k8s.io/aggregate-to-view"
    extra: dict[str, Any] = {
        "metadata": {"name": "kueue-view", "labels": {label: "true"}},
        "rules": [rule("get x @kueue.x-k8s.io")],
    }
    changed = {role["metadata"]["name"]: role for role in outdated([*named("ClusterRole").values(), extra])}
    assert extra["rules"][0] in changed["view"]["rules"]


def test_the_system_priorities_are_above_all_that_users_may_have() -> None:
    values = {name: one["value"] for name, one in named("PriorityClass").items()}
    assert values == {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def test_every_flow_leads_to_a_level_that_is_there() -> None:
    levels = named("PriorityLevelConfiguration")
    assert {one["spec"]["priorityLevelConfiguration"]["name"] for one in named("FlowSchema").values()} <= set(levels)
    assert levels["exempt"]["spec"]["type"] == "Exempt"


def test_the_server_is_a_service_of_its_own_cluster() -> None:
    service = named("Service")["kubernetes"]["spec"]
    assert (service["clusterIP"], service["ports"][0]["port"], service["ports"][0]["targetPort"]) == (
        "10.96.0.1",
        443,
        6443,
    )
    found = {seed.obj["kind"]: seed.obj for seed in own_endpoints("::1", 7000)}
    assert found["EndpointSlice"]["addressType"] == "IPv6"
    assert found["EndpointSlice"]["ports"][0]["port"] == 7000
    assert found["Endpoints"]["subsets"][0]["addresses"] == [{"ip": "::1"}]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("list,get pods", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}),
        (
            "get leases @coordination.k8s.io =b,a",
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "verbs": ["get"],
                "resourceNames": ["a", "b"],
            },
        ),
        ("get /a,/b/*", {"nonResourceURLs": ["/a", "/b/*"], "verbs": ["get"]}),
        ("* * (paths)", {"nonResourceURLs": ["*"], "verbs": ["*"]}),
    ],
)
def test_a_line_reads_as_a_rule(line: str, expected: dict[str, list[str]]) -> None:
    assert rule(line) == expected


def test_a_role_that_one_server_changes_is_whole_for_the_next() -> None:
    before = list(default_roles())
    for one in default_roles():
        one.obj["metadata"].clear()
    assert list(default_roles()) == before
