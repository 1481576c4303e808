"""Karpenter's provisioning written down a second time, in the most literal way: no engine, no masks, nothing cached.

Every question is answered anew from the raw pods, pools and types. It knows the subset that random worlds are drawn
from: cpu and GPUs, node selectors, required and preferred node terms, tolerations, zone and host spread, host and zone
(anti-)affinity to labels, weights and limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shoal.api.pod import Pod
from shoal.api.resources import effective_requests
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pools import NodePool

ZONE, HOST, CAPACITY = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "karpenter.sh/capacity-type"

Option = tuple[InstanceType, Offering]
Wanted = list[tuple[str, frozenset[str]]]
"""Labels and the values that are admitted: the random worlds have In only."""


@dataclass
class Claim:
    name: str
    pool: NodePool
    options: list[Option]
    allowed: dict[str, frozenset[str]] = field(default_factory=dict)
    """What pods and rules have narrowed labels to."""
    pods: list[Pod] = field(default_factory=list)
    counted: list[tuple[Pod, dict[str, frozenset[str]]]] = field(default_factory=list)
    """Each pod with what the node could be when the pod came: a pod is not counted anew when its node is narrowed."""


@dataclass
class Rules:
    """A pod with what it has not given up."""

    terms: list[Wanted]
    preferred: list[Wanted]
    spread: list[tuple[str, int, bool, Mapping[str, str]]]
    near: list[tuple[str, Mapping[str, str], bool]]
    apart: list[tuple[str, Mapping[str, str], bool]]


def _wanted(term: object) -> Wanted:
    return [(each.key, frozenset(each.values)) for each in term.match_expressions]  # type: ignore[attr-defined]


def rules_of(pod: Pod) -> Rules:
    affinity = pod.spec.affinity
    node = affinity.node_affinity if affinity is not None else None
    near = affinity.pod_affinity if affinity is not None else None
    apart = affinity.pod_anti_affinity if affinity is not None else None
    preferred = sorted(node.preferred, key=lambda each: -each.weight) if node is not None else []
    required = node.required.node_selector_terms if node is not None and node.required is not None else ()

    def pairs(rules: object) -> list[tuple[str, Mapping[str, str], bool]]:
        if rules is None:
            return []
        hard = [(each.topology_key, each.label_selector.match_labels, True) for each in rules.required]  # type: ignore[attr-defined]
        soft = [
            (each.pod_affinity_term.topology_key, each.pod_affinity_term.label_selector.match_labels, False)
            for each in rules.preferred  # type: ignore[attr-defined]
        ]
        return [*hard, *soft]

    return Rules(
        terms=[_wanted(term) for term in required],
        preferred=[_wanted(each.preference) for each in preferred],
        spread=[
            (each.topology_key, each.max_skew, each.is_hard(), each.label_selector.match_labels)  # type: ignore[union-attr]
            for each in pod.spec.topology_spread_constraints
        ],
        near=pairs(near),
        apart=pairs(apart),
    )


def weaken(rules: Rules) -> bool:
    """Give up one preference, in Karpenter's order."""
    if len(rules.terms) > 1:
        del rules.terms[0]
        return True
    for listed in (rules.near, rules.apart):
        soft = [each for each in listed if not each[2]]
        if soft:
            listed.remove(soft[0])
            return True
    if rules.preferred:
        del rules.preferred[0]
        return True
    anyway = [each for each in rules.spread if not each[2]]
    if anyway:
        rules.spread.remove(anyway[0])
        return True
    return False


class LiteralKarpenter:
    def __init__(self, given: PlanningInput) -> None:
        self.given = given
        self.claims: list[Claim] = []
        self.pending: list[Pod] = []
        self.left = {pool.name: dict(pool.limits) for pool in given.pools}

    def run(self) -> None:
        queue = sorted(self.given.pods, key=lambda pod: -_amount(pod, "cpu"))
        while True:
            left = [pod for pod in queue if not self._place(pod)]
            if len(left) == len(queue) or not left:
                self.pending = left
                return
            queue = left

    def _place(self, pod: Pod) -> bool:
        rules = rules_of(pod)
        while True:
            if self._try(pod, rules):
                return True
            if not weaken(rules):
                return False

    def _try(self, pod: Pod, rules: Rules) -> bool:
        for claim in sorted(self.claims, key=lambda each: len(each.pods)):
            found = self._narrowed(claim, pod, rules)
            if found is not None:
                claim.allowed, claim.options = found
                claim.pods.append(pod)
                claim.counted.append((pod, claim.allowed))
                return True
        pools = sorted(self.given.pools, key=lambda pool: pool.name, reverse=True)
        for pool in sorted(pools, key=lambda each: -each.weight):
            left = self.left[pool.name]
            options = [
                (kind, offer)
                for kind in self.given.types[pool.name]
                for offer in kind.offerings
                if all(kind.capacity.get(name, 0) <= amount for name, amount in left.items() if name != "nodes")
                and left.get("nodes", 1) > 0
            ]
            name = f"host-{len(self.claims)}"
            allowed = {key: frozenset(each.values) for key, each in pool.node_requirements().items()}
            claim = Claim(name, pool, options, {**allowed, HOST: frozenset({name})})
            self.claims.append(claim)
            found = self._narrowed(claim, pod, rules)
            if found is None:
                self.claims.pop()
                continue
            claim.allowed, claim.options = found
            claim.pods.append(pod)
            claim.counted.append((pod, claim.allowed))
            for name in left:
                left[name] -= 1 if name == "nodes" else max(kind.capacity.get(name, 0) for kind, _ in claim.options)
            return True
        return False

    def _narrowed(self, claim: Claim, pod: Pod, rules: Rules) -> tuple[dict[str, frozenset[str]], list[Option]] | None:
        for taint in claim.pool.taints:
            if not any(toleration.tolerates(taint) for toleration in pod.spec.tolerations):
                return None
        strict: dict[str, frozenset[str]] = {}
        first = rules.terms[0] if rules.terms else []
        for key, values in [*((k, frozenset({v})) for k, v in pod.spec.node_selector.items()), *first]:
            strict[key] = strict.get(key, values) & values
        allowed = dict(claim.allowed)
        for key, values in [*strict.items(), *(rules.preferred[0] if rules.preferred else [])]:
            if key not in allowed and key not in _known(self.given):
                return None
            allowed[key] = allowed.get(key, values) & values
            if not allowed[key]:
                return None
        for key, found in self._topology(claim, pod, rules, strict, allowed):
            allowed[key] = allowed.get(key, found) & found
            if not allowed[key]:
                return None
        options = [each for each in claim.options if self._fits(each, [*claim.pods, pod], allowed)]
        return (allowed, options) if options else None

    def _fits(self, option: Option, pods: Sequence[Pod], allowed: Mapping[str, frozenset[str]]) -> bool:
        kind, offer = option
        for key, values in allowed.items():
            if key == ZONE and offer.zone not in values:
                return False
            if key == CAPACITY and offer.capacity_type not in values:
                return False
            if key in kind.labels and not values & set(kind.labels[key]):
                return False
        for name in ("cpu", "memory", "nvidia.com/gpu"):
            if sum(_amount(pod, name) for pod in pods) > kind.allocatable().get(name, 0):
                return False
        return len(pods) <= kind.allocatable()["pods"]

    # -- rules about other pods --------------------------------------------------------------------------------

    def _topology(
        self,
        claim: Claim,
        pod: Pod,
        rules: Rules,
        strict: Mapping[str, frozenset[str]],
        allowed: Mapping[str, frozenset[str]],
    ) -> Iterable[tuple[str, frozenset[str]]]:
        labels = pod.metadata.labels
        for key, skew, _, selector in rules.spread:
            counts = self._counts(key, selector)
            least = (
                0
                if key == HOST
                else min(
                    (count for domain, count in counts.items() if key not in strict or domain in strict[key]), default=0
                )
            )
            mine = _matches(selector, labels)
            best = [
                (count + mine, domain)
                for domain, count in sorted(counts.items())
                if (key not in allowed or domain in allowed[key]) and count + mine - least <= skew
            ]
            yield key, frozenset({min(best)[1]}) if best else frozenset()
        for key, selector, _ in rules.near:
            counts = self._counts(key, selector)
            there = {
                domain for domain, count in counts.items() if count and (key not in strict or domain in strict[key])
            }
            here = {domain for domain in there if key not in allowed or domain in allowed[key]}
            if not here and not there and _matches(selector, labels):
                open_ = [
                    domain
                    for domain in sorted(counts)
                    if (key not in strict or domain in strict[key]) and (key not in allowed or domain in allowed[key])
                ]
                here = set(open_[:1])
            yield key, frozenset(here)
        for key, selector, _ in rules.apart:
            counts = self._counts(key, selector, is_apart=True)
            yield key, self._empty(key, counts, strict, allowed)
        yield from self._against(pod, strict, allowed)

    def _against(
        self, pod: Pod, strict: Mapping[str, frozenset[str]], allowed: Mapping[str, frozenset[str]]
    ) -> Iterable[tuple[str, frozenset[str]]]:
        """The required anti-affinity of others that selects the pod; all rules with one key and selector together."""
        terms = {
            (key, tuple(sorted(selector.items())))
            for other in self.given.pods
            for key, selector, is_hard in rules_of(other).apart
            if is_hard and _matches(selector, pod.metadata.labels)
        }
        for key, selector in sorted(terms):
            counts: Counter[str] = Counter(dict.fromkeys(self._domains(key), 0))
            for claim in self.claims:
                for placed, allowed_then in claim.counted:
                    if (key, dict(selector), True) in [(k, dict(s), h) for k, s, h in rules_of(placed).apart]:
                        counts.update(allowed_then.get(key, ()))
            yield key, self._empty(key, counts, strict, allowed)

    def _empty(
        self,
        key: str,
        counts: Mapping[str, int],
        strict: Mapping[str, frozenset[str]],
        allowed: Mapping[str, frozenset[str]],
    ) -> frozenset[str]:
        return frozenset(
            domain
            for domain, count in counts.items()
            if not count
            and (key not in strict or domain in strict[key])
            and (key not in allowed or domain in allowed[key])
        )

    def _domains(self, key: str) -> set[str]:
        if key == HOST:
            return {claim.name for claim in self.claims}
        found = set()
        for pool in self.given.pools:
            requirements = pool.node_requirements()
            for kind in self.given.types[pool.name]:
                if not all(
                    requirements.get(label).has(value) for label, values in kind.labels.items() for value in values
                ):
                    continue
                for offer in kind.offerings:
                    is_allowed = requirements.get(ZONE).has(offer.zone)
                    if is_allowed and requirements.get(CAPACITY).has(offer.capacity_type):
                        found.add(offer.zone if key == ZONE else offer.capacity_type)
        return found

    def _counts(self, key: str, selector: Mapping[str, str], *, is_apart: bool = False) -> Counter[str]:
        counts: Counter[str] = Counter(dict.fromkeys(self._domains(key), 0))
        for claim in self.claims:
            for placed, allowed_then in claim.counted:
                if not _matches(selector, placed.metadata.labels):
                    continue
                values = allowed_then.get(key, frozenset())
                if is_apart or len(values) == 1:
                    counts.update(values)
        return counts


def _known(given: PlanningInput) -> set[str]:
    return {ZONE, CAPACITY, "kubernetes.io/arch", "node.kubernetes.io/instance-type", "karpenter.sh/nodepool"} | {
        key for types in given.types.values() for kind in types for key in kind.labels
    }


def _amount(pod: Pod, name: str) -> int:
    return effective_requests(pod.spec).get(name, 0)


def _matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return selector.items() <= labels.items()
