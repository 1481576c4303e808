"""Reads which capacity type a workload states: on-demand, spot or reserved, by a label or an annotation.

The pod states it, or its PriorityClass for all pods of the class; what the pod states goes first. It is a requirement
in plans and for the scheduler, or a preference where `shoal.dev/capacity-type-fallback` is true on the same object. A
node selector or a required node affinity of the pod for the capacity type replaces it.

New nodes have the label `karpenter.sh/capacity-type`. Nodes that exist may have the label of their cloud instead, and
one without any of them counts as on-demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from shoal.api.affinity import Affinity
from shoal.api.disruption import PriorityClass
from shoal.api.meta import ObjectMeta
from shoal.api.node_affinity import NodeAffinity, NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from shoal.api.pod import Pod, PodSpec
from shoal.api.requirement import Requirement

CAPACITY_TYPE_LABEL: Final = "karpenter.sh/capacity-type"
FALLBACK: Final = "shoal.dev/capacity-type-fallback"
_ON_DEMAND: Final = "on-demand"
_OF_CLOUDS: Final = {
    "spot": (
        Requirement("eks.amazonaws.com/capacityType", "In", ("SPOT",)),
        Requirement("cloud.google.com/gke-spot", "In", ("true",)),
        Requirement("cloud.google.com/gke-preemptible", "In", ("true",)),
        Requirement("kubernetes.azure.com/scalesetpriority", "In", ("spot",)),
    ),
    "reserved": (Requirement("eks.amazonaws.com/capacityType", "In", ("CAPACITY_BLOCK",)),),
}
"""The labels of nodes that Karpenter did not make, by capacity type."""
_UNLABELLED: Final = Requirement(CAPACITY_TYPE_LABEL, "DoesNotExist")
_KEYS: Final = frozenset({CAPACITY_TYPE_LABEL, *(one.key for each in _OF_CLOUDS.values() for one in each)})

Alternative = tuple[Requirement, ...]
"""Of which all must hold."""


class StatedCapacity(msgspec.Struct, frozen=True):
    types: tuple[str, ...]
    is_preferred: bool = False
    """Whether another capacity type will do where there is none of these."""


def stated_capacity(meta: ObjectMeta) -> StatedCapacity | None:
    """What the object states; None if it states nothing. Several types are separated by commas."""
    text = meta.annotations.get(CAPACITY_TYPE_LABEL) or meta.labels.get(CAPACITY_TYPE_LABEL, "")
    types = tuple(sorted({each.strip() for each in text.split(",")} - {""}))
    if not types:
        return None
    return StatedCapacity(types, "true" in (meta.annotations.get(FALLBACK), meta.labels.get(FALLBACK)))


def stated_by_classes(classes: Iterable[PriorityClass]) -> dict[str, StatedCapacity]:
    """By the names of the PriorityClasses that state a capacity type for their pods."""
    return {each.metadata.name: stated for each in classes if (stated := stated_capacity(each.metadata)) is not None}


def with_stated_capacity(pod: Pod, classes: Mapping[str, StatedCapacity]) -> Pod:
    """The pod with what it or its PriorityClass states as affinity to nodes that are provisioned. `classes`: by the
    names of PriorityClasses."""
    stated = stated_capacity(pod.metadata) or classes.get(pod.spec.priority_class_name)
    if stated is None:
        return pod
    return _on(pod, stated, [(Requirement(CAPACITY_TYPE_LABEL, "In", stated.types),)])


def on_stated_capacity(pod: Pod, classes: Mapping[str, StatedCapacity]) -> Pod:
    """The same with affinity to any nodes that exist, by the labels of their cloud."""
    stated = stated_capacity(pod.metadata) or classes.get(pod.spec.priority_class_name)
    return pod if stated is None else _on(pod, stated, _alternatives(stated.types))


def _alternatives(types: Sequence[str]) -> list[Alternative]:
    """One of these holds for a node of one of the capacity types, and no two of them."""
    found: list[Alternative] = [(Requirement(CAPACITY_TYPE_LABEL, "In", tuple(types)),)]
    found += [(_UNLABELLED, one) for name in types for one in _OF_CLOUDS.get(name, ())]
    if _ON_DEMAND in types:
        others = [one for each in _OF_CLOUDS.values() for one in each]
        found.append((_UNLABELLED, *(replace(one, operator="NotIn") for one in others)))
    return found


def is_by_cloud_label(term: NodeSelectorTerm) -> bool:
    """Whether the term repeats a stated capacity type for nodes with the label of their cloud."""
    of_cloud = _KEYS - {CAPACITY_TYPE_LABEL}
    return _UNLABELLED in term.match_expressions and any(each.key in of_cloud for each in term.match_expressions)


def _on(pod: Pod, stated: StatedCapacity, alternatives: Sequence[Alternative]) -> Pod:
    if _selects(pod.spec):
        return pod
    affinity = pod.spec.affinity or Affinity()
    added = (_preferring if stated.is_preferred else _requiring)(affinity.node_affinity or NodeAffinity(), alternatives)
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=added)))


def _selects(spec: PodSpec) -> bool:
    """Whether the pod itself says on which capacity type it runs."""
    node = spec.affinity.node_affinity if spec.affinity is not None else None
    terms = node.required.node_selector_terms if node is not None and node.required is not None else ()
    named = {each.key for term in terms for each in term.match_expressions}
    return not _KEYS.isdisjoint({*spec.node_selector, *named})


def _requiring(node: NodeAffinity, alternatives: Sequence[Alternative]) -> NodeAffinity:
    terms = node.required.node_selector_terms if node.required is not None else (NodeSelectorTerm(),)
    both = tuple(
        # A term of the pod without conditions matches no node.
        term
        if node.required is not None and term.is_empty()
        else replace(term, match_expressions=(*term.match_expressions, *each))
        for term in terms
        for each in alternatives
    )
    return replace(node, required_during_scheduling_ignored_during_execution=NodeSelector(both))


def _preferring(node: NodeAffinity, alternatives: Sequence[Alternative]) -> NodeAffinity:
    terms = (PreferredSchedulingTerm(100, NodeSelectorTerm(each)) for each in alternatives)
    return replace(node, preferred_during_scheduling_ignored_during_execution=(*terms, *node.preferred))
