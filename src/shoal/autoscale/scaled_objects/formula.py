"""Reads and evaluates the formula of scalingModifiers: the part of the expr language that such formulas use.

A formula is read once into nested functions and then evaluated with the values of the triggers, of which each may be
nil. It can do nothing but compute: there are no attributes, no calls but those in `formula_functions.py`, and no loops
except over lists that the formula itself writes. Rejected: Python's `eval`, whatever is removed from its names.

    formula     = "let" name "=" formula ";" formula
                / "if" formula "{" formula "}" "else" "{" formula "}"
                / binary [ "?" [ formula ] ":" formula ]
    binary      = operands joined by || && == != < <= > >= in + - * / % ** ^ ??, which bind as in expr
    operand     = number / text / name / "nil" / "true" / "false" / "#" / list / call / "(" formula ")"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from shoal.autoscale.scaled_objects.formula_functions import (
    BINARY,
    FUNCTIONS,
    NEGATIONS,
    PREDICATES,
    Expression,
    FormulaError,
    Value,
    as_truth,
    to_float,
)

_TOKEN = re.compile(
    r"(?P<number>[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<text>\"[^\"\\]*\"|'[^'\\]*')|(?P<symbol>\*\*|\?\?|\|\||&&|[=!<>]=|[-+*/%^<>!?:,;(){}\[\]#=])|(?P<blank>\s+)"
)
_LONGEST = 4096
_DEEPEST = 50
_END = ("end", "", 0)
_RIGHT = frozenset({"**", "^"})
_BINDING = {
    **dict.fromkeys(("or", "||"), 10),
    **dict.fromkeys(("and", "&&"), 15),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 20),
    **dict.fromkeys(("+", "-"), 30),
    **dict.fromkeys(("*", "/", "%"), 60),
    **dict.fromkeys(("**", "^"), 100),
    "??": 500,
}
_UNARY = {"not": 50, "!": 50, "-": 90, "+": 90}
_WORDS = frozenset({"or", "and", "not", "in", "let", "if", "else"})
_CONSTANTS: Mapping[str, Value] = {"nil": None, "true": True, "false": False}
Token = tuple[str, str, int]


class Formula:
    """A formula whose names are all known."""

    def __init__(self, text: str, names: Collection[str]) -> None:
        self._text = text
        self._run = _FormulaParser(text, names).formula()

    def evaluate(self, values: Mapping[str, Value]) -> float | None:
        """`None` only of a formula with `??`, if the values that it falls back to are nil as well."""
        found = self._run(values)
        if found is None and "??" in self._text:
            return None
        if not self._text.startswith("float(") or "??" in self._text:
            return to_float(found)
        if not isinstance(found, float):
            raise FormulaError(f"formula returned non-float result {found!r}")
        return found


class _FormulaParser:
    def __init__(self, text: str, names: Collection[str]) -> None:
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0
        self._names = set(names)
        self._predicates = 0

    def formula(self) -> Expression:
        found = self._expression()
        kind, word, place = self._peek()
        if kind != "end":
            raise FormulaError(f"unexpected token {word!r} (1:{place + 1})")
        return found

    # -- expressions ------------------------------------------------------------------------------------------------

    def _expression(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise FormulaError(f"the formula is nested more than {_DEEPEST} deep")
        try:
            if self._skip("let"):
                return self._let()
            if self._skip("if"):
                return self._if()
            return self._choice(self._binary(0))
        finally:
            self._depth -= 1

    def _let(self) -> Expression:
        name = self._name()
        self._expect("=")
        value = self._expression()
        self._expect(";")
        is_new = name not in self._names
        self._names.add(name)
        body = self._expression()
        if is_new:
            self._names.discard(name)
        return lambda values: body({**values, name: value(values)})

    def _if(self) -> Expression:
        condition = self._expression()
        yes = self._block()
        self._expect("else")
        return _chosen(condition, yes, self._block())

    def _block(self) -> Expression:
        self._expect("{")
        found = self._expression()
        self._expect("}")
        return found

    def _choice(self, condition: Expression) -> Expression:
        if not self._skip("?"):
            return condition
        yes = condition if self._peek()[1] == ":" else self._expression()
        self._expect(":")
        return _chosen(condition, yes, self._expression())

    def _binary(self, least: int) -> Expression:
        left = self._unary()
        while True:
            _, word, _ = self._peek()
            is_negated = word == "not" and self._tokens[self._next + 1][1] == "in"
            binding = _BINDING["in"] if is_negated else _BINDING.get(word, -1)
            if self._peek()[0] in ("text", "end") or binding < max(least, 0):
                return left
            self._next += 2 if is_negated else 1
            right = self._binary(binding if word in _RIGHT else binding + 1)
            left = _joined(word, left, right) if not is_negated else _negated("not", _joined("in", left, right))

    def _unary(self) -> Expression:
        kind, word, _ = self._peek()
        if kind != "text" and word in _UNARY:
            self._next += 1
            self._depth += 1
            if self._depth > _DEEPEST:
                raise FormulaError(f"the formula is nested more than {_DEEPEST} deep")
            operand = self._binary(_UNARY[word])
            self._depth -= 1
            return _negated(word, operand)
        return self._operand()

    # -- operands ---------------------------------------------------------------------------------------------------

    def _operand(self) -> Expression:
        kind, word, place = self._peek()
        self._next += 1
        if kind == "number":
            return _constant(_number(word))
        if kind == "text":
            return _constant(word[1:-1])
        if kind == "name" and word not in _WORDS:
            return self._named(word, place)
        if word == "(":
            found = self._expression()
            self._expect(")")
            return found
        if word == "[":
            return self._list()
        if word == "#" and self._predicates:
            return _variable("#")
        raise FormulaError(f"unexpected token {word or 'end of formula'!r} (1:{place + 1})")

    def _named(self, word: str, place: int) -> Expression:
        if self._skip("("):
            if word in PREDICATES:
                return self._predicate(word)
            if word in FUNCTIONS:
                return _called(FUNCTIONS[word], self._arguments(")"))
            raise FormulaError(f"unknown name {word} (1:{place + 1})")
        if word in _CONSTANTS:
            return _constant(_CONSTANTS[word])
        if word not in self._names:
            raise FormulaError(f"unknown name {word} (1:{place + 1})")
        return _variable(word)

    def _predicate(self, word: str) -> Expression:
        """`count(list, {# > 1})`: the second part is evaluated for each value of the list."""
        listed = self._expression()
        if word in FUNCTIONS and self._skip(")"):
            return _called(FUNCTIONS[word], [listed])
        self._expect(",")
        self._predicates += 1
        each = self._block() if self._peek()[1] == "{" else self._expression()
        self._predicates -= 1
        self._expect(")")
        apply = PREDICATES[word]
        return lambda values: apply(listed(values), lambda one: each({**values, "#": one}))

    def _list(self) -> Expression:
        items = self._arguments("]")
        return lambda values: tuple(item(values) for item in items)

    def _arguments(self, end: str) -> list[Expression]:
        found: list[Expression] = []
        while not self._skip(end):
            if found:
                self._expect(",")
            found.append(self._expression())
        return found

    # -- tokens -----------------------------------------------------------------------------------------------------

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _skip(self, word: str) -> bool:
        kind, found, _ = self._peek()
        if kind in ("text", "end") or found != word:
            return False
        self._next += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._skip(word):
            _, found, place = self._peek()
            raise FormulaError(f"expected {word!r}, found {found or 'end of formula'!r} (1:{place + 1})")

    def _name(self) -> str:
        kind, word, place = self._peek()
        if kind != "name" or word in _WORDS or word in _CONSTANTS:
            raise FormulaError(f"expected a name, found {word or 'end of formula'!r} (1:{place + 1})")
        self._next += 1
        return word


def _tokens(text: str) -> list[Token]:
    if len(text) > _LONGEST:
        raise FormulaError(f"the formula has more than {_LONGEST} letters")
    found: list[Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise FormulaError(f"unrecognized character {text[place]!r} (1:{place + 1})")
        if match.lastgroup != "blank":
            found.append((match.lastgroup, match.group(), place))
        place = match.end()
    return [*found, _END, _END]


def _number(word: str) -> Value:
    plain = word.replace("_", "")
    return int(plain) if plain.isdigit() else float(plain)


def _constant(value: Value) -> Expression:
    return lambda _values: value


def _variable(name: str) -> Expression:
    return lambda values: values.get(name)


def _chosen(condition: Expression, yes: Expression, no: Expression) -> Expression:
    return lambda values: yes(values) if as_truth(condition(values)) else no(values)


def _negated(word: str, operand: Expression) -> Expression:
    apply = NEGATIONS[word]
    return lambda values: apply(operand(values))


def _called(apply: Callable[..., Value], arguments: list[Expression]) -> Expression:
    return lambda values: apply(*(argument(values) for argument in arguments))


def _joined(word: str, left: Expression, right: Expression) -> Expression:
    if word in ("&&", "and"):
        return lambda values: as_truth(left(values)) and as_truth(right(values))
    if word in ("||", "or"):
        return lambda values: as_truth(left(values)) or as_truth(right(values))
    if word == "??":

        def first_known(values: Mapping[str, Value]) -> Value:
            found = left(values)
            return right(values) if found is None else found

        return first_known
    apply = BINARY[word]
    return lambda values: apply(left(values), right(values))
