"""JSON paths as kubectl and printer columns of custom resources write them.

Understood: members (`.a.b`, `['a.b']`, `\\.` within a name), indexes and slices of lists (`[0]`, `[-1]`, `[1:3]`),
everything (`[*]`, `.*`), recursive descent (`..a`) and filters that compare a path with a value or ask whether it is
there (`[?(@.type=="Ready")]`). That is all that Kubernetes' own dialect can say about one object.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_NAME = re.compile(r"(?:\\.|[^.\[\]\\])+")
_SLICE = re.compile(r"(-?\d*):(-?\d*)(?::(\d+))?")
_FILTER = re.compile(
    r"\?\(\s*@(?P<path>(?:[^=!<>\"']|'[^']*'|\"[^\"]*\")*)(?:(?P<sign>==|!=|<=|>=|<|>)(?P<value>.+))?\)"
)
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS = {"true": True, "false": False, "null": None}


_LONGEST = 1024
"""In letters. Filters may be nested, and each is read for itself."""


class PathError(ValueError):
    """A path that cannot be read."""


@lru_cache(maxsize=1024)
def steps(path: str) -> tuple[Step, ...]:
    if len(path) > _LONGEST:
        raise PathError(f"longer than {_LONGEST} letters")
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    return tuple(_steps(text.removeprefix("$").removeprefix("@")))


def find(path: str, value: Any) -> list[Any]:
    """Every value the path leads to."""
    found: Iterable[Any] = (value,)
    for step in steps(path):
        found = _next(step, found)
    return list(found)


def _next(step: Step, found: Iterable[Any]) -> Iterator[Any]:
    for one in found:
        yield from step(one)


def _steps(text: str) -> Iterator[Step]:
    at = 0
    while at < len(text):
        if text[at] == "[":
            end = _closing(text, at)
            yield _bracket(text[at + 1 : end].strip())
            at = end + 1
        elif text.startswith("..", at):
            yield _descend
            at += 1 if at + 2 < len(text) and text[at + 2] != "[" else 2
        else:
            found = _NAME.match(text, at + (text[at] == "."))
            if found is None:
                if text[at:] == ".":
                    return
                raise PathError(f"cannot read {text[at:]!r}")
            yield _every if found[0] == "*" else _member(re.sub(r"\\(.)", r"\1", found[0]))
            at = found.end()


def _closing(text: str, start: int) -> int:
    """Where the bracket opened at `start` closes; brackets within quotes do not count."""
    depth, quote = 0, ""
    for at in range(start, len(text)):
        one = text[at]
        if quote:
            quote = "" if one == quote else quote
        elif one in "'\"":
            quote = one
        elif one == "[":
            depth += 1
        elif one == "]":
            depth -= 1
            if depth == 0:
                return at
    raise PathError("unterminated array")


def _bracket(inside: str) -> Step:
    if inside == "*":
        return _every
    if inside[:1] in ("'", '"') and inside[-1:] == inside[:1] and len(inside) > 1:
        return _member(inside[1:-1])
    if inside.startswith("?"):
        return _filter(inside)
    if cut := _SLICE.fullmatch(inside):
        bounds = [int(one) if one else None for one in cut.groups()]
        return _cut(slice(*bounds))
    try:
        index = int(inside)
    except ValueError:
        raise PathError(f"invalid array index {inside}") from None
    return _cut(slice(index, index + 1 or None))


def _member(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _cut(bounds: slice) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[bounds]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descend(value: Any) -> Iterator[Any]:
    yield value
    for one in _every(value):
        yield from _descend(one)


def _filter(inside: str) -> Step:
    found = _FILTER.fullmatch(inside)
    if found is None:
        raise PathError(f"unrecognized filter {inside}")
    path, sign = found["path"].strip(), found["sign"]
    wanted = _literal(found["value"].strip()) if sign else None
    steps(path)

    def is_kept(one: Any) -> bool:
        values = find(path, one)
        if not sign:
            return bool(values)
        return bool(values) and _holds(_SIGNS[sign], values[0], wanted)

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (one for one in value if is_kept(one))

    return step


def _holds(compare: Callable[[Any, Any], bool], value: Any, wanted: Any) -> bool:
    """Values of different types are not comparable, not even as unequal."""
    is_number = isinstance(value, int | float) and isinstance(wanted, int | float)
    if isinstance(value, bool) is not isinstance(wanted, bool) or not (is_number or type(value) is type(wanted)):
        return False
    return compare(value, wanted)


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return text[1:-1]
    if text in _WORDS:
        return _WORDS[text]
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise PathError(f"unrecognized value {text}") from None
