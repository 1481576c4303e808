"""Reads which capacity type a workload states: on-demand, spot or reserved, by a label or an annotation.

The pod states it, or its PriorityClass for all pods of the class; what the pod states goes first. It is a requirement
in plans, or a preference where `shoal.dev/capacity-type-fallback` is true on the same object. A node selector or a
required node affinity of the pod for the capacity type replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from shoal.api.affinity import Affinity
from shoal.api.meta import ObjectMeta
from shoal.api.node_affinity import NodeAffinity, NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from shoal.api.pod import Pod, PodSpec
from shoal.api.requirement import Requirement
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL

FALLBACK: Final = "shoal.dev/capacity-type-fallback"


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


def with_stated_capacity(pod: Pod, classes: Mapping[str, StatedCapacity]) -> Pod:
    """The pod with what it or its PriorityClass states as affinity. `classes`: by the names of PriorityClasses."""
    stated = stated_capacity(pod.metadata) or classes.get(pod.spec.priority_class_name)
    if stated is None or _selects(pod.spec):
        return pod
    affinity = pod.spec.affinity or Affinity()
    wanted = Requirement(CAPACITY_TYPE_LABEL, "In", stated.types)
    added = (_preferring if stated.is_preferred else _requiring)(affinity.node_affinity or NodeAffinity(), wanted)
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=added)))


def _selects(spec: PodSpec) -> bool:
    """Whether the pod itself says on which capacity type it runs."""
    node = spec.affinity.node_affinity if spec.affinity is not None else None
    terms = node.required.node_selector_terms if node is not None and node.required is not None else ()
    named = {each.key for term in terms for each in term.match_expressions}
    return CAPACITY_TYPE_LABEL in spec.node_selector or CAPACITY_TYPE_LABEL in named


def _requiring(node: NodeAffinity, wanted: Requirement) -> NodeAffinity:
    terms = node.required.node_selector_terms if node.required is not None else (NodeSelectorTerm(),)
    both = tuple(replace(term, match_expressions=(*term.match_expressions, wanted)) for term in terms)
    return replace(node, required_during_scheduling_ignored_during_execution=NodeSelector(both))


def _preferring(node: NodeAffinity, wanted: Requirement) -> NodeAffinity:
    term = PreferredSchedulingTerm(100, NodeSelectorTerm((wanted,)))
    return replace(node, preferred_during_scheduling_ignored_during_execution=(term, *node.preferred))
