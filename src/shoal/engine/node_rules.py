"""Combines the node conditions of a pod and of its profile, and finds the GPU models that they allow."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.node_affinity import NodeAffinity, NodeRule, NodeSelectorTerm, PreferredSchedulingTerm
from shoal.api.pod import PodSpec
from shoal.api.requirement import Requirement
from shoal.engine.cluster import GPU_MODEL_LABEL


def both_rules(rule: NodeRule, added: NodeAffinity | None) -> NodeRule:
    """The pod's rule and the profile's. Alternatives on both sides become every pair of them."""
    if added is None or added.required is None:
        return rule
    others = added.required.node_selector_terms
    if rule.terms is None:
        return NodeRule(rule.always, others)
    # A term without conditions matches nothing, and so does any pair that it is part of.
    pairs = [
        _joined(term, other) for term in rule.terms for other in others if not (term.is_empty() or other.is_empty())
    ]
    return NodeRule(rule.always, tuple(pairs))


def _joined(term: NodeSelectorTerm, other: NodeSelectorTerm) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        (*term.match_expressions, *other.match_expressions), (*term.match_fields, *other.match_fields)
    )


def preferred_terms(spec: PodSpec, added: NodeAffinity | None) -> tuple[PreferredSchedulingTerm, ...]:
    own = spec.affinity.node_affinity if spec.affinity is not None else None
    return tuple(term for affinity in (own, added) if affinity is not None for term in affinity.preferred)


def models_named(nodes: NodeRule) -> frozenset[str]:
    """GPU models that the rule comes down to; empty when it leaves the model open.

    The rule itself turns the other nodes away. This tells policies which demand is tied to a model.
    """
    always = _named_models(nodes.always)
    if nodes.terms is None:
        return always or frozenset()
    by_term = [_named_models((*nodes.always, *term.match_expressions)) for term in nodes.terms if not term.is_empty()]
    named = [models for models in by_term if models is not None]
    return frozenset().union(*named) if len(named) == len(by_term) else frozenset()


def _named_models(requirements: Iterable[Requirement]) -> frozenset[str] | None:
    """The models that pass all the requirements which list models; None when none does."""
    lists = [frozenset(r.values) for r in requirements if r.key == GPU_MODEL_LABEL and r.operator == "In"]
    return frozenset.intersection(*lists) if lists else None
