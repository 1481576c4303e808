"""kube-scheduler's rules about other pods in loops over all pods and nodes: the recount that counted domains are held
against. It shares with the engine the values and the one-object rules of `api`, nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from shoal.api.taints import untolerated
from shoal.engine.asks import Ask
from shoal.engine.events import NodeFacts
from shoal.engine.pod_identity import PodLabels
from shoal.engine.pod_rules import SelectedPods, Spread, Term

AFFINITY = "pod affinity rules"
ANTI_AFFINITY = "pod anti-affinity rules"
KEPT_AWAY = "existing pods anti-affinity rules"
SPREAD = "pod topology spread constraints"
SPREAD_LABEL = "pod topology spread constraints (missing required label)"


@dataclass(frozen=True)
class Standing:
    node: str
    ask: Ask
    traits: PodLabels
    terminating: bool = False


@dataclass
class PlainCompany:
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    pods: list[Standing] = field(default_factory=list)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def means(self, selected: SelectedPods, pod: PodLabels) -> bool:
        of_namespace = {**self.namespaces.get(pod.namespace, {}), "kubernetes.io/metadata.name": pod.namespace}
        in_scope = pod.namespace in selected.namespaces or selected.namespace_selector.matches(of_namespace)
        return in_scope and selected.selector.matches(dict(pod.labels))

    def domain(self, node: str, key: str) -> str | None:
        return self.nodes[node].labels.get(key)

    def shares(self, node: str, other: str, key: str) -> bool:
        domain = self.domain(node, key)
        return domain is not None and domain == self.domain(other, key)

    # -- hard rules ------------------------------------------------------------------------------------------

    def refusal(self, node: str, ask: Ask, pod: PodLabels) -> str:
        """The first rule that turns the node away, or nothing."""
        return self.spread_refusal(node, ask, pod) or self.affinity_refusal(node, ask, pod)

    def affinity_refusal(self, node: str, ask: Ask, pod: PodLabels) -> str:
        rules = ask.near
        if rules.affinity and not self.is_near_enough(node, rules.affinity, pod):
            return AFFINITY
        for term in rules.anti:
            if any(self.means(term.selected, p.traits) and self.shares(node, p.node, term.key) for p in self.pods):
                return ANTI_AFFINITY
        for queue_rank in self.pods:
            for term in queue_rank.ask.near.anti:
                if self.means(term.selected, pod) and self.shares(node, queue_rank.node, term.key):
                    return KEPT_AWAY
        return ""

    def is_near_enough(self, node: str, terms: tuple[Term, ...], pod: PodLabels) -> bool:
        if any(self.domain(node, term.key) is None for term in terms):
            return False
        friends = [p for p in self.pods if all(self.means(term.selected, p.traits) for term in terms)]
        if all(any(self.shares(node, friend.node, term.key) for friend in friends) for term in terms):
            return True
        nowhere = not any(self.domain(friend.node, term.key) is not None for friend in friends for term in terms)
        return nowhere and all(self.means(term.selected, pod) for term in terms)

    def spread_refusal(self, node: str, ask: Ask, pod: PodLabels) -> str:
        hard = [rule for rule in ask.near.spread if rule.hard]
        for rule in hard:
            domain = self.domain(node, rule.key)
            if domain is None:
                return SPREAD_LABEL
            counts = self.counts(rule, hard, ask)
            least = min(counts.values(), default=0) if len(counts) >= rule.min_domains else 0
            if counts.get(domain, 0) + self.means(rule.selected, pod) - least > rule.max_skew:
                return SPREAD
        return ""

    def counts(self, rule: Spread, alike: list[Spread], ask: Ask) -> dict[str, int]:
        """Pods by domain, empty domains included."""
        counts: Counter[str] = Counter()
        for name, node in self.nodes.items():
            if not all(other.key in node.labels for other in alike):
                continue
            if rule.honors_affinity and not ask.nodes.matches(name, node.labels):
                continue
            if rule.honors_taints and untolerated(node.taints, ask.tolerations) is not None:
                continue
            here = [
                p for p in self.pods if p.node == name and not p.terminating and self.means(rule.selected, p.traits)
            ]
            counts[node.labels[rule.key]] += len(here)
        return dict(counts)

    # -- preferences -----------------------------------------------------------------------------------------

    def felt(self, node: str, ask: Ask, pod: PodLabels) -> int:
        """The weights of all preferred terms that pull to the node, minus those that push away."""
        felt = 0
        for queue_rank in self.pods:
            mine = [(w.weight, w.term) for w in ask.near.weighted if self.means(w.term.selected, queue_rank.traits)]
            near = queue_rank.ask.near
            theirs = [*((w.weight, w.term) for w in near.weighted), *((1, term) for term in near.affinity)]
            mine += [(weight, term) for weight, term in theirs if self.means(term.selected, pod)]
            felt += sum(weight for weight, term in mine if self.shares(node, queue_rank.node, term.key))
        return felt

    def unevenness(self, node: str, ask: Ask) -> list[tuple[int, int]] | None:
        """(pods above the emptiest domain, number of domains) per soft constraint; None without the keys."""
        soft = [rule for rule in ask.near.spread if not rule.hard]
        found = []
        for rule in soft:
            counts = self.counts(rule, soft, ask)
            domain = self.domain(node, rule.key)
            if domain not in counts or any(other.key not in self.nodes[node].labels for other in soft):
                return None
            found.append((counts[domain] - min(counts.values()), len(counts)))
        return found
