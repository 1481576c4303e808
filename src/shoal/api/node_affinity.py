"""Node selectors and node affinity of pods, required and preferred.

Terms are alternatives, the conditions inside one term all must hold, and a term without conditions matches
no node (not every node, as for label selectors). `NodeRule` gathers the hard part of a pod as plain
requirements, for an engine that evaluates them over columns; `matches` gives the same answer for one node
and is the oracle in tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from shoal.api.requirement import Requirement
from shoal.api.selectors import check_labels
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where

NAME_FIELD = "metadata.name"


class NodeSelectorTerm(ApiStruct, frozen=True):
    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()

    def is_empty(self) -> bool:
        return not self.match_expressions and not self.match_fields

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if self.is_empty():
            return False
        fields = {NAME_FIELD: name}
        return all(r.matches(labels) for r in self.match_expressions) and all(
            r.matches(fields) for r in self.match_fields
        )

    def check(self, where: Where) -> None:
        for index, requirement in enumerate(self.match_expressions):
            requirement.check(where.below(f"matchExpressions[{index}]"), numeric=True)
        for index, requirement in enumerate(self.match_fields):
            _check_field(requirement, where.below(f"matchFields[{index}]"))


class NodeSelector(ApiStruct, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...]

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        return any(term.matches(name, labels) for term in self.node_selector_terms)

    def check(self, where: Where) -> None:
        if not self.node_selector_terms:
            raise UserError("must have at least one node selector term", where=where.below("nodeSelectorTerms"))
        for index, term in enumerate(self.node_selector_terms):
            term.check(where.below(f"nodeSelectorTerms[{index}]"))


class PreferredSchedulingTerm(ApiStruct, frozen=True):
    weight: Annotated[int, Meta(ge=1, le=100)]
    preference: NodeSelectorTerm


class NodeAffinity(ApiStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()

    @property
    def required(self) -> NodeSelector | None:
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[PreferredSchedulingTerm, ...]:
        return self.preferred_during_scheduling_ignored_during_execution

    def check(self, where: Where) -> None:
        if self.required is not None:
            self.required.check(where.below("requiredDuringSchedulingIgnoredDuringExecution"))
        for index, term in enumerate(self.preferred):
            step = f"preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
            term.preference.check(where.below(step))


class NodeRule(ApiStruct, frozen=True):
    """What a pod demands of a node: every `always` requirement, and one of the terms unless `anywhere`."""

    always: tuple[Requirement, ...] = ()
    terms: tuple[NodeSelectorTerm, ...] | None = None

    def is_anywhere(self) -> bool:
        return not self.always and self.terms is None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if not all(r.matches(labels) for r in self.always):
            return False
        return self.terms is None or any(term.matches(name, labels) for term in self.terms)


def node_rule(node_selector: Mapping[str, str], affinity: NodeAffinity | None) -> NodeRule:
    """The hard part of both spellings; equal demands come out equal whatever the order of their labels."""
    always = tuple(Requirement(key, "In", (value,)) for key, value in sorted(node_selector.items()))
    required = affinity.required if affinity is not None else None
    return NodeRule(always, None if required is None else required.node_selector_terms)


def check_node_selector(node_selector: Mapping[str, str], where: Where) -> None:
    check_labels(node_selector, where)


def _check_field(requirement: Requirement, where: Where) -> None:
    if requirement.key != NAME_FIELD:
        raise UserError(f"only {NAME_FIELD} can be matched as a field", where=where.below("key"))
    if requirement.operator not in {"In", "NotIn"}:
        raise UserError("a field is matched with In or NotIn only", where=where.below("operator"))
    if len(requirement.values) != 1:
        raise UserError("must have exactly one value", where=where.below("values"))
