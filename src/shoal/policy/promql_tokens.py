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
    for part in promql_tokens(expression):
        if part == "{":
            inside = []
        elif part == "}" and inside is not None:
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
    at = 0
    while at < len(expression):
        letter = expression[at]
        if letter in _QUOTES:
            end = expression.find(letter, at + 1)
            end = len(expression) if end < 0 else end
            yield expression[at + 1 : end]
            at = end + 1
        elif letter.isspace():
            at += 1
        else:
            found = _TOKEN.match(expression, at)
            part = found[0] if found else letter
            yield part
            at += len(part)


def bracket_fault(expression: str) -> tuple[str, str] | None:
    """What is wrong with the brackets and quotes, and what to do; None if all are closed."""
    opened: list[str] = []
    for part in promql_tokens(expression):
        if part in _CLOSING:
            opened.append(_CLOSING[part])
        elif part in _CLOSING.values() and (not opened or opened.pop() != part):
            return f"{part} closes nothing", "correct the brackets"
    if opened:
        return f"{opened[-1]} is missing", "close the brackets"
    return None
