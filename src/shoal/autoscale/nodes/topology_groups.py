"""Counts pods by topology domain for rules about other pods, over nodes that exist and nodes that are planned.

A planned node may still be in several domains. A spread constraint then picks the domain with the fewest pods, pod
affinity the domains that have a matching pod, and anti-affinity all domains without one; what they pick narrows the
node. A pod counts in a domain once its node can only be in that one; for anti-affinity it counts in every domain in
which its node may still end up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final

from shoal.api.selectors import Selector
from shoal.api.taints import Taint, Toleration, untolerated
from shoal.api.topology import HOSTNAME_LABEL
from shoal.autoscale.requirements import NONE, AdmittedValues, RequirementSet, only

ALL_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute", "PreferNoSchedule"})


class GroupKind(Enum):
    """What a rule demands of the domain of a pod."""

    SPREAD = "spread"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"


class NodeFilter:
    """The nodes whose pods a spread constraint counts."""

    __slots__ = ("_by_taints", "_terms", "_tolerations")

    def __init__(self, terms: tuple[RequirementSet, ...], tolerations: tuple[Toleration, ...], *, by_taints: bool):
        """Without terms the filter asks for no labels."""
        self._terms = terms
        self._tolerations = tolerations
        self._by_taints = by_taints

    @property
    def identity(self) -> tuple[object, ...]:
        return self._terms, self._tolerations if self._by_taints else ()

    def tolerates(self, taints: Iterable[Taint]) -> bool:
        return not self._by_taints or untolerated(taints, self._tolerations, ALL_EFFECTS) is None

    def counts(self, requirements: RequirementSet, taints: Iterable[Taint], undefined: Iterable[str] = ()) -> bool:
        if not self.tolerates(taints):
            return False
        allowed = frozenset(undefined)
        return not self._terms or any(requirements.is_compatible(term, allowed) for term in self._terms)


EVERY_NODE: Final = NodeFilter((), (), by_taints=False)


class TopologyGroup:
    """One rule about other pods, with the number of pods that it selects in each domain."""

    __slots__ = ("counts", "filter", "key", "kind", "max_skew", "min_domains", "namespaces", "selector")

    def __init__(
        self,
        kind: GroupKind,
        key: str,
        namespaces: Callable[[str], bool],
        selector: Selector,
        *,
        max_skew: int = 1,
        min_domains: int | None = None,
        node_filter: NodeFilter = EVERY_NODE,
    ) -> None:
        self.kind = kind
        self.key = key
        self.namespaces = namespaces
        self.selector = selector
        self.max_skew = max_skew
        self.min_domains = min_domains
        self.filter = node_filter
        self.counts: dict[str, int] = {}

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return self.namespaces(namespace) and self.selector.matches(labels)

    def register(self, domains: Iterable[str]) -> None:
        """These domains exist, with or without pods."""
        for domain in domains:
            self.counts.setdefault(domain, 0)

    def add(self, domains: Iterable[str]) -> None:
        """One more pod in each of these domains."""
        for domain in domains:
            self.counts[domain] = self.counts.get(domain, 0) + 1

    def remove(self, domains: Iterable[str]) -> None:
        """The inverse of `add`."""
        for domain in domains:
            self.counts[domain] -= 1

    def allowed(self, *, selects_pod: bool, of_pod: AdmittedValues, of_node: AdmittedValues) -> AdmittedValues:
        """The domains in which the pod may be, of those that the pod's and the node's requirements admit."""
        match self.kind:
            case GroupKind.SPREAD:
                return self._spread(selects_pod=selects_pod, of_pod=of_pod, of_node=of_node)
            case GroupKind.AFFINITY:
                return self._near(selects_pod=selects_pod, of_pod=of_pod, of_node=of_node)
            case GroupKind.ANTI_AFFINITY:
                return _closed(
                    each for each, count in self.counts.items() if not count and of_pod.has(each) and of_node.has(each)
                )

    def _spread(self, *, selects_pod: bool, of_pod: AdmittedValues, of_node: AdmittedValues) -> AdmittedValues:
        least = self._least(of_pod)
        best, best_count = "", -1
        for domain in sorted(self.counts):
            if not of_node.has(domain):
                continue
            count = self.counts[domain] + selects_pod
            if count - least <= self.max_skew and (best_count < 0 or count < best_count):
                best, best_count = domain, count
        return only(best) if best_count >= 0 else NONE

    def _least(self, of_pod: AdmittedValues) -> int:
        """The number of pods in the emptiest domain that the pod may use; another host can always be added."""
        if self.key == HOSTNAME_LABEL:
            return 0
        found = [count for domain, count in self.counts.items() if of_pod.has(domain)]
        if not found or (self.min_domains is not None and len(found) < self.min_domains):
            return 0
        return min(found)

    def _near(self, *, selects_pod: bool, of_pod: AdmittedValues, of_node: AdmittedValues) -> AdmittedValues:
        with_pods = [each for each, count in self.counts.items() if count and of_pod.has(each)]
        here = _closed(each for each in with_pods if of_node.has(each))
        if here.values or not selects_pod or with_pods:
            return here
        # The first pod of a group that selects itself may be anywhere.
        first = min((each for each in self.counts if of_pod.has(each) and of_node.has(each)), default=None)
        return NONE if first is None else only(first)


def _closed(values: Iterable[str]) -> AdmittedValues:
    return AdmittedValues(is_open=False, values=frozenset(values))
