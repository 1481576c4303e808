"""One expression, compiled: what definitions, policies and match conditions keep and evaluate.

What does not compile is refused with CEL's own complaint; nothing is left to be ignored later. An evaluation is
bounded: it counts its steps and stops when they are more than a request may cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.cel.compiler import Compiler
from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.kinds import CelType
from shoal.embedded.apiserver.cel.tree import parse

PER_CALL_LIMIT = 1_000_000
"""Steps of one evaluation."""
BUDGET = 10_000_000
"""Steps of all rules over one object."""

MUTATING = frozenset({"Object", "JSONPatch"})
_WORDS = {"bool": "bool", "string": "string"}


class CelProgram:
    """Made by `compile_expression`."""

    __slots__ = ("_run", "cost", "kind", "names", "text")

    def __init__(self, text: str, run: Any, kind: CelType, names: frozenset[str], cost: int) -> None:
        self.text = text
        self._run = run
        self.kind = kind
        self.names = names
        """The variables it mentions."""
        self.cost = cost
        """The most that it may take, estimated from the bounds of what it reads."""

    def evaluate(self, bindings: Mapping[str, Any]) -> Any:
        """The value; a CelFault where there is none."""
        return self.measured(bindings)[0]

    def measured(self, bindings: Mapping[str, Any], limit: int = PER_CALL_LIMIT) -> tuple[Any, int]:
        """The value and the steps it took."""
        scope: dict[str, Any] = dict(bindings)
        scope["@left"] = limit
        try:
            value = self._run(scope)
        except RecursionError as error:
            raise CelFault("the expression is nested too deeply") from error
        return value, limit - scope["@left"]


def compile_expression(
    text: str, variables: Mapping[str, str | CelType], result: str = "bool", types: frozenset[str] = frozenset()
) -> CelProgram:
    """A program over variables of given kinds. `result` is bool, string or any; `types` are those it may make objects
    of (`MUTATING`)."""
    kinds = {name: kind if isinstance(kind, CelType) else CelType(kind) for name, kind in variables.items()}
    compiler = Compiler(parse(text), kinds, types)
    try:
        code = compiler.compiled()
    except RecursionError as error:
        raise CelFault("the expression is nested too deeply") from error
    if result in _WORDS and code.kind.name not in (result, "dyn"):
        raise CelFault(f"cel expression must evaluate to a {_WORDS[result]}")
    return CelProgram(text, code.run, code.kind, frozenset(compiler.mentioned), code.cost)
