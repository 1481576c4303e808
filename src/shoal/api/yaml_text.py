"""Reads manifests in YAML as Kubernetes does: maps, lists and scalars.

It is built from libyaml's event stream rather than by PyYAML's constructor, for four reasons: scalars have the values
that Kubernetes gives them (`yaml_scalars.py`), a key given twice is refused with its line, the size of aliases is
bounded, and it is about a third faster. Null entries of a map are dropped, because Kubernetes reads them as absent.

Rejected: `yaml.safe_load`, for the same four reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from shoal.api.yaml_scalars import ScalarError, key_text, plain
from shoal.units.errors import UserError, Where, excerpt, one_line

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser of libyaml, or PyYAML's own if libyaml is absent."""

MAX_DEPTH = 100
MAX_ALIASED = 100_000

_TAG = "tag:yaml.org,2002:"
_MERGE = object()
_NO_KEY = object()


def read_yaml(text: str, file: str = "", loader: Any = LOADER) -> Iterator[tuple[int, Any]]:
    """The documents of a file, numbered from 1 in the order of the file; empty ones are counted and skipped."""
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=loader):
            if builder.feed(event) and builder.result is not None:
                yield builder.document, builder.result
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = one_line(error.problem or error.context or "not YAML")
        raise builder.error(what, mark) from error
    except yaml.YAMLError as error:
        raise builder.error(one_line(str(error)), None) from error


@dataclass(slots=True)
class _Frame:
    """A map or list under construction."""

    value: Any
    anchor: str | None
    size_before: int
    key: Any = _NO_KEY
    merged: list[dict[str, Any]] = field(default_factory=list)


class _Builder:
    def __init__(self, file: str) -> None:
        self._file = file
        self.document = 0
        self.result: Any = None
        self._reset()

    def _reset(self) -> None:
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._size = 0
        self._aliased = 0

    def feed(self, event: Any) -> bool:
        """Take one event; true when a document is complete."""
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.MappingStartEvent():
                self._open({}, event)
            case yaml.SequenceStartEvent():
                self._open([], event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.DocumentStartEvent():
                self.document += 1
                self.result = None
                self._reset()
            case yaml.DocumentEndEvent():
                return True
        return False

    def error(self, what: str, mark: Any) -> UserError:
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        return UserError(line + what, where=Where(file=self._file, document=max(self.document, 1)))

    def _scalar(self, event: Any) -> None:
        frame = self._frames[-1] if self._frames else None
        if frame is not None and frame.key is _NO_KEY and isinstance(frame.value, dict):
            self._key(frame, event)
            return
        value = self._value(event)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._size += 1
        self._put(value, event)

    def _key(self, frame: _Frame, event: Any) -> None:
        if event.value == "<<" and event.implicit[0]:
            frame.key = _MERGE
            return
        key = key_text(self._value(event))
        if key is None:
            raise self.error("a key must be text, not null", event.start_mark)
        if key in frame.value:
            raise self.error(f"key {excerpt(key)} is given twice", event.start_mark)
        if event.anchor:
            self._anchors[event.anchor] = (key, 1)
        frame.key = key
        # Set now, so that a second one is seen even if the value is null and will be dropped.
        frame.value[key] = None

    def _value(self, event: Any) -> Any:
        if not event.implicit[0] and event.tag in {None, "!", _TAG + "str"}:
            return event.value
        try:
            value = plain(event.value)
        except ScalarError as error:
            raise self.error(str(error), event.start_mark) from None
        if event.implicit[0]:
            return value
        wanted = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}
        if type(value) not in wanted.get(event.tag.removeprefix(_TAG), ()):
            raise self.error(f"tag {event.tag} is not supported here", event.start_mark)
        return value

    def _open(self, value: Any, event: Any) -> None:
        if len(self._frames) >= MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} levels deep", event.start_mark)
        if event.tag not in {None, "!", _TAG + "map", _TAG + "seq"}:
            raise self.error(f"tag {event.tag} is not supported here", event.start_mark)
        frame = self._frames[-1] if self._frames else None
        if frame is not None and frame.key is _NO_KEY and isinstance(frame.value, dict):
            raise self.error("a key must be plain text, not a map or list", event.start_mark)
        self._frames.append(_Frame(value, event.anchor, self._size))

    def _close(self, event: Any) -> None:
        frame = self._frames.pop()
        value = frame.value
        for other in frame.merged:
            for key, inner in other.items():
                value.setdefault(key, inner)
        if isinstance(value, dict):
            value = {key: inner for key, inner in value.items() if inner is not None}
        self._size += 1
        if frame.anchor:
            self._anchors[frame.anchor] = (value, self._size - frame.size_before)
        self._put(value, event)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise self.error(f"alias *{event.anchor} is used before its anchor is complete", event.start_mark)
        value, size = self._anchors[event.anchor]
        self._size += size
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            raise self.error(f"aliases repeat more than {MAX_ALIASED} values", event.start_mark)
        frame = self._frames[-1] if self._frames else None
        if frame is not None and frame.key is _NO_KEY and isinstance(frame.value, dict):
            raise self.error("a key must be plain text, not an alias", event.start_mark)
        self._put(value, event)

    def _put(self, value: Any, event: Any) -> None:
        if not self._frames:
            self.result = value
            return
        frame = self._frames[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
            return
        if frame.key is _MERGE:
            others = value if isinstance(value, list) else [value]
            if not all(isinstance(other, dict) for other in others):
                raise self.error("<< needs a map or a list of maps", event.start_mark)
            frame.merged.extend(others)
        else:
            frame.value[frame.key] = value
        frame.key = _NO_KEY
