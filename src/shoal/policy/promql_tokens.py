"""Splits an expression of PromQL into its words, in time proportional to its length.

Rejected: a parser. Rules look for a few names next to functions and operators; an expression that Prometheus would
reject has words too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TOKEN = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*|[0-9]+(?:\.[0-9]+)?|[<>=!]=|=~|!~|.", re.DOTALL)
_QUOTES = "\"'`"
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Word(NamedTuple):
    """A name, a number, an operator or a bracket."""

    text: str
    labels: tuple[str, ...] = ()
    """The tokens between the braces after a name, texts without their quotes."""


def promql_words(expression: str) -> list[Word]:
    """The words without blanks; label matchers belong to the name before them."""
    words: list[Word] = []
    inside: list[str] | None = None
    for part, is_text in _tokens(expression):
        if part == "{" and not is_text:
            inside = []
        elif part == "}" and inside is not None and not is_text:
            if words:
                words[-1] = Word(words[-1].text, tuple(inside))
            inside = None
        elif inside is not None:
            inside.append(part)
        else:
            words.append(Word(part))
    return words


def texts(words: Sequence[Word], start: int, count: int) -> tuple[str, ...]:
    """The texts of so many words; fewer at the end."""
    return tuple(word.text for word in words[start : start + count])


def promql_tokens(expression: str) -> Iterator[str]:
    """The tokens; a text is one, without its quotes."""
    return (part for part, _ in _tokens(expression))


def _tokens(expression: str) -> Iterator[tuple[str, bool]]:
    """Each with whether it is a text. Comments are left out."""
    at = 0
    while at < len(expression):
        letter = expression[at]
        if letter in _QUOTES:
            end = _end_of_text(expression, at)
            yield expression[at + 1 : end], True
            at = end + 1
        elif letter == "#":
            end = expression.find("\n", at)
            at = len(expression) if end < 0 else end
        elif letter.isspace():
            at += 1
        else:
            found = _TOKEN.match(expression, at)
            part = found[0] if found else letter
            yield part, False
            at += len(part)


def _end_of_text(expression: str, start: int) -> int:
    """Where the quote is closed; the end of the expression if it is not. Backquotes know no backslashes."""
    quote, at = expression[start], start + 1
    while at < len(expression) and expression[at] != quote:
        at += 2 if expression[at] == "\\" and quote != "`" else 1
    return min(at, len(expression))


def bracket_fault(expression: str) -> tuple[str, str] | None:
    """What is wrong with the brackets and quotes, and what to do; None if all are closed."""
    opened: list[str] = []
    for part, is_text in _tokens(expression):
        if is_text:
            continue
        if part in _CLOSING:
            opened.append(_CLOSING[part])
        elif part in _CLOSING.values() and (not opened or opened.pop() != part):
            return f"{part} closes nothing", "correct the brackets"
    if opened:
        return f"{opened[-1]} is missing", "close the brackets"
    return None
