"""Checks NetworkPolicies that block what their authors expect to pass."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.selectors import LabelSelector
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, Rule, check
from shoal.policy.fields import dig, label_selector, maps, string_keys, strings
from shoal.policy.kinds import NAMESPACE, NETWORK_POLICY
from shoal.policy.object_set import key_of
from shoal.units.numbers import whole_of

_DNS = 53
_DNS_NAMESPACE = "kube-system"
_NAME_LABEL = "kubernetes.io/metadata.name"
_DNS_FIX = f"add an egress rule to the namespace with {_NAME_LABEL}: {_DNS_NAMESPACE}, ports 53 of UDP and TCP"
_PUBLIC_PORTS = (80, 443)


@check(
    Rule(
        "SHL-801",
        "NoNameResolution",
        "error",
        fault="no egress rule allows DNS, so names do not resolve",
        effect="names do not resolve, so nearly every connection fails",
        fix="allow port 53 of UDP and TCP to the namespace kube-system",
        links=("https://kubernetes.io/docs/concepts/services-networking/network-policies/",),
        at_admission="warning",
        bad="""\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: egress}
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress:
  - ports: [{protocol: TCP, port: 443}]
""",
        changes=(
            Change(
                "{protocol: TCP, port: 443}",
                "{protocol: TCP, port: 443}, {protocol: UDP, port: 53}, {protocol: TCP, port: 53}",
            ),
        ),
    ),
    Rule(
        "SHL-802",
        "NoExternalTraffic",
        "error",
        fault="an egress rule for web ports selects pods of the own namespace only",
        effect="downloads of models and data fail",
        fix="write to: [{ipBlock: {cidr: 0.0.0.0/0}}] for external addresses",
        links=("https://kubernetes.io/docs/concepts/services-networking/network-policies/",),
        at_admission="warning",
        bad="""\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: egress}
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress:
  - {to: [{podSelector: {}}], ports: [{protocol: TCP, port: 443}]}
  - {ports: [{protocol: UDP, port: 53}]}
""",
        changes=(Change("to: [{podSelector: {}}]", "to: [{ipBlock: {cidr: 0.0.0.0/0}}]"),),
    ),
    Rule(
        "SHL-803",
        "UnsetNamespaceLabel",
        "error",
        fault="a policy selects namespaces by the label name, which namespaces do not have by themselves",
        effect="the rule selects no namespace",
        fix="select kubernetes.io/metadata.name",
        links=("https://kubernetes.io/docs/concepts/services-networking/network-policies/",),
        at_admission="warning",
        bad="""\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: scrape}
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress:
  - from: [{namespaceSelector: {matchLabels: {name: monitoring}}}]
""",
        changes=(Change("{name: monitoring}", "{kubernetes.io/metadata.name: monitoring}"),),
    ),
    kinds=(NETWORK_POLICY,),
)
def network_policies(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    spec = string_keys(obj.get("spec"))
    rules = maps(spec.get("egress"))
    if _restricts_egress(spec) and not _may_resolve(obj, spec, context):
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


def _restricts_egress(spec: Obj) -> bool:
    types = strings(spec.get("policyTypes"))
    return "Egress" in types if types else bool(spec.get("egress"))


def _may_resolve(obj: Obj, spec: Obj, context: RuleContext) -> bool:
    """Whether DNS may be allowed, by this policy or by another one for the same pods: what one allows is allowed."""
    dns_labels = _labels_of_dns(context)
    if _allows_dns(spec, dns_labels):
        return True
    pods = label_selector(spec.get("podSelector"))
    others = (string_keys(other.get("spec")) for other in context.all(NETWORK_POLICY, key_of(obj)[0]))
    return any(
        _restricts_egress(other)
        and _allows_dns(other, dns_labels)
        and _may_share_pods(pods, label_selector(other.get("podSelector")))
        for other in others
    )


def _may_share_pods(one: LabelSelector | None, other: LabelSelector | None) -> bool:
    """False if both require different values of a label."""
    if one is None or other is None:
        return True
    return all(other.match_labels.get(key, value) == value for key, value in one.match_labels.items())


def _labels_of_dns(context: RuleContext) -> dict[str, str] | None:
    """The labels of the namespace of the DNS server; None if they are not known."""
    found = context.find(NAMESPACE, "", _DNS_NAMESPACE)
    if found is None:
        return None
    labels = string_keys(dig(found, "metadata", "labels"))
    return {**{key: str(value) for key, value in labels.items()}, _NAME_LABEL: _DNS_NAMESPACE}


def _allows_dns(spec: Obj, dns_labels: dict[str, str] | None) -> bool:
    return any(_rule_allows_dns(each, dns_labels) for each in maps(spec.get("egress")))


def _rule_allows_dns(each: Obj, dns_labels: dict[str, str] | None) -> bool:
    ports, peers = maps(each.get("ports")), maps(each.get("to"))
    if ports and not any(_has_port(port, _DNS) or port.get("port") == "dns" for port in ports):
        return False
    return not peers or any(_may_reach_dns(peer, dns_labels) for peer in peers)


def _may_reach_dns(peer: Obj, dns_labels: dict[str, str] | None) -> bool:
    """Whether the peer may select the DNS server. If the labels of its namespace are not known, only the label with
    the namespace's name can say that it does not."""
    if "ipBlock" in peer:
        return True
    raw = peer.get("namespaceSelector")
    if not isinstance(raw, dict):
        return False
    selector = label_selector(raw)
    if selector is None:
        return True
    if dns_labels is not None:
        return selector.matches(dns_labels)
    return selector.match_labels.get(_NAME_LABEL, _DNS_NAMESPACE) == _DNS_NAMESPACE


def _names_public_ports(each: Obj) -> bool:
    return any(_has_port(port, public) for port in maps(each.get("ports")) for public in _PUBLIC_PORTS)


def _has_port(port: Obj, number: int) -> bool:
    first = whole_of(str(port.get("port")))
    last = whole_of(str(port.get("endPort"))) or first
    if "port" not in port:
        return True
    return first is not None and last is not None and first <= number <= last
