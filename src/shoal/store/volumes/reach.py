"""Computes from which nodes a pod's claims can be used, as one rule about nodes.

Each claim gives alternatives (the affinity of its volume; the affinities of suitable volumes; the topologies in which
one can be provisioned), and the rule is that one alternative of every claim holds. That is exact for one unbound claim.
Two unbound claims may compete for the same volume: then nodes are checked one by one (`VolumeNeeds.wanted`) and the
rule names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from shoal.api.node_affinity import NAME_FIELD, NodeAffinity, NodeSelector, NodeSelectorTerm
from shoal.api.requirement import Requirement
from shoal.client.volumes.matching import NO_PROVISIONER, serving
from shoal.client.volumes.needs import SELECTED_NODE, Needed, VolumeNeeds
from shoal.client.volumes.values import StorageClass, Volume, VolumeClaim

Terms = tuple[NodeSelectorTerm, ...] | None
"""Alternatives; None: every node."""
Places = Callable[[], Iterable[tuple[str, dict[str, str]]]]
"""All nodes and their labels."""


def rule_of(needs: VolumeNeeds, needed: Needed, places: Places) -> NodeAffinity | None:
    """The suitable nodes: None means all, and a rule without terms means none."""
    found = [_of_volume(volume) for _, volume in needed.bound if volume is not None]
    found += [_of_claim(needs, claim) for claim in needed.waiting]
    if _may_collide(needs, needed.waiting):
        found.append(_named(name for name, labels in places() if needs.wanted(needed, name, labels) is not None))
    terms = _all_of([one for one in dict.fromkeys(found) if one is not None])
    return None if terms is None else NodeAffinity(NodeSelector(terms))


def _may_collide(needs: VolumeNeeds, waiting: list[VolumeClaim]) -> bool:
    """Whether several claims can choose among existing volumes."""
    choosing = [claim for claim in waiting if SELECTED_NODE not in claim.metadata.annotations]
    return len(choosing) > 1 and sum(bool(serving(claim, needs.free(claim))) for claim in choosing) > 1


def _of_volume(volume: Volume) -> Terms:
    affinity = volume.spec.node_affinity
    return None if affinity is None or affinity.required is None else affinity.required.node_selector_terms


def _of_claim(needs: VolumeNeeds, claim: VolumeClaim) -> Terms:
    selected = claim.metadata.annotations.get(SELECTED_NODE)
    if selected is not None:
        return _named([selected])
    terms: list[NodeSelectorTerm] = []
    for volume in serving(claim, needs.free(claim)):
        own = _of_volume(volume)
        if own is None:
            return None
        terms += own
    made = _of_class(needs.class_of(claim))
    return None if made is None else _merged([*terms, *made])


def _of_class(storage_class: StorageClass | None) -> Terms:
    """The topologies in which a volume can be provisioned."""
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return ()
    if not storage_class.allowed_topologies:
        return None
    terms = []
    for topology in storage_class.allowed_topologies:
        if not topology.match_label_expressions:
            return None
        terms.append(
            NodeSelectorTerm(tuple(Requirement(one.key, "In", one.values) for one in topology.match_label_expressions))
        )
    return tuple(terms)


def _named(nodes: Iterable[str]) -> tuple[NodeSelectorTerm, ...]:
    return tuple(NodeSelectorTerm(match_fields=(Requirement(NAME_FIELD, "In", (node,)),)) for node in nodes)


def _merged(terms: Iterable[NodeSelectorTerm]) -> tuple[NodeSelectorTerm, ...]:
    """Thousands of local volumes differ in the name of their node only: terms of one `In` on one label are merged."""
    values: dict[str, dict[str, None]] = {}
    others: dict[NodeSelectorTerm, None] = {}
    for term in terms:
        only = term.match_expressions[0] if len(term.match_expressions) == 1 and not term.match_fields else None
        if only is not None and only.operator == "In":
            values.setdefault(only.key, {}).update(dict.fromkeys(only.values))
        elif not term.is_empty():
            others[term] = None
    joined = (NodeSelectorTerm((Requirement(key, "In", tuple(sorted(each))),)) for key, each in sorted(values.items()))
    return (*joined, *others)


def _all_of(rules: list[tuple[NodeSelectorTerm, ...]]) -> Terms:
    """Every combination of one alternative each."""
    if not rules:
        return None
    usable = [[term for term in terms if not term.is_empty()] for terms in rules]
    found: dict[NodeSelectorTerm, None] = {}
    for combination in product(*usable):
        expressions = dict.fromkeys(each for term in combination for each in term.match_expressions)
        fields = dict.fromkeys(each for term in combination for each in term.match_fields)
        found[NodeSelectorTerm(tuple(expressions), tuple(fields))] = None
    return tuple(found)
