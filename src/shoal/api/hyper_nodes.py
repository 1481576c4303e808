"""Volcano's HyperNode: nodes, or HyperNodes of a lower tier, that share a part of the network.

Members are found by name, by a pattern anywhere in the name, or by labels. Patterns are Go's there and
Python's here: what the two would read differently is refused, so a pattern that is accepted means the same in
both.

Rejected: a Go-compatible pattern library. Names of nodes need a corner of the language, and the corner is
shared.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.meta import ObjectMeta
from shoal.api.selectors import LabelSelector
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

# A set of characters is one piece, so that what stands inside it is taken for nothing else.
_PIECE = re.compile(
    r"\\(?P<escape>.)|\[\^?\]?(?:\\.|\[:(?P<posix>)|[^\]\\])*\]"
    r"|(?P<group>\(\?)(?P<form>:|P<\w+>|[ims]+[:)]|-[ims]+:|[ims]+-[ims]+:)?|(?P<possessive>[*+?}]\+)|.",
    re.DOTALL,
)
_ESCAPES_OF_PYTHON = frozenset("123456789ZuUN")


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
            return _compiled(self.regex_match.pattern).search(name) is not None
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


@lru_cache(maxsize=1024)
def pattern_fault(pattern: str) -> str:
    """What keeps a pattern from meaning the same in Go and in Python."""
    if not pattern:
        return "it is empty"
    for piece in _PIECE.finditer(pattern):
        if piece["posix"] is not None:
            return "classes such as [:alpha:] are not supported here, write [a-z]"
        if piece["possessive"] or (piece["group"] and not piece["form"]):
            return f"{excerpt(piece[0])} at character {piece.start() + 1} is not supported"
        if piece["escape"] and piece["escape"] in _ESCAPES_OF_PYTHON:
            return f"{excerpt(piece[0])} at character {piece.start() + 1} is not supported"
    try:
        with warnings.catch_warnings():
            # Python warns of sets such as [a&&b] that it may one day read otherwise.
            warnings.simplefilter("error", FutureWarning)
            _compiled(pattern)
    except RecursionError:
        return "it is nested too deeply"
    except (re.error, FutureWarning, OverflowError) as error:
        return str(error)
    return ""


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)
