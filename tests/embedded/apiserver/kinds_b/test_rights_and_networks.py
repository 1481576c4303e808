from __future__ import annotations

from typing import Any

import pytest

from build.kind_objects import complaints, created, texts
from shoal.embedded.apiserver.kinds.table import STRATEGIES

Obj = dict[str, Any]
RIGHTS, NETWORK = "rbac.authorization.k8s.io", "networking.k8s.io"


def named(name: str = "one", **fields: Any) -> Obj:
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


def test_a_role_of_a_namespace_has_no_paths_of_the_server() -> None:
    rule = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
    assert complaints(RIGHTS, "clusterroles", named(rules=[rule])) == []
    assert complaints(RIGHTS, "roles", named(rules=[rule])) == [
        'rules[0].nonResourceURLs: Invalid value: ["/metrics"]: namespaced rules cannot apply to non-resource URLs'
    ]


def test_a_rule_says_what_may_be_done_to_what() -> None:
    assert complaints(RIGHTS, "roles", named(rules=[{}])) == [
        "rules[0].verbs: Required value: verbs must contain at least one value",
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[0].resources: Required value: resource rules must supply at least one resource",
    ]
    assert STRATEGIES[RIGHTS, "roles"].name_fault("system:node", False) == ""
    assert STRATEGIES[RIGHTS, "roles"].name_fault("a/b", False) == "may not contain '/'"


def test_the_role_of_a_binding_is_for_good() -> None:
    made = created(RIGHTS, "rolebindings", named(
        roleRef={"kind": "Role", "name": "view"}, subjects=[{"kind": "User", "name": "bob"}],
    ))  # fmt: skip
    assert made["roleRef"]["apiGroup"] == made["subjects"][0]["apiGroup"] == RIGHTS
    new = made | {"roleRef": made["roleRef"] | {"name": "edit"}}
    assert texts(STRATEGIES[RIGHTS, "rolebindings"].validate_update(new, made)) == [
        (
            'roleRef: Invalid value: {"kind":"Role","name":"edit","apiGroup":"rbac.authorization.k8s.io"}: '
            "cannot change roleRef"
        )
    ]


def test_an_account_bound_in_the_whole_cluster_is_named_with_its_namespace() -> None:
    bound = named(roleRef={"kind": "ClusterRole", "name": "view"}, subjects=[{"kind": "ServiceAccount", "name": "a"}])
    assert complaints(RIGHTS, "clusterrolebindings", bound) == ["subjects[0].namespace: Required value"]
    bound = named(roleRef={"kind": "Role", "name": "view"})
    assert complaints(RIGHTS, "clusterrolebindings", bound) == [
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'
    ]


def ingress(host: str = "a.example.com", **path: Any) -> Obj:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    whole = {"path": "/", "pathType": "Prefix", "backend": backend, **path}
    return named(spec={"rules": [{"host": host, "http": {"paths": [whole]}}]})


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (named(spec={}), "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"),
        (ingress("10.1.1.1"),
         'spec.rules[0].host: Invalid value: "10.1.1.1": must be a DNS name, not an IP address'),
        (ingress(path="x"),
         'spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path'),
        (ingress(path="/a//b"),
         "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b\": must not contain '//'"),
        (ingress(pathType=None),
         "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"),
        (ingress(backend={}),
         'spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required'),
        (ingress(backend={"service": {"name": "web"}}),
         "spec.rules[0].http.paths[0].backend: Required value: port name or number is required"),
    ],
)  # fmt: skip
def test_ingresses_are_refused_in_the_words_clients_know(obj: Obj, said: str) -> None:
    assert said in complaints(NETWORK, "ingresses", obj)


def test_hosts_may_stand_for_all_below_a_domain() -> None:
    assert complaints(NETWORK, "ingresses", ingress("*.example.com")) == []
    (text,) = complaints(NETWORK, "ingresses", ingress("a.*.com"))
    assert "a wildcard DNS-1123 subdomain must start with '*.'" in text


def test_a_policy_is_about_what_it_has_rules_for() -> None:
    made = created(NETWORK, "networkpolicies", named(spec={"egress": [{"ports": [{"port": 53}]}]}))
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert made["spec"]["egress"][0]["ports"] == [{"port": 53, "protocol": "TCP"}]
    block = {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "192.168.0.0/16"]}
    spec = {"ingress": [{"from": [{"ipBlock": block}, {}], "ports": [{"port": 9, "endPort": 8}]}]}
    assert complaints(NETWORK, "networkpolicies", named(spec=spec)) == [
        "spec.ingress[0].ports[0].endPort: Invalid value: 9: must be greater than or equal to `port`",
        'spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: "192.168.0.0/16": must be a strict subset of `cidr`',
        "spec.ingress[0].from[1]: Required value: must specify a peer",
    ]


def test_ranges_of_addresses_only_grow_by_the_other_family() -> None:
    strategy = STRATEGIES[NETWORK, "servicecidrs"]
    old = created(NETWORK, "servicecidrs", named(spec={"cidrs": ["10.0.0.0/16"]}))
    assert strategy.validate(old) == []
    assert strategy.validate_update(old | {"spec": {"cidrs": ["10.0.0.0/16", "fd00::/108"]}}, old) == []
    assert texts(strategy.validate_update(old | {"spec": {"cidrs": ["10.1.0.0/16"]}}, old)) == [
        'spec.cidrs[0]: Invalid value: "10.1.0.0/16": field is immutable'
    ]


def slice_of(kind: str, *addresses: str) -> list[str]:
    made = named(addressType=kind, endpoints=[{"addresses": [*addresses]}], ports=[{"port": 80}])
    return complaints("discovery.k8s.io", "endpointslices", made)


def test_addresses_of_a_slice_are_of_its_family() -> None:
    assert slice_of("IPv4", "10.1.2.3") == []
    assert slice_of("IPv6", "10.1.2.3") == [
        'endpoints[0].addresses[0]: Invalid value: "10.1.2.3": must be an IPv6 address'
    ]
    assert slice_of("IPv4") == ["endpoints[0].addresses: Required value: must contain at least 1 address"]


def test_a_new_label_is_a_new_generation_of_a_slice() -> None:
    strategy = STRATEGIES["discovery.k8s.io", "endpointslices"]
    old = named(addressType="IPv4", endpoints=[])
    assert not strategy.generation_changed(old, old)
    assert strategy.generation_changed({**old, "metadata": {"labels": {"a": "b"}}}, old)
