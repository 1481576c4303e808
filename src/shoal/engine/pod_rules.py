"""Represents the rules of a pod about other pods: required and preferred affinity and anti-affinity, and topology
spread.

A domain is all nodes with one value of a label, the *topology key*. These are values and part of the ask: everything
that depends on the pod's own labels or namespace (`matchLabelKeys`, no namespaces meaning its own) has been put in when
they are made, so equal rules are equal values and share every computation. Whether the pod meets its *own* rule is left
open: that depends on labels which its ask does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from shoal.api.requirement import Requirement
from shoal.api.selectors import Selector

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace has: its own name."""


class SelectedPods(msgspec.Struct, frozen=True, cache_hash=True):
    """The pods that a rule is about."""

    selector: Selector
    namespaces: tuple[str, ...] = ()
    """Sorted."""
    namespace_selector: Selector = Selector.NOTHING
    """Namespaces by their labels, beside those named."""

    def includes(self, namespace: str, labels: Mapping[str, str], of_namespace: Mapping[str, str]) -> bool:
        """Whether a pod with these labels in this namespace, labelled so, is meant."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(of_namespace):
            return False
        return self.selector.matches(labels)

    def labels_read(self) -> Iterator[str]:
        """The keys of the pod labels that it looks at."""
        return (requirement.key for requirement in self.selector.requirements or ())


class Term(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods in one's own domain of a topology key."""

    key: str
    selected: SelectedPods


class WeightedTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """A preference; of negative weight for pods to keep away from."""

    weight: int
    term: Term


class Spread(msgspec.Struct, frozen=True, cache_hash=True):
    """One topology spread constraint."""

    key: str
    selected: SelectedPods
    max_skew: int = 1
    """How many more than the emptiest domain any domain may hold."""
    hard: bool = True
    min_domains: int = 1
    """With fewer domains than that, the emptiest counts as having none."""
    honors_affinity: bool = True
    """Whether nodes that the pod's node selector and affinity rule out are left out of the count."""
    honors_taints: bool = False
    """The same of nodes whose taints it does not tolerate."""


class PodRules(msgspec.Struct, frozen=True, cache_hash=True):
    """All rules of a pod about pods."""

    affinity: tuple[Term, ...] = ()
    """Required: each needs a domain with some pod that all of these terms select."""
    anti: tuple[Term, ...] = ()
    """Required: no pod that one of these terms selects is in its domain."""
    weighted: tuple[WeightedTerm, ...] = ()
    spread: tuple[Spread, ...] = ()

    def is_empty(self) -> bool:
        return not (self.affinity or self.anti or self.weighted or self.spread)

    def may_wait_for_others(self) -> bool:
        """Whether the arrival of another pod can make room for this one."""
        return bool(self.affinity) or any(spread.hard for spread in self.spread)

    def selected(self) -> Iterator[SelectedPods]:
        for term in (*self.affinity, *self.anti):
            yield term.selected
        for weighted in self.weighted:
            yield weighted.term.selected
        for spread in self.spread:
            yield spread.selected


NO_RULES = PodRules()


def in_one_spelling(selector: Selector, more: Iterable[Requirement] = ()) -> Selector:
    """The selector narrowed by more requirements; equal whatever the order or repeats of its parts."""
    if selector.requirements is None:
        return selector
    plain = {(r.key, r.operator, tuple(sorted(set(r.values)))) for r in (*selector.requirements, *more)}
    return Selector(tuple(Requirement(key, operator, values) for key, operator, values in sorted(plain)))
