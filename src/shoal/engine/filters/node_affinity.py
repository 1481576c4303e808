"""Filters nodes by nodeSelector and required node affinity, evaluated over label columns.

The selector's requirements must all hold, and at least one affinity term. An empty list of terms, or an empty term,
matches no node: that is Kubernetes' rule, however surprising.
"""

from __future__ import annotations

import numpy as np

from shoal.api.node_affinity import NodeRule, NodeSelectorTerm
from shoal.api.requirement import Requirement
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters.rule import Rows, Verdicts
from shoal.engine.reasons import Code


class NodeAffinity:
    code = Code.AFFINITY

    def passes(self, cluster: Cluster, ask: Ask, rows: Rows) -> Verdicts | None:
        return None if ask.nodes.is_anywhere() else rule_holds(cluster, ask.nodes, rows)

    def detail(self, _cluster: Cluster, _ask: Ask, _row: int) -> str:
        return ""


def rule_holds(cluster: Cluster, rule: NodeRule, rows: Rows) -> Verdicts:
    """Which rows satisfy the selector and one of the terms."""
    verdicts = np.ones(len(rows), np.bool_)
    for requirement in rule.always:
        verdicts &= cluster.labels.satisfies(requirement, rows)
    if rule.terms is not None:
        some_term = np.zeros(len(rows), np.bool_)
        for term in rule.terms:
            some_term |= term_holds(cluster, term, rows)
        verdicts &= some_term
    return verdicts


def term_holds(cluster: Cluster, term: NodeSelectorTerm, rows: Rows) -> Verdicts:
    """Which rows satisfy every requirement of one term."""
    if term.is_empty():
        return np.zeros(len(rows), np.bool_)
    verdicts = np.ones(len(rows), np.bool_)
    for requirement in term.match_expressions:
        verdicts &= cluster.labels.satisfies(requirement, rows)
    for requirement in term.match_fields:
        verdicts &= _name_holds(cluster, requirement, rows)
    return verdicts


def _name_holds(cluster: Cluster, requirement: Requirement, rows: Rows) -> Verdicts:
    named = [cluster.row_of[value] for value in requirement.values if value in cluster.row_of]
    among: Verdicts = np.isin(rows, named)
    return among if requirement.operator == "In" else ~among
