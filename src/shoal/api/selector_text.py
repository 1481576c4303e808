"""The text form of label selectors: `app=web,tier!=db,zone in (a,b),gpu notin (t4),ready,!old,slots>4`.

The grammar is the one kubectl and the watch API share, corners included: `a=` asks for an empty value, `a
in (,b)` allows one, `in` and `notin` are keys where a key is due, a trailing comma is an error, blanks mean
nothing.

    selector    = [ requirement *( "," requirement ) ]
    requirement = [ "!" ] key
                / key ( "=" / "==" / "!=" / ">" / "<" ) [ value ]
                / key ( "in" / "notin" ) "(" [ value ] *( "," [ value ] ) ")"

Rejected: splitting at commas, which breaks inside parentheses.
"""

from __future__ import annotations

import re

from shoal.api.requirement import Operator, Requirement, as_int64
from shoal.api.selectors import Selector
from shoal.units.errors import UserError, Where, excerpt

_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_COMPARE: dict[str, Operator] = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_SETS: dict[str, Operator] = {"in": "In", "notin": "NotIn"}
_END = ""


def parse_label_selector(text: str) -> Selector:
    """Read the text form; an empty text selects everything."""
    return _SelectorParser(text).selector()


class _SelectorParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = [*_TOKEN.findall(text), _END]
        self._next = 0

    def selector(self) -> Selector:
        if self._peek() == _END:
            return Selector.EVERYTHING
        requirements = [self._requirement()]
        while self._peek() != _END:
            self._expect(",", "',' or the end")
            requirements.append(self._requirement())
        return Selector(tuple(requirements))

    def _requirement(self) -> Requirement:
        absent = self._skip("!")
        key = self._word("a label key")
        if absent:
            return self._checked(Requirement(key, "DoesNotExist"))
        token = self._peek()
        if token in {_END, ","}:
            return self._checked(Requirement(key, "Exists"))
        self._next += 1
        if token in _COMPARE:
            return self._checked(self._comparison(key, token))
        if token in _SETS:
            return self._checked(Requirement(key, _SETS[token], self._values()))
        raise self._refusal(token, "in, notin, =, ==, !=, > or <")

    def _comparison(self, key: str, token: str) -> Requirement:
        value = "" if self._peek() in {_END, ","} else self._word("a value")
        if token in {">", "<"} and as_int64(value) is None:
            raise UserError(f"selector {excerpt(self._text)}: {excerpt(value)} after {token} is not a whole number")
        return Requirement(key, _COMPARE[token], (value,))

    def _values(self) -> tuple[str, ...]:
        self._expect("(", "'('")
        values = {self._optional_value()}
        while self._skip(","):
            values.add(self._optional_value())
        self._expect(")", "',' or ')'")
        return tuple(sorted(values))

    def _optional_value(self) -> str:
        return "" if self._peek() in {",", ")"} else self._word("a value")

    def _checked(self, requirement: Requirement) -> Requirement:
        try:
            requirement.check(Where(), numeric=True)
        except UserError as error:
            raise UserError(f"selector {excerpt(self._text)}: {error.what}", fix=error.fix) from error
        return requirement

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _skip(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._next += 1
        return True

    def _expect(self, token: str, wanted: str) -> None:
        if not self._skip(token):
            raise self._refusal(self._peek(), wanted)

    def _word(self, wanted: str) -> str:
        token = self._peek()
        if token == _END or token in _SYMBOLS:
            raise self._refusal(token, wanted)
        self._next += 1
        return token

    def _refusal(self, found: str, wanted: str) -> UserError:
        seen = excerpt(found) if found != _END else "the end"
        return UserError(f"selector {excerpt(self._text)}: found {seen}, expected {wanted}")
