"""Finds the line and the column of a field in the text of a manifest, for messages that an editor can follow.

Guarantees: a field that does not exist has the position of the deepest part of its path that does. Text that is no YAML
has none. The text is parsed again, and only for files with findings: positions beside every value would slow down the
reading of all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import yaml

from shoal.api.yaml_text import LOADER, MAX_DEPTH

_ENDS = ".[:"
"""Of a step without brackets."""
_MOST_STEPS = 2 * MAX_DEPTH


class Position(NamedTuple):
    line: int
    """From 1, as the column."""
    column: int


class Positions:
    """Of the fields of one file."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._documents = _documents(text)

    def of(self, document: int, path: str) -> Position | None:
        """`document` is counted from 1. `path` is as in messages: `spec.containers[0].resources.limits[cpu]`; it may
        continue in a text that is YAML itself, as in ConfigMaps.
        """
        node = self._documents.get(document)
        if node is None:
            return None
        mark = node.start_mark
        steps = list(_steps(path))
        for at, step in enumerate(steps):
            found = _below(node, step)
            if found is None:
                return self._within(node, steps[at:]) or Position(mark.line + 1, mark.column + 1)
            mark, node = found
        return Position(mark.line + 1, mark.column + 1)

    def _within(self, node: Any, steps: Sequence[str]) -> Position | None:
        """In a block of literal text, whose lines are those of the file with an indentation."""
        if not isinstance(node, yaml.ScalarNode) or node.style != "|":
            return None
        inner = _documents(node.value).get(1)
        first = node.start_mark.line + 1
        found = None if inner is None else _deepest(inner, steps)
        if found is None or first >= len(self._lines):
            return None
        indent = len(self._lines[first]) - len(self._lines[first].lstrip(" "))
        return Position(first + found.line + 1, indent + found.column + 1)


def _documents(text: str) -> dict[int, Any]:
    """As far as the text can be parsed."""
    found: dict[int, Any] = {}
    with suppress(yaml.YAMLError, RecursionError):
        found.update(enumerate(yaml.compose_all(text, Loader=LOADER), 1))
    return found


def _steps(path: str) -> Iterator[str]:
    """`a.b[0].c[d.e]` has the steps a, b, 0, c and d.e. Those beyond the bound are left out."""
    at = count = 0
    while at < len(path) and count < _MOST_STEPS:
        if path[at] == "[":
            end = path.find("]", at)
            end = len(path) if end < 0 else end
            step, at = path[at + 1 : end], end + 1
        else:
            end = min((found for mark in _ENDS if (found := path.find(mark, at)) >= 0), default=len(path))
            step, at = path[at:end], end if path[end : end + 1] == "[" else end + 1
            if not step:
                continue
        count += 1
        yield step


def _deepest(node: Any, steps: Sequence[str]) -> Any:
    """The mark of the deepest part of the path that exists; None if not even the first does."""
    mark = None
    for step in steps:
        found = _below(node, step)
        if found is None:
            break
        mark, node = found
    return mark


def _below(node: Any, step: str) -> tuple[Any, Any] | None:
    """The mark of the entry, and its value."""
    if isinstance(node, yaml.SequenceNode):
        index = int(step) if step.isdecimal() and len(step) < len(str(2**31)) else -1
        inner = node.value[index] if 0 <= index < len(node.value) else None
        return None if inner is None else (inner.start_mark, inner)
    if isinstance(node, yaml.MappingNode):
        return next(((key.start_mark, value) for key, value in node.value if key.value == step), None)
    return None
