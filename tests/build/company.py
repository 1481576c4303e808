"""Rules about other pods in one line: `ask().near(apart("host", app="web"), spread("zone", app="web"))`.

Pods are meant by labels in the namespace "default" unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from shoal.api.requirement import Requirement
from shoal.api.selectors import Selector
from shoal.engine.pod_identity import PodIdentity, PodLabels
from shoal.engine.pod_rules import PodRules, SelectedPods, Spread, Term, WeightedTerm


@dataclass(frozen=True)
class Together:
    term: Term


@dataclass(frozen=True)
class Apart:
    term: Term


Rule = Together | Apart | WeightedTerm | Spread


def selected(*namespaces: str, spaces: Selector = Selector.NOTHING, **labels: str) -> SelectedPods:
    return SelectedPods(_with(labels), tuple(sorted(namespaces)) or ("default",), spaces)


def _with(labels: Mapping[str, str]) -> Selector:
    return Selector(tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items())))


def _here(labels: Mapping[str, str]) -> SelectedPods:
    return SelectedPods(_with(labels), ("default",))


def together(key: str, means: SelectedPods | None = None, **labels: str) -> Together:
    return Together(Term(key, means or _here(labels)))


def apart(key: str, means: SelectedPods | None = None, **labels: str) -> Apart:
    return Apart(Term(key, means or _here(labels)))


def wished(weight: int, key: str, means: SelectedPods | None = None, **labels: str) -> WeightedTerm:
    return WeightedTerm(weight, Term(key, means or _here(labels)))


def spread(
    key: str,
    means: SelectedPods | None = None,
    *,
    skew: int = 1,
    hard: bool = True,
    least: int = 1,
    honors_affinity: bool = True,
    honors_taints: bool = False,
    **labels: str,
) -> Spread:
    return Spread(key, means or _here(labels), skew, hard, least, honors_affinity, honors_taints)


def with_rules(rules: PodRules, *more: Rule) -> PodRules:
    for rule in more:
        match rule:
            case Together(term):
                rules = msgspec.structs.replace(rules, affinity=(*rules.affinity, term))
            case Apart(term):
                rules = msgspec.structs.replace(rules, anti=(*rules.anti, term))
            case WeightedTerm():
                rules = msgspec.structs.replace(rules, weighted=(*rules.weighted, rule))
            case Spread():
                rules = msgspec.structs.replace(rules, spread=(*rules.spread, rule))
    return rules


def called(namespace: str = "default", **labels: str) -> PodIdentity:
    """A pod of these labels."""
    return PodIdentity(PodLabels.of(namespace, labels))
