"""Counts the pods in each domain, for the terms that some pod's rules use.

Two kinds of counts. *Means*: pods that a rule means, counted for the newcomers who have the rule; made when the first
of them is looked at, by one walk over all pods. *Carried*: pods that have a rule, counted for the newcomers it means;
a pod that keeps others away does so by being there, so these are counted from the first such pod on.

Until the first pod with a rule arrives nothing is kept, and the facts pay one look at `active` per pod. After that
pods are distinguished by their *kin* only: namespace and the labels that some rule reads. Pods of one kin are alike to
every rule, however many labels of their own they have, so which counts a pod enters is looked up once per kin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from shoal.engine.asks import Ask
from shoal.engine.domain_counts.domain_count import DomainCount, Scope, Zones
from shoal.engine.domain_counts.term_index import TermIndex
from shoal.engine.pod_identity import PodLabels
from shoal.engine.pod_rules import NAMESPACE_NAME, NO_RULES, PodRules, SelectedPods, Term

LabelKey = tuple[str, tuple[tuple[str, str], ...]]
"""(namespace, labels that rules read)."""

PlacedPods = Callable[[], Iterable[tuple[int, PodLabels, bool]]]
"""All pods on nodes: (row, traits, whether it is leaving)."""

NO_LABELS: LabelKey = ("", ())

_MOST_KNOWN = 1 << 16
_MOST_COUNTS = 4096
_LEAST_CARRIED = 1024

_Means = tuple[tuple[SelectedPods, ...], Scope, bool]


class DomainCounts:
    """All counts of one cluster."""

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self.active = False
        """Whether any pod with rules ever arrived."""
        self.version = 0
        """Grows when rules appear or mean other pods: looked-up counts have to be looked up again."""
        self.kinship = 0
        """Grows when pods that were alike may differ: more labels are read than before."""
        self._namespaces = namespaces
        self._read: set[str] = set()
        self._label_keys: dict[PodLabels, LabelKey] = {}
        self._zones: dict[Scope, Zones] = {}
        self._means: dict[_Means, DomainCount] = {}
        self._entered: dict[LabelKey, list[tuple[DomainCount, bool]]] = {}
        """The counts that pods of a kin enter, and whether they leave them as soon as they are being terminated."""
        self._keeping_away: TermIndex[DomainCount] = TermIndex()
        self._attached: TermIndex[DomainCount] = TermIndex()
        self._preferring_near: TermIndex[DomainCount] = TermIndex()
        self._preferring_apart: TermIndex[DomainCount] = TermIndex()
        self._carried: dict[PodRules, list[tuple[DomainCount, int]]] = {}
        self._most_carried = _LEAST_CARRIED

    # -- what rules there are ----------------------------------------------------------------------------------

    def read(self, rules: PodRules) -> None:
        """Pods with these rules may come."""
        if rules.is_empty():
            return
        keys = {key for selected in rules.selected() for key in selected.labels_read()}
        if not self.active or not keys <= self._read:
            self.active = True
            self._read |= keys
            self.kinship += 1
            self.version += 1
            self._label_keys.clear()
            self._entered.clear()

    def namespaces_changed(self) -> None:
        """Other pods may be meant by what stays written."""
        if self.active:
            self.forget_means()

    def label_key(self, traits: PodLabels) -> LabelKey:
        """What all rules together see of a pod."""
        if not self.active:
            return NO_LABELS
        label_key = self._label_keys.get(traits)
        if label_key is None:
            if len(self._label_keys) >= _MOST_KNOWN:
                self._label_keys.clear()
            read = self._read
            label_key = traits.namespace, tuple(label for label in traits.labels if label[0] in read)
            self._label_keys[traits] = label_key
        return label_key

    def is_selected(self, selected: SelectedPods, label_key: LabelKey) -> bool:
        namespace, labels = label_key
        return selected.includes(namespace, dict(labels), self._labels_of(namespace))

    # -- pods come and go: the cluster calls these, once active ------------------------------------------------

    def add_pod(self, row: int, ask: Ask, traits: PodLabels, terminating: bool) -> None:
        self._count(row, ask, traits, terminating, 1)

    def remove_pod(self, row: int, ask: Ask, traits: PodLabels, terminating: bool) -> None:
        self._count(row, ask, traits, terminating, -1)

    def ends(self, row: int, traits: PodLabels, terminating: bool) -> None:
        """A pod is being terminated, or (undone) is not."""
        for domain_count, only_staying in self._entering(self.label_key(traits)):
            if only_staying:
                domain_count.add(row, -1 if terminating else 1)

    def _count(self, row: int, ask: Ask, traits: PodLabels, terminating: bool, sign: int) -> None:
        for domain_count, only_staying in self._entering(self.label_key(traits)):
            if not (only_staying and terminating):
                domain_count.add(row, sign)
        if ask.near is not NO_RULES:
            for domain_count, amount in self._carrying(ask.near):
                domain_count.add(row, sign * amount)

    # -- counts ------------------------------------------------------------------------------------------------

    def meaning(
        self, selected: tuple[SelectedPods, ...], scope: Scope, pods: PlacedPods, *, only_staying: bool
    ) -> DomainCount:
        """Pods that every one of these means."""
        asked = selected, scope, only_staying
        domain_count = self._means.get(asked)
        if domain_count is None:
            domain_count = self._means[asked] = DomainCount(self.zones(scope))
            for label_key, entered in self._entered.items():
                if self._all_mean(selected, label_key):
                    entered.append((domain_count, only_staying))
            self._walk(domain_count, pods, only_staying)
        return domain_count

    def keeping_away(self, label_key: LabelKey) -> list[DomainCount]:
        """Pods whose required anti-affinity means this kin, by term."""
        return list(self._keeping_away.of(label_key, self._labels_of(label_key[0])))

    def attached(self, label_key: LabelKey) -> list[DomainCount]:
        """Pods whose required affinity means this kin, by term."""
        return list(self._attached.of(label_key, self._labels_of(label_key[0])))

    def weighted_terms(self, label_key: LabelKey) -> list[tuple[DomainCount, int]]:
        """Weights of preferences that mean this kin, by term, and whether for (1) or against (-1) its company."""
        of_namespace = self._labels_of(label_key[0])
        near, apart = (
            self._preferring_near.of(label_key, of_namespace),
            self._preferring_apart.of(label_key, of_namespace),
        )
        return [*((domain_count, 1) for domain_count in near), *((domain_count, -1) for domain_count in apart)]

    def zones(self, scope: Scope) -> Zones:
        zones = self._zones.get(scope)
        if zones is None:
            zones = self._zones[scope] = Zones(scope)
        return zones

    def free_capacity(self) -> None:
        """Called between look-ups: several counts must be looked up together or not at all."""
        if len(self._means) >= _MOST_COUNTS:
            self.forget_means()

    def forget_means(self) -> None:
        """They are created again on request. Counts of rules on pods could not be, cheaply, and are few."""
        self._means.clear()
        self._entered.clear()
        carried = {id(domain_count) for tallies in self._carried.values() for domain_count, _ in tallies}
        for zones in self._zones.values():
            zones.domain_counts = [domain_count for domain_count in zones.domain_counts if id(domain_count) in carried]
        self._zones = {scope: zones for scope, zones in self._zones.items() if zones.domain_counts}
        self.version += 1

    # -- inside ------------------------------------------------------------------------------------------------

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        labels = self._namespaces.get(namespace)
        if labels is None or NAMESPACE_NAME not in labels:
            return {**(labels or {}), NAMESPACE_NAME: namespace}
        return labels

    def _all_mean(self, selected: tuple[SelectedPods, ...], label_key: LabelKey) -> bool:
        return all(self.is_selected(one, label_key) for one in selected)

    def _entering(self, label_key: LabelKey) -> list[tuple[DomainCount, bool]]:
        entered = self._entered.get(label_key)
        if entered is None:
            if len(self._entered) >= _MOST_KNOWN:
                self._entered.clear()
            entered = self._entered[label_key] = [
                (domain_count, only_staying)
                for (selected, _, only_staying), domain_count in self._means.items()
                if self._all_mean(selected, label_key)
            ]
        return entered

    def _walk(self, domain_count: DomainCount, pods: PlacedPods, only_staying: bool) -> None:
        enters: dict[LabelKey, bool] = {}
        for row, traits, terminating in pods():
            if terminating and only_staying:
                continue
            label_key = self.label_key(traits)
            if label_key not in enters:
                enters[label_key] = any(entered is domain_count for entered, _ in self._entering(label_key))
            if enters[label_key]:
                domain_count.add(row, 1)

    def _carrying(self, rules: PodRules) -> list[tuple[DomainCount, int]]:
        carried = self._carried.get(rules)
        if carried is None:
            if not (rules.anti or rules.affinity or rules.weighted):
                return []
            if len(self._carried) >= self._most_carried:
                self._forget_idle()
            carried = [
                *((self._carrier(self._keeping_away, term), 1) for term in rules.anti),
                *((self._carrier(self._attached, term), 1) for term in rules.affinity),
            ]
            for weighted in rules.weighted:
                index = self._preferring_near if weighted.weight > 0 else self._preferring_apart
                carried.append((self._carrier(index, weighted.term), abs(weighted.weight)))
            self._carried[rules] = carried
        return carried

    def _carrier(self, index: TermIndex[DomainCount], term: Term) -> DomainCount:
        domain_count = index.get(term)
        if domain_count is None:
            domain_count = DomainCount(self.zones(Scope(term.key)))
            index.put(term, domain_count)
            self.version += 1
        return domain_count

    def _forget_idle(self) -> None:
        """Deployments come and go for years: once in a while drop the rules that no pod on a node has any more."""
        self._carried = {
            rules: tallies
            for rules, tallies in self._carried.items()
            if all(domain_count.by_row for domain_count, _ in tallies)
        }
        self._most_carried = max(2 * len(self._carried), _LEAST_CARRIED)
        for index in (self._keeping_away, self._attached, self._preferring_near, self._preferring_apart):
            for domain_count in index.keep(lambda domain_count: bool(domain_count.by_row)):
                domain_count.zones.domain_counts.remove(domain_count)
        self.version += 1
