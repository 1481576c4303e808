"""Which NetworkPolicies block name resolution: policies are additive, and what is not known counts as allowed."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.policy.advice import Obj
from shoal.policy.object_set import ObjectSet
from shoal.policy.rules.networks import network_policies

NAMED = {"role": "system"}
APP_A = {"matchLabels": {"app": "a"}}
DNS_PORTS = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
DENY: Obj = {"podSelector": {}, "policyTypes": ["Egress"]}


def policy(name: str, spec: Obj, namespace: str = "n") -> Obj:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def to_namespaces(labels: Obj) -> Obj:
    return {**DENY, "egress": [{"to": [{"namespaceSelector": {"matchLabels": labels}}], "ports": DNS_PORTS}]}


def allowing_dns(namespace: str = "n", **spec: Any) -> Obj:
    return policy("dns", {**to_namespaces({"kubernetes.io/metadata.name": "kube-system"}), **spec}, namespace)


def dns_namespace(labels: Obj | None = None) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "labels": labels or {}}}


def reasons(spec: Obj, *others: Obj) -> list[str]:
    checked = policy("checked", spec)
    return [one.reason for one in network_policies(checked, ObjectSet((checked, *others)))]


RESOLVING: dict[str, tuple[Obj, tuple[Obj, ...]]] = {
    "another policy allows DNS": (DENY, (allowing_dns(),)),
    "another policy allows DNS for some of the pods": (DENY, (allowing_dns(podSelector=APP_A),)),
    "another policy allows DNS for more pods": ({**DENY, "podSelector": APP_A}, (allowing_dns(),)),
    "a label that the namespace of DNS may have": (to_namespaces(NAMED), ()),
    "a label that the namespace of DNS has": (to_namespaces(NAMED), (dns_namespace(NAMED),)),
    "no egress rules and no type": ({"podSelector": {}, "egress": []}, ()),
    "egress rules of a policy for ingress": ({**to_namespaces({}), "policyTypes": ["Ingress"]}, ()),
}
BLOCKING: dict[str, tuple[Obj, tuple[Obj, ...]]] = {
    "no other policy": (DENY, ()),
    "another policy allows DNS for other pods": (
        {**DENY, "podSelector": {"matchLabels": {"app": "b"}}},
        (allowing_dns(podSelector=APP_A),),
    ),
    "a policy of another namespace allows DNS": (DENY, (allowing_dns("other"),)),
    "another policy is for ingress": (DENY, (allowing_dns(policyTypes=["Ingress"]),)),
    "a namespace of another name": (to_namespaces({**NAMED, "kubernetes.io/metadata.name": "team"}), ()),
    "a label that the namespace of DNS does not have": (to_namespaces(NAMED), (dns_namespace(),)),
}


@pytest.mark.parametrize("case", RESOLVING)
def test_no_advice_where_pods_may_resolve_names(case: str) -> None:
    spec, others = RESOLVING[case]
    assert reasons(spec, *others) == []


@pytest.mark.parametrize("case", BLOCKING)
def test_advice_where_pods_cannot_resolve_names(case: str) -> None:
    spec, others = BLOCKING[case]
    assert reasons(spec, *others) == ["NoNameResolution"]
