"""Splits an expression of PromQL into tokens."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

TokenKind = Literal["number", "duration", "name", "text", "operator", "end"]
_SPACE = re.compile(r"\s+|#[^\n]*")
_DURATION = re.compile(r"(?:[0-9]+(?:ms|m(?!s)|[shdwy]))+(?![A-Za-z0-9_])")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_:]*|:[A-Za-z0-9_:]+")
_OPERATOR = re.compile(r"==|!=|<=|>=|=~|!~|[-+*/%^=<>(){}\[\],:@]")
_PART = re.compile(r"([0-9]+)(ms|m(?!s)|[shdwy])")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "y": 31_536_000_000}
_LONGEST = 65_536


class PromqlError(ValueError):
    """An expression that Prometheus would refuse, or whose function the evaluator does not have."""


class Token(NamedTuple):
    kind: TokenKind
    text: str
    at: int


def tokens_of(expression: str) -> list[Token]:
    """Raises PromqlError. The last one is the end."""
    if len(expression) > _LONGEST:
        raise PromqlError("the expression is too long")
    found: list[Token] = []
    at = 0
    # A colon in brackets divides a subquery, elsewhere it belongs to a name.
    depth = 0
    while at < len(expression):
        if space := _SPACE.match(expression, at):
            at = space.end()
            continue
        token = _token(expression, at, is_in_brackets=depth > 0)
        depth += {"[": 1, "]": -1}.get(token.text, 0) if token.kind == "operator" else 0
        found.append(Token(token.kind, token.text, at))
        at = token.at
    found.append(Token("end", "", len(expression)))
    return found


def milliseconds(duration: str) -> int:
    """Of a token of the kind `duration`."""
    total = at = 0
    while found := _PART.match(duration, at):
        total += int(found[1]) * _UNIT_MS[found[2]]
        at = found.end()
    return total


def _token(expression: str, at: int, *, is_in_brackets: bool) -> Token:
    """With the place behind it as `at`."""
    letter = expression[at]
    if letter in "\"'`":
        text, end = _text(expression, at)
        return Token("text", text, end)
    if found := _DURATION.match(expression, at):
        return Token("duration", found[0], found.end())
    if found := _NUMBER.match(expression, at):
        return Token("number", found[0], found.end())
    if not (is_in_brackets and letter == ":") and (found := _NAME.match(expression, at)):
        return Token("name", found[0], found.end())
    if found := _OPERATOR.match(expression, at):
        return Token("operator", found[0], found.end())
    raise PromqlError(f"unexpected {letter!r} at character {at + 1}")


def _text(expression: str, start: int) -> tuple[str, int]:
    quote, at, parts = expression[start], start + 1, list[str]()
    while at < len(expression):
        letter = expression[at]
        if letter == quote:
            return "".join(parts), at + 1
        if letter == "\\" and quote != "`":
            escaped = expression[at + 1 : at + 2]
            if escaped not in _ESCAPES:
                raise PromqlError(f"unknown escape at character {at + 1}")
            parts.append(_ESCAPES[escaped])
            at += 2
            continue
        parts.append(letter)
        at += 1
    raise PromqlError(f"the text that begins at character {start + 1} does not end")
