"""Keeps all rules about other pods of a planning, and what each allows a pod on a node.

The domains of a key are those that pools can provide, those of nodes that exist, and the placeholder hosts of planned
nodes. Required anti-affinity works both ways: the pods that it selects keep away from the pod that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from shoal.api.affinity import PodAffinityTerm, TopologySpreadConstraint
from shoal.api.requirement import Requirement
from shoal.api.selectors import LabelSelector, Selector, selector_of
from shoal.api.taints import Taint
from shoal.api.topology import HOSTNAME_LABEL
from shoal.autoscale.nodes.pod_variants import PodShape, PodVariant
from shoal.autoscale.nodes.topology_groups import EVERY_NODE, GroupKind, NodeFilter, TopologyGroup
from shoal.autoscale.requirements import ANY, RequirementSet, current_label


class ResidentPod(msgspec.Struct, frozen=True):
    """A pod that runs on a node that exists."""

    namespace: str
    labels: Mapping[str, str]
    node: str
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    """What it requires."""


class DomainNode(msgspec.Struct, frozen=True):
    """A node that exists, as far as domains are concerned."""

    name: str
    labels: Mapping[str, str]
    requirements: RequirementSet
    """Exactly its labels."""
    taints: tuple[Taint, ...] = ()


class _Placement(msgspec.Struct, frozen=True):
    """A pod of the plan: counted again by every group that is made later."""

    shape: PodShape
    requirements: RequirementSet
    taints: tuple[Taint, ...]
    undefined: frozenset[str]


class TopologyDomains:
    """The rules about other pods of one planning."""

    def __init__(
        self,
        provided: Mapping[str, Mapping[str, list[tuple[Taint, ...]]]],
        nodes: Mapping[str, DomainNode],
        residents: Sequence[ResidentPod],
        namespace_labels: Mapping[str, Mapping[str, str]],
        excluded: Collection[str] = (),
    ) -> None:
        """`provided`: by label, the values that pools can provide, with the taints of each pool that can. `excluded`:
        nodes that are removed, and the pods on them.
        """
        self._provided = provided
        self._nodes = nodes
        self._excluded = excluded
        self._residents = residents
        self._namespace_labels = namespace_labels
        self._groups: dict[tuple[object, ...], TopologyGroup] = {}
        self._inverse: dict[tuple[object, ...], TopologyGroup] = {}
        self._owned: dict[int, tuple[TopologyGroup, ...]] = {}
        self._keep: list[PodVariant] = []
        self._hosts: list[str] = []
        self._placed: list[_Placement] = []
        self._selected: dict[tuple[int, int], bool] = {}
        self._inverse_of_shape: dict[int, tuple[TopologyGroup, ...]] = {}
        for resident in self._residents:
            if not resident.anti_affinity or resident.node in excluded:
                continue
            for term in resident.anti_affinity:
                group = self._inverse_group(term, resident.namespace, resident.labels)
                domain = self._domain(self._nodes[resident.node], group.key)
                if domain is not None:
                    group.add((domain,))

    @property
    def is_active(self) -> bool:
        """Whether any rule exists: most plannings have none."""
        return bool(self._groups or self._inverse)

    def watch(self, shape: PodShape) -> None:
        """A pod of this shape will be planned: the pods that its required anti-affinity selects keep away from it."""
        affinity = shape.first.spec.affinity
        apart = affinity.pod_anti_affinity if affinity is not None else None
        terms = apart.required if apart is not None else ()
        self._inverse_of_shape[shape.number] = tuple(
            self._inverse_group(term, shape.namespace, shape.labels) for term in terms
        )

    def add_host(self, name: str) -> None:
        """A planned node is a host of its own."""
        self._hosts.append(name)
        for group in (*self._groups.values(), *self._inverse.values()):
            if group.key == HOSTNAME_LABEL:
                group.register((name,))

    def forget_host(self, name: str) -> None:
        """A planned node was given up; no pod is on it."""
        self._hosts.remove(name)
        for group in (*self._groups.values(), *self._inverse.values()):
            if group.key == HOSTNAME_LABEL:
                group.counts.pop(name, None)

    def narrowed(
        self, shape: PodShape, variant: PodVariant, strict: RequirementSet, of_node: RequirementSet
    ) -> RequirementSet | None:
        """What the rules add to a node's requirements if it takes the pod; None where they do not allow it."""
        added: RequirementSet | None = None
        for group in (*self.owned(shape, variant), *self._against(shape)):
            key = group.key
            allowed = group.allowed(
                selects_pod=self._selects(group, shape),
                of_pod=strict.get(key) if key in strict else ANY,
                of_node=of_node.get(key),
            )
            if not allowed.values:
                return None
            added = (added or RequirementSet()).with_values(key, allowed)
            if not added.get(key).values:
                return None
        return RequirementSet() if added is None else added

    def concerns(self, shape: PodShape, variant: PodVariant) -> bool:
        """Whether any rule restricts the pod."""
        return not variant.is_topology_free or any(True for _ in self._against(shape))

    def counts(self, shape: PodShape) -> bool:
        """Whether rules of other pods count the pod."""
        return any(self._selects(group, shape) for group in self._groups.values())

    def record(
        self, shape: PodShape, requirements: RequirementSet, taints: tuple[Taint, ...], undefined: frozenset[str]
    ) -> Callable[[], None]:
        """The pod is on a node with these requirements; returns what undoes that."""
        placement = _Placement(shape, requirements, taints, undefined)
        self._placed.append(placement)
        undo: list[tuple[TopologyGroup, tuple[str, ...]]] = []
        for group in self._groups.values():
            domains = self._counted(group, placement)
            if domains:
                group.add(domains)
                undo.append((group, domains))
        for group in self._inverse_of_shape.get(shape.number, ()):
            domains = tuple(requirements.get(group.key).values) if not requirements.get(group.key).is_open else ()
            group.add(domains)
            undo.append((group, domains))

        def take_back() -> None:
            self._placed.remove(placement)
            for group, domains in undo:
                group.remove(domains)

        return take_back

    def owned(self, shape: PodShape, variant: PodVariant) -> tuple[TopologyGroup, ...]:
        """The groups of the pod's own rules."""
        groups = self._owned.get(id(variant))
        if groups is None:
            self._keep.append(variant)
            groups = self._owned[id(variant)] = tuple(self._made(shape, variant))
        return groups

    def _made(self, shape: PodShape, variant: PodVariant) -> Iterable[TopologyGroup]:
        for constraint in variant.spread:
            selector = _with_labels(constraint.label_selector, constraint.match_label_keys, shape.labels)
            terms = variant.filter_terms if constraint.node_affinity_policy == "Honor" else ()
            by_taints = constraint.node_taints_policy == "Honor"
            node_filter = NodeFilter(tuple(t for t in terms if len(t)), variant.tolerations, by_taints=by_taints)
            yield self._spread_group(shape, constraint, selector, node_filter)
        for kind, affinity in (
            (GroupKind.AFFINITY, variant.pod_affinity),
            (GroupKind.ANTI_AFFINITY, variant.anti_affinity),
        ):
            for term in affinity:
                yield self._term_group(self._groups, kind, term, shape.namespace, shape.labels)

    def _spread_group(
        self, shape: PodShape, constraint: TopologySpreadConstraint, selector: Selector, node_filter: NodeFilter
    ) -> TopologyGroup:
        key = current_label(constraint.topology_key)
        identity = (
            GroupKind.SPREAD,
            key,
            shape.namespace,
            selector,
            constraint.max_skew,
            constraint.min_domains,
            node_filter.identity,
        )
        group = self._groups.get(identity)
        if group is None:
            namespace = shape.namespace
            group = self._groups[identity] = TopologyGroup(
                GroupKind.SPREAD,
                key,
                lambda other: other == namespace,
                selector,
                max_skew=constraint.max_skew,
                min_domains=constraint.min_domains,
                node_filter=node_filter,
            )
            self._fill(group)
        return group

    def _inverse_group(self, term: PodAffinityTerm, namespace: str, labels: Mapping[str, str]) -> TopologyGroup:
        return self._term_group(self._inverse, GroupKind.ANTI_AFFINITY, term, namespace, labels, filled=False)

    def _term_group(
        self,
        groups: dict[tuple[object, ...], TopologyGroup],
        kind: GroupKind,
        term: PodAffinityTerm,
        namespace: str,
        labels: Mapping[str, str],
        *,
        filled: bool = True,
    ) -> TopologyGroup:
        selector = _with_labels(term.label_selector, term.match_label_keys, labels)
        selector = _without_labels(selector, term.mismatch_label_keys, labels)
        key = current_label(term.topology_key)
        own = namespace if not term.namespaces and term.namespace_selector is None else ""
        chosen = None if term.namespace_selector is None else term.namespace_selector.selector()
        identity = (kind, key, own, term.namespaces, chosen, selector)
        group = groups.get(identity)
        if group is None:
            group = groups[identity] = TopologyGroup(kind, key, self._namespaces(own, term, chosen), selector)
            self._register(group)
            if filled:
                self._fill(group)
        return group

    def _namespaces(self, own: str, term: PodAffinityTerm, chosen: Selector | None) -> Callable[[str], bool]:
        def selected(namespace: str) -> bool:
            if namespace == own or namespace in term.namespaces:
                return True
            labels = {"kubernetes.io/metadata.name": namespace, **self._namespace_labels.get(namespace, {})}
            return chosen is not None and chosen.matches(labels)

        return selected

    def _register(self, group: TopologyGroup) -> None:
        """All domains that exist or can be provided."""
        for domain, providers in self._provided.get(group.key, {}).items():
            if any(group.filter.tolerates(taints) for taints in providers):
                group.register((domain,))
        for name, node in self._nodes.items():
            if name not in self._excluded and group.filter.counts(node.requirements, node.taints):
                here = self._domain(node, group.key)
                group.register(() if here is None else (here,))
        if group.key == HOSTNAME_LABEL:
            group.register(self._hosts)

    def _fill(self, group: TopologyGroup) -> None:
        """Count the pods that are there."""
        self._register(group)
        for resident in self._residents:
            node = self._nodes[resident.node]
            home = self._domain(node, group.key)
            if home is None or node.name in self._excluded or not group.selects(resident.namespace, resident.labels):
                continue
            if group.filter.counts(node.requirements, node.taints):
                group.add((home,))
        for placement in self._placed:
            group.add(self._counted(group, placement))

    def _counted(self, group: TopologyGroup, placement: _Placement) -> tuple[str, ...]:
        """The domains in which the group counts a planned pod."""
        if not self._selects(group, placement.shape):
            return ()
        if not group.filter.counts(placement.requirements, placement.taints, placement.undefined):
            return ()
        admitted = placement.requirements.get(group.key)
        if admitted.is_open or (group.kind is not GroupKind.ANTI_AFFINITY and len(admitted.values) != 1):
            return ()
        return tuple(admitted.values)

    def _against(self, shape: PodShape) -> Iterable[TopologyGroup]:
        """The anti-affinity of others that selects the pod."""
        return [group for group in self._inverse.values() if self._selects(group, shape)]

    def _selects(self, group: TopologyGroup, shape: PodShape) -> bool:
        known = (id(group), shape.number)
        answer = self._selected.get(known)
        if answer is None:
            answer = self._selected[known] = group.selects(shape.namespace, shape.labels)
        return answer

    def _domain(self, node: DomainNode, key: str) -> str | None:
        domain = node.labels.get(key)
        return node.name if domain is None and key == HOSTNAME_LABEL else domain


def _with_labels(selector: LabelSelector | None, keys: tuple[str, ...], labels: Mapping[str, str]) -> Selector:
    chosen = selector_of(selector)
    if chosen.requirements is None:
        return chosen
    own = tuple(Requirement(key, "In", (labels[key],)) for key in keys if key in labels)
    return Selector((*chosen.requirements, *own))


def _without_labels(selector: Selector, keys: tuple[str, ...], labels: Mapping[str, str]) -> Selector:
    if selector.requirements is None:
        return selector
    own = tuple(Requirement(key, "NotIn", (labels[key],)) for key in keys if key in labels)
    return Selector((*selector.requirements, *own))


__all__ = ["EVERY_NODE", "DomainNode", "ResidentPod", "TopologyDomains"]
