"""Weakens what a pod prefers, one preference at a time, in the order in which Karpenter gives them up.

A preference is treated as required until it proves impossible. Dropped are in turn: the first of several alternative
required node terms, the heaviest preferred pod affinity, the heaviest preferred pod anti-affinity, the heaviest
preferred node term, a spread constraint that allows scheduling anyway; at last taints of effect PreferNoSchedule are
tolerated, where some pool has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from shoal.api.affinity import Affinity, PodAffinity
from shoal.api.node_affinity import NodeAffinity, NodeSelector
from shoal.api.pod import PodSpec
from shoal.api.taints import Toleration

_TOLERATES_SOFT_TAINTS: Final = Toleration(operator="Exists", effect="PreferNoSchedule")


def relaxed(spec: PodSpec, *, has_soft_taints: bool) -> PodSpec | None:
    """The pod with one preference less; None if it has none left."""
    for step in _STEPS:
        weaker = step(spec)
        if weaker is not None:
            return weaker
    if has_soft_taints and _TOLERATES_SOFT_TAINTS not in spec.tolerations:
        return replace(spec, tolerations=(*spec.tolerations, _TOLERATES_SOFT_TAINTS))
    return None


def without_preferences(spec: PodSpec) -> PodSpec:
    """The pod with what it requires only."""
    hard = tuple(each for each in spec.topology_spread_constraints if each.is_hard())
    spec = replace(spec, topology_spread_constraints=hard)
    affinity = spec.affinity
    if affinity is None:
        return spec
    node, near, apart = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
    return replace(
        spec,
        affinity=Affinity(
            node_affinity=None if node is None else replace(node, **_NO_NODE_TERMS),
            pod_affinity=None if near is None else replace(near, **_NO_NODE_TERMS),
            pod_anti_affinity=None if apart is None else replace(apart, **_NO_NODE_TERMS),
        ),
    )


_NO_NODE_TERMS: Final[dict[str, tuple[()]]] = {"preferred_during_scheduling_ignored_during_execution": ()}


def _required_node_term(spec: PodSpec) -> PodSpec | None:
    node = spec.affinity.node_affinity if spec.affinity is not None else None
    if node is None or node.required is None or len(node.required.node_selector_terms) < 2:
        return None
    selector = NodeSelector(node.required.node_selector_terms[1:])
    return _with_node(spec, replace(node, required_during_scheduling_ignored_during_execution=selector))


def _preferred_node_term(spec: PodSpec) -> PodSpec | None:
    node = spec.affinity.node_affinity if spec.affinity is not None else None
    if node is None or not node.preferred:
        return None
    left = sorted(node.preferred, key=lambda term: -term.weight)[1:]
    return _with_node(spec, replace(node, preferred_during_scheduling_ignored_during_execution=tuple(left)))


def _with_node(spec: PodSpec, node: NodeAffinity) -> PodSpec:
    assert spec.affinity is not None  # noqa: S101 - the callers' case
    return replace(spec, affinity=replace(spec.affinity, node_affinity=node))


def _preferred_affinity(spec: PodSpec) -> PodSpec | None:
    affinity = spec.affinity
    weaker = _weaker(affinity.pod_affinity) if affinity is not None else None
    if affinity is None or weaker is None:
        return None
    return replace(spec, affinity=replace(affinity, pod_affinity=weaker))


def _preferred_anti_affinity(spec: PodSpec) -> PodSpec | None:
    affinity = spec.affinity
    weaker = _weaker(affinity.pod_anti_affinity) if affinity is not None else None
    if affinity is None or weaker is None:
        return None
    return replace(spec, affinity=replace(affinity, pod_anti_affinity=weaker))


def _weaker(affinity: PodAffinity | None) -> PodAffinity | None:
    if affinity is None or not affinity.preferred:
        return None
    left = sorted(affinity.preferred, key=lambda term: -term.weight)[1:]
    return replace(affinity, preferred_during_scheduling_ignored_during_execution=tuple(left))


def _soft_spread(spec: PodSpec) -> PodSpec | None:
    constraints = spec.topology_spread_constraints
    for index, constraint in enumerate(constraints):
        if not constraint.is_hard():
            return replace(spec, topology_spread_constraints=(*constraints[:index], *constraints[index + 1 :]))
    return None


_STEPS: Final[tuple[Callable[[PodSpec], PodSpec | None], ...]] = (
    _required_node_term,
    _preferred_affinity,
    _preferred_anti_affinity,
    _preferred_node_term,
    _soft_spread,
)
