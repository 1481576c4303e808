"""Compiled expressions: the type of the result, a closure that evaluates it, and the highest cost of an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.kinds import CelType
from shoal.embedded.apiserver.cel.tree import AstNode

Scope = dict[str, Any]
Run = Callable[[Scope], Any]
MOST_COST = 2**62


class Code(msgspec.Struct, frozen=True):
    kind: CelType
    run: Run
    cost: int = 1


class NodeCompiler(Protocol):
    """The compiler, for the modules that compile one kind of node."""

    types: frozenset[str]
    variables: dict[str, CelType]
    mentioned: set[str]

    def code(self, node: AstNode) -> Code: ...

    def fault(self, node: AstNode, words: str) -> CelFault: ...
