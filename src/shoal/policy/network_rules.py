"""Checks NetworkPolicies that block what their authors expect to pass."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext, rule
from shoal.policy.fields import dig, maps, string_keys, strings
from shoal.units.numbers import whole_of

_DNS = 53
_NAME_LABEL = "kubernetes.io/metadata.name"
_DNS_FIX = f"add an egress rule to the namespace with {_NAME_LABEL}: kube-system, ports 53 of UDP and TCP"
_PUBLIC_PORTS = (80, 443)


@rule(
    NoNameResolution="no egress rule allows DNS, so names do not resolve",
    NoExternalTraffic="an egress rule for web ports selects pods of the own namespace only",
    UnsetNamespaceLabel="a policy selects namespaces by the label name, which namespaces do not have by themselves",
)
def network_policies(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    spec = string_keys(obj.get("spec"))
    rules = maps(spec.get("egress"))
    if ("Egress" in strings(spec.get("policyTypes")) or "egress" in spec) and not any(map(_allows_dns, rules)):
        what = "no rule allows port 53 to the DNS server: the pods cannot resolve names"
        yield Advice("NoNameResolution", "spec.egress", what, _DNS_FIX)
    for at, each in enumerate(rules):
        peers = maps(each.get("to"))
        if peers and all(set(peer) == {"podSelector"} for peer in peers) and _names_public_ports(each):
            what = "podSelector without a namespaceSelector means pods of this namespace, and no external address"
            fix = "write to: [{ipBlock: {cidr: 0.0.0.0/0}}] for external addresses"
            yield Advice("NoExternalTraffic", f"spec.egress[{at}].to", what, fix)
    for direction, field in (("ingress", "from"), ("egress", "to")):
        for at, each in enumerate(maps(spec.get(direction))):
            for column, peer in enumerate(maps(each.get(field))):
                name = dig(peer, "namespaceSelector", "matchLabels", "name")
                if isinstance(name, str):
                    yield Advice(
                        "UnsetNamespaceLabel",
                        f"spec.{direction}[{at}].{field}[{column}].namespaceSelector.matchLabels.name",
                        f"Kubernetes does not set the label name: namespace {name} is selected only if a user added it",
                        f"write {_NAME_LABEL}: {name}",
                    )


def _allows_dns(each: Obj) -> bool:
    ports, peers = maps(each.get("ports")), maps(each.get("to"))
    if ports and not any(_has_port(port, _DNS) or port.get("port") == "dns" for port in ports):
        return False
    return not peers or any(_reaches_dns(peer) for peer in peers)


def _reaches_dns(peer: Obj) -> bool:
    """Whether the peer may select the DNS server. A selector with labels other than the namespace's name might."""
    if "ipBlock" in peer:
        return True
    selector = peer.get("namespaceSelector")
    if not isinstance(selector, dict):
        return False
    labels = string_keys(selector.get("matchLabels"))
    return not labels or bool(selector.get("matchExpressions")) or labels.get(_NAME_LABEL) == "kube-system"


def _names_public_ports(each: Obj) -> bool:
    return any(_has_port(port, public) for port in maps(each.get("ports")) for public in _PUBLIC_PORTS)


def _has_port(port: Obj, number: int) -> bool:
    first = whole_of(str(port.get("port")))
    last = whole_of(str(port.get("endPort"))) or first
    if "port" not in port:
        return True
    return first is not None and last is not None and first <= number <= last
