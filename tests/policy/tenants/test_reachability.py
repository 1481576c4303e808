"""Connections are judged as NetworkPolicies allow them, and the policies of a team isolate it."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.policy.tenants.network import network_policies
from shoal.policy.tenants.reachability import Endpoint, passes
from shoal.policy.tenants.team import read_team

NAME = "kubernetes.io/metadata.name"
METADATA = Endpoint(address="169.254.169.254")
INTERNET = Endpoint(address="93.184.215.14")


def pod(namespace: str, **labels: str) -> Endpoint:
    return Endpoint(namespace, {NAME: namespace, "shoal.dev/team": namespace}, labels)


def policy(namespace: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": spec,
    }


def team_policies(**network: Any) -> list[dict[str, Any]]:
    raw = {
        "apiVersion": "shoal.dev/v1alpha1",
        "kind": "Team",
        "metadata": {"name": "team-a"},
        "spec": {"network": network},
    }
    return network_policies(read_team(raw))


@pytest.mark.parametrize(
    ("source", "target", "port", "protocol", "is_passing"),
    [
        (pod("team-a"), pod("team-a"), 29500, "TCP", True),
        (pod("team-a"), pod("team-b"), 29500, "TCP", False),
        (pod("team-b"), pod("team-a"), 29500, "TCP", False),
        (pod("team-a"), pod("kube-system"), 53, "UDP", True),
        (pod("team-a"), pod("kube-system"), 53, "TCP", True),
        (pod("team-a"), pod("kube-system"), 443, "TCP", False),
        (pod("monitoring"), pod("team-a"), 9400, "TCP", True),
        (pod("team-a"), pod("monitoring"), 9090, "TCP", False),
        (pod("team-a"), INTERNET, 443, "TCP", True),
        (pod("team-a"), INTERNET, 22, "TCP", False),
        (pod("team-a"), METADATA, 80, "TCP", False),
        (pod("team-a"), METADATA, 443, "TCP", False),
        (pod("team-a"), Endpoint(address="10.3.0.4"), 443, "TCP", False),
        (pod("team-a"), Endpoint(address="fd00::1"), 443, "TCP", False),
        (pod("team-a"), Endpoint(address="2606:4700::1"), 443, "TCP", True),
        (pod("gateway"), pod("team-a"), 8080, "TCP", False),
    ],
)
def test_a_team_reaches_itself_dns_and_https_and_nothing_else(
    source: Endpoint, target: Endpoint, port: int, protocol: str, is_passing: bool
) -> None:
    assert (passes(team_policies(), source, target, port, protocol) == "") == is_passing


def test_what_a_team_adds_passes_too() -> None:
    policies = team_policies(
        allowFrom=["gateway"],
        internet=False,
        egress=[{"cidr": "10.9.0.0/16", "ports": [6379]}],
        webhookPorts=[9443],
    )
    assert passes(policies, pod("gateway"), pod("team-a"), 8080) == ""
    assert passes(policies, pod("team-a"), Endpoint(address="10.9.1.1"), 6379) == ""
    assert passes(policies, pod("team-a"), Endpoint(address="10.9.1.1"), 6380) != ""
    assert passes(policies, pod("team-a"), INTERNET, 443) != ""
    assert passes(policies, Endpoint(address="10.0.0.1"), pod("team-a"), 9443) == ""
    assert passes(policies, Endpoint(address="10.0.0.1"), pod("team-a"), 10250) != ""


@pytest.mark.parametrize(
    ("source", "port", "is_passing"),
    [
        (pod("ml-team"), 8080, True),
        (pod("monitoring"), 6006, True),
        (pod("ml-team"), 22, False),
        (pod("other"), 8080, False),
        (Endpoint(address="93.184.215.14"), 8080, False),
    ],
)
def test_ingress_of_two_namespaces_on_two_ports(source: Endpoint, port: int, is_passing: bool) -> None:
    peers = [{"namespaceSelector": {"matchLabels": {NAME: name}}} for name in ("ml-team", "monitoring")]
    rule = {"from": peers, "ports": [{"port": 8080}, {"port": 6006, "protocol": "TCP"}]}
    policies = [policy("ml", podSelector={}, policyTypes=["Ingress"], ingress=[rule])]
    assert (passes(policies, source, pod("ml"), port) == "") == is_passing


@pytest.mark.parametrize(
    ("spec", "labels", "is_passing"),
    [
        ({"podSelector": {}}, {}, False),
        ({"podSelector": {}, "ingress": [{}]}, {}, True),
        ({"podSelector": {}, "ingress": []}, {}, False),
        ({"podSelector": {"matchLabels": {"app": "x"}}}, {}, True),
        ({"podSelector": {"matchLabels": {"app": "x"}}}, {"app": "x"}, False),
        ({"podSelector": {}, "policyTypes": ["Egress"]}, {}, True),
        ({"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}, {}, False),
        ({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {}}]}]}, {}, True),
        ({"podSelector": {}, "ingress": [{"ports": [{"port": 8000, "endPort": 9000}]}]}, {}, True),
        ({"podSelector": {}, "ingress": [{"ports": [{"port": 8000, "protocol": "UDP"}]}]}, {}, False),
        ({"podSelector": {}, "ingress": [{"ports": [{"protocol": "TCP"}]}]}, {}, True),
        ({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]}, {}, False),
    ],
)
def test_a_policy_denies_what_it_selects_and_does_not_allow(
    spec: dict[str, Any], labels: dict[str, str], is_passing: bool
) -> None:
    found = passes([policy("ml", **spec)], pod("other"), pod("ml", **labels), 8080)
    assert (found == "") == is_passing


def test_the_reason_names_direction_and_policies() -> None:
    found = passes(team_policies(), pod("team-a"), pod("team-b"), 80)
    assert found == ("egress of team-a is limited to what allow-dns, allow-egress, allow-own-team, default-deny allow")
