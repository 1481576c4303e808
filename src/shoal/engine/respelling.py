"""Replaces labels that no node has by near ones, and keeps of the near ones those that leave a node.

A near label is a guess from its spelling. It is worth a word only if the rule, with it, admits a node.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from shoal.api.node_affinity import NodeRule
from shoal.api.requirement import Requirement
from shoal.engine.cluster import Cluster
from shoal.engine.filters.node_affinity import rule_holds
from shoal.engine.groups import GroupFacts, TopologyRequirement
from shoal.engine.unmatched import Unmatched, unmatched, untold_near


def unmatched_and_near(cluster: Cluster, rule: NodeRule) -> tuple[Unmatched, ...]:
    """The conditions of the rule that leave no node. Near labels are given only where the rule admits a node with
    them."""
    found = unmatched(cluster, rule)
    if not all(condition.near for condition in found):
        return untold_near(found)
    rows = cluster.alive[: cluster.rows].nonzero()[0]

    def leaves_a_node(at: int, near: str) -> bool:
        meant = (*found[:at], structs.replace(found[at], near=(near,)), *found[at + 1 :])
        return bool(rule_holds(cluster, respelt_rule(rule, meant), rows).any())

    return tuple(
        structs.replace(condition, near=tuple(near for near in condition.near if leaves_a_node(at, near)))
        for at, condition in enumerate(found)
    )


def respelt_rule(rule: NodeRule, labels: Sequence[Unmatched]) -> NodeRule:
    """With the first near label of each condition."""
    for label in labels:
        always = tuple(_respelt(each, label) for each in rule.always)
        terms = rule.terms
        if terms is not None:
            terms = tuple(
                structs.replace(term, match_expressions=tuple(_respelt(each, label) for each in term.match_expressions))
                for term in terms
            )
        rule = structs.replace(rule, always=always, terms=terms)
    return rule


def respelt_group(cluster: Cluster, facts: GroupFacts, labels: Sequence[Unmatched]) -> GroupFacts:
    """With the first near label instead of each topology level."""
    parts = tuple(
        structs.replace(part, requirement=respelt_requirement(cluster, part.requirement, labels))
        for part in facts.parts
    )
    requirement = respelt_requirement(cluster, facts.requirement, labels)
    return structs.replace(facts, requirement=requirement, parts=parts)


def respelt_requirement(
    cluster: Cluster, wish: TopologyRequirement, labels: Sequence[Unmatched]
) -> TopologyRequirement:
    """In the topology that has the levels, as the objects are read: its domains lie within those of wider levels."""
    names = {label.key: label.near[0] for label in labels if not label.has_key}
    meant = structs.replace(
        wish,
        required=names.get(wish.required, wish.required),
        preferred=names.get(wish.preferred, wish.preferred),
        slice_level=names.get(wish.slice_level, wish.slice_level),
    )
    if meant == wish:
        return wish
    levels = {level for level in (meant.required, meant.preferred, meant.slice_level) if level}
    return structs.replace(meant, topology=wish.topology or _topology_with(cluster, levels))


def _topology_with(cluster: Cluster, levels: set[str]) -> str:
    """Those of Kueue before those of others, by name; empty where none has them all."""
    found = (name for name, facts in cluster.topologies.items() if levels <= {*facts.levels})
    return min(found, key=lambda name: (not name.startswith("kueue/"), name), default="")


def _respelt(requirement: Requirement, label: Unmatched) -> Requirement:
    if requirement.key != label.key:
        return requirement
    if not label.has_key:
        return structs.replace(requirement, key=label.near[0])
    is_meant = tuple(requirement.values)[: len(label.values)] == label.values
    return structs.replace(requirement, values=(label.near[0],)) if is_meant else requirement
