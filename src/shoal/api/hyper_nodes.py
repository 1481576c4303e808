"""Volcano's HyperNode: nodes, or HyperNodes of a lower tier, that share a part of the network.

Members are found by name, by a pattern anywhere in the name, or by labels. Patterns have Go's syntax, as in Volcano.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.meta import ObjectMeta
from shoal.api.selectors import LabelSelector
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.linear_patterns import PatternError, compile_linear


class ExactMatch(ApiStruct, frozen=True):
    name: str


class RegexMatch(ApiStruct, frozen=True):
    pattern: str


class MemberSelector(ApiStruct, frozen=True):
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if self.exact_match is not None:
            return self.exact_match.name == name
        if self.regex_match is not None:
            return compile_linear(self.regex_match.pattern).occurs(name)
        return self.label_match is not None and self.label_match.matches(labels)

    def check(self, where: Where) -> None:
        given = [one for one in (self.exact_match, self.regex_match, self.label_match) if one is not None]
        if len(given) != 1:
            raise UserError("exactly one of exactMatch, regexMatch and labelMatch is required", where=where)
        if self.exact_match is not None and not self.exact_match.name:
            raise UserError("is required", where=where.below("exactMatch.name"))
        if self.regex_match is not None:
            pattern = self.regex_match.pattern
            if fault := pattern_fault(pattern):
                here = where.below("regexMatch.pattern")
                raise UserError(f"{excerpt(pattern)} is not a pattern: {fault}", where=here)
        if self.label_match is not None:
            self.label_match.check(where.below("labelMatch"))


class Member(ApiStruct, frozen=True):
    type: Literal["Node", "HyperNode"]
    selector: MemberSelector

    def is_node(self) -> bool:
        return self.type == "Node"


class HyperNodeSpec(ApiStruct, frozen=True):
    """A lower tier is a faster network."""

    tier: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    tier_name: str = ""
    members: tuple[Member, ...] = ()


class HyperNode(ApiStruct, frozen=True):
    spec: HyperNodeSpec
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


def check_hyper_node(node: HyperNode, where: Where) -> None:
    check_meta(node.metadata, where.below("metadata"))
    for index, member in enumerate(node.spec.members):
        member.selector.check(where.below(f"spec.members[{index}].selector"))


def pattern_fault(pattern: str) -> str:
    """Why Go would refuse it; empty if it would not."""
    if not pattern:
        return "it is empty"
    try:
        compile_linear(pattern)
    except PatternError as error:
        return str(error).removeprefix("error parsing regexp: ")
    return ""
