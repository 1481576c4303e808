"""Converts a pod's affinity and topology spread from the Kubernetes form to rules.

`matchLabelKeys` narrows a selector to the pod's own value of a label, `mismatchLabelKeys` excludes it; keys that the
pod does not have change nothing. A live API server has already written the former into the selector of affinity terms;
reading them once more gives the same rule. A term without namespaces is about the pod's own, an absent selector means
no pod and an empty one every pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shoal.api.affinity import PodAffinity, PodAffinityTerm, TopologySpreadConstraint, WeightedPodAffinityTerm
from shoal.api.pod import PodSpec
from shoal.api.requirement import Requirement
from shoal.api.selectors import LabelSelector, selector_of
from shoal.engine.pod_rules import NO_RULES, PodRules, SelectedPods, Spread, Term, WeightedTerm, in_one_spelling

_NONE = PodAffinity()


def rules_of(spec: PodSpec, namespace: str, labels: Mapping[str, str]) -> PodRules:
    """The rules of a pod with these labels in this namespace."""
    affinity = spec.affinity
    constraints = spec.topology_spread_constraints
    if affinity is None and not constraints:
        return NO_RULES
    near = (affinity.pod_affinity if affinity is not None else None) or _NONE
    far = (affinity.pod_anti_affinity if affinity is not None else None) or _NONE
    return PodRules(
        affinity=_once(_term(term, namespace, labels) for term in near.required),
        anti=_once(_term(term, namespace, labels) for term in far.required),
        weighted=(*_weighted(near.preferred, 1, namespace, labels), *_weighted(far.preferred, -1, namespace, labels)),
        spread=tuple(_spread(constraint, namespace, labels) for constraint in constraints),
    )


def _once(terms: Iterable[Term]) -> tuple[Term, ...]:
    return tuple(dict.fromkeys(terms))


def _weighted(
    terms: Iterable[WeightedPodAffinityTerm], sign: int, namespace: str, labels: Mapping[str, str]
) -> Iterator[WeightedTerm]:
    for weighted in terms:
        yield WeightedTerm(sign * weighted.weight, _term(weighted.pod_affinity_term, namespace, labels))


def _term(term: PodAffinityTerm, namespace: str, labels: Mapping[str, str]) -> Term:
    more = (*_own(term.match_label_keys, "In", labels), *_own(term.mismatch_label_keys, "NotIn", labels))
    namespaces = set(term.namespaces)
    if not namespaces and term.namespace_selector is None:
        namespaces.add(namespace)
    selected = SelectedPods(
        in_one_spelling(selector_of(term.label_selector), more),
        tuple(sorted(namespaces)),
        in_one_spelling(selector_of(term.namespace_selector)),
    )
    return Term(term.topology_key, selected)


def _spread(constraint: TopologySpreadConstraint, namespace: str, labels: Mapping[str, str]) -> Spread:
    more = _own(constraint.match_label_keys, "In", labels)
    return Spread(
        constraint.topology_key,
        SelectedPods(in_one_spelling(selector_of(constraint.label_selector), more), (namespace,)),
        constraint.max_skew,
        constraint.is_hard(),
        constraint.min_domains or 1,
        constraint.node_affinity_policy == "Honor",
        constraint.node_taints_policy == "Honor",
    )


def _own(keys: Iterable[str], operator: str, labels: Mapping[str, str]) -> list[Requirement]:
    return [Requirement(key, "In" if operator == "In" else "NotIn", (labels[key],)) for key in keys if key in labels]


def anti_affinity_that_misses_itself(spec: PodSpec, labels: Mapping[str, str]) -> Iterator[tuple[str, LabelSelector]]:
    """Anti-affinity terms that do not mean the pod itself, by field: its replicas will not avoid each other.

    That is legal and now and then meant (keep away from the noisy ones). Mostly it is a label forgotten in the
    template, and nothing ever complains.
    """
    far = spec.affinity.pod_anti_affinity if spec.affinity is not None else None
    if far is None:
        return
    path = "spec.affinity.podAntiAffinity"
    terms = [
        (f"{path}.requiredDuringSchedulingIgnoredDuringExecution[{index}]", term)
        for index, term in enumerate(far.required)
    ]
    terms += [
        (f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}].podAffinityTerm", weighted.pod_affinity_term)
        for index, weighted in enumerate(far.preferred)
    ]
    for where, term in terms:
        if term.label_selector is not None and not term.label_selector.matches(labels):
            yield where, term.label_selector
