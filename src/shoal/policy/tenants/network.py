"""The NetworkPolicies of a team: everything is denied but what follows.

Pods of the team reach each other on all ports, because NCCL chooses ports by itself. DNS is open, metrics are open to
the namespaces of scrapers, and HTTPS to addresses outside of the cluster. Ranges of private addresses are left out of
that: pods of other teams, the metadata service of clouds and the hosts have such addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shoal.policy.advice import Obj
from shoal.policy.tenants.labels import TEAM_LABEL, labelled
from shoal.policy.tenants.team import Team

NAME_LABEL: Final = "kubernetes.io/metadata.name"
_VERSION: Final = "networking.k8s.io/v1"
_PRIVATE: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16")
_PRIVATE_6: Final = ("fc00::/7", "fe80::/10")
_ANY: Final = "0.0.0.0/0"
_DNS: Final = 53
_HTTPS: Final = 443


def network_policies(team: Team) -> list[Obj]:
    return [labelled(team, _VERSION, "NetworkPolicy", name, spec=spec) for name, spec in _specs(team)]


def _specs(team: Team) -> Iterator[tuple[str, Obj]]:
    network = team.spec.network
    own = [{"namespaceSelector": {"matchLabels": {TEAM_LABEL: team.name}}}]
    yield "default-deny", _policy(policyTypes=["Ingress", "Egress"])
    yield (
        "allow-own-team",
        _policy(policyTypes=["Ingress", "Egress"], ingress=[{"from": own}], egress=[{"to": own}]),
    )
    ports = [{"protocol": protocol, "port": _DNS} for protocol in ("UDP", "TCP")]
    yield "allow-dns", _policy(policyTypes=["Egress"], egress=[{"to": [_namespace("kube-system")], "ports": ports}])
    for name, namespaces in (("allow-scrapes", network.scrapers), ("allow-from", network.allow_from)):
        if namespaces:
            peers = [_namespace(one) for one in namespaces]
            yield name, _policy(policyTypes=["Ingress"], ingress=[{"from": peers}])
    rules = [{"to": [{"ipBlock": {"cidr": one.cidr}}], **_tcp(one.ports)} for one in network.egress]
    if network.internet:
        blocks = [
            {"ipBlock": {"cidr": _ANY, "except": list(_PRIVATE)}},
            {"ipBlock": {"cidr": "::/0", "except": list(_PRIVATE_6)}},
        ]
        rules.insert(0, {"to": blocks, **_tcp((_HTTPS,))})
    if rules:
        yield "allow-egress", _policy(policyTypes=["Egress"], egress=rules)
    if network.webhook_ports:
        yield "allow-webhooks", _policy(policyTypes=["Ingress"], ingress=[_tcp(network.webhook_ports)])


def _policy(**spec: object) -> Obj:
    return {"podSelector": {}, **spec}


def _namespace(name: str) -> Obj:
    return {"namespaceSelector": {"matchLabels": {NAME_LABEL: name}}}


def _tcp(ports: tuple[int, ...]) -> Obj:
    return {"ports": [{"protocol": "TCP", "port": port} for port in ports]} if ports else {}
