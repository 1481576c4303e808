"""YAML as Kubernetes reads it: YAML 1.1 scalars, the first document only, and a JSON value in the end.

PyYAML's own constructors differ from Go's (dates, sexagesimal numbers, `0o17`, `1e3`, keys that are no text), share
what an alias names, and drop duplicate keys; and its composer in C overruns the stack on deep nesting. So only
its parser is used, and values are made here. Aliases are copied, and a document that would grow out of proportion by
them is refused.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from shoal.api.yaml_scalars import ScalarError, key_text, plain
from shoal.embedded.apiserver.bodies.json_fault import MAX_DEPTH, TOO_DEEP

_TAG = "tag:yaml.org,2002:"
_RESOLVED = frozenset(f"{_TAG}{name}" for name in ("int", "float", "bool", "null"))
_MOST_NODES = 400_000


_Base: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class NotYamlError(Exception):
    """A text that is no YAML, or YAML that is no JSON."""


def from_yaml(body: bytes) -> tuple[Any, list[str]]:
    """The first document's value, and what strict reading has against it."""
    try:
        builder = _Builder(yaml.parse(body, Loader=_Base))
        value = builder.document()
    except yaml.YAMLError as error:
        raise NotYamlError(_words(error)) from None
    except UnicodeDecodeError:
        raise NotYamlError("yaml: invalid UTF-8") from None
    if not builder.repeated:
        return value, []
    return value, ["\n".join(["yaml: unmarshal errors:", *builder.repeated])]


def _words(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None)
    if problem is None:
        return "yaml: control characters are not allowed"
    # Go's port takes a mark on the first line for none, and counts the lines of a parser's errors from zero.
    marks = (getattr(error, "context_mark", None), getattr(error, "problem_mark", None))
    line = next((mark.line for mark in marks if mark is not None and mark.line), 0)
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


class _Anchored(NamedTuple):
    value: Any
    height: int
    nodes: int


class _Builder:
    """Makes one value of the parser's events; `_build` answers a value and how many levels it has."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self.repeated: list[str] = []
        self._events = events
        self._anchors: dict[str, _Anchored] = {}
        self._nodes = 0

    def document(self) -> Any:
        for event in self._events:
            if isinstance(event, yaml.StreamEndEvent):
                return None
            if isinstance(event, yaml.DocumentStartEvent):
                value = self._build(next(self._events), 0)[0]
                # The end of the document is read, since it may contain errors.
                next(self._events)
                return value
        return None

    def _build(self, event: yaml.Event, depth: int) -> tuple[Any, int]:
        before = self._nodes
        self._count(1)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor or "", depth)
        if depth > MAX_DEPTH:
            raise NotYamlError(f"yaml: {TOO_DEEP}")
        value: Any = None
        height = 0
        if isinstance(event, yaml.MappingStartEvent):
            value, height = self._mapping(depth)
        elif isinstance(event, yaml.SequenceStartEvent):
            value, height = self._sequence(depth)
        elif isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        if isinstance(event, yaml.NodeEvent) and event.anchor:
            self._anchors[event.anchor] = _Anchored(value, height, self._nodes - before)
        return value, height

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > _MOST_NODES:
            raise NotYamlError("yaml: document contains excessive aliasing")

    def _alias(self, name: str, depth: int) -> tuple[Any, int]:
        found = self._anchors.get(name)
        if found is None:
            raise NotYamlError(f"yaml: unknown anchor '{name}' referenced")
        self._count(found.nodes)
        if depth + found.height > MAX_DEPTH:
            raise NotYamlError(f"yaml: {TOO_DEEP}")
        return _copied(found.value), found.height

    def _sequence(self, depth: int) -> tuple[list[Any], int]:
        items, height = [], 0
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item, below = self._build(event, depth + 1)
            items.append(item)
            height = max(height, below)
        return items, height + 1

    def _mapping(self, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        height = 0
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            is_merge = isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<"
            line = event.start_mark.line + 1 if event.start_mark is not None else 0
            key = "" if is_merge else _key(self._build(event, depth + 1)[0])
            value, below = self._build(next(self._events), depth + 1)
            height = max(height, below)
            if is_merge:
                merged = {**_merged(value), **merged}
                continue
            if key in found:
                self.repeated.append(f'  line {line}: key "{key}" already set in map')
            found[key] = value
        return {**merged, **found}, height + 1


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _merged(value: Any) -> dict[str, Any]:
    maps = value if isinstance(value, list) else [value]
    merged: dict[str, Any] = {}
    for one in maps:
        if not isinstance(one, dict):
            raise NotYamlError("yaml: map merge requires map or sequence of maps as the value")
        merged = {**one, **merged}
    return merged


def _key(value: Any) -> str:
    text = key_text(value)
    if text is not None:
        return text
    raise NotYamlError("yaml: invalid map key" if value is not None else "unsupported map key of type: invalid")


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if event.tag == f"{_TAG}binary":
        try:
            return base64.b64decode(text).decode("utf-8", "replace")
        except ValueError:
            raise NotYamlError("yaml: !!binary value contains invalid base64 data") from None
    if not (event.implicit[0] or event.tag in _RESOLVED):
        return text
    try:
        return plain(text)
    except ScalarError as error:
        raise NotYamlError(str(error)) from None
