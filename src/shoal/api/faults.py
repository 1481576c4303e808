"""Describes a decoding failure for users: which field, what was expected, what was found instead.

msgspec names fields as `$.spec.containers[0].resources.limits[...]`: the key inside a map is lost, and so
is the value. Both are looked up again in the document itself, which only costs something when there is an
error to tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from shoal.api.wire import to_quantity
from shoal.units.errors import UserError, Where, excerpt

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|(\[\.\.\.\])")
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`(?P<bound> (?:<=|>=|<|>) \S+)?(?:, got `(?P<got>\w+)`)?")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]+)`")
_CHOICE = re.compile(r"Invalid enum value (?P<got>.*)")

_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
    "datetime": "a time",
}
_TYPES = {str: "str", int: "int", float: "float", bool: "bool", list: "array", dict: "object"}

Step = str | int | None


def user_error(error: msgspec.ValidationError, document: Any, wanted: Any, where: Where) -> UserError:
    """Translate; `document` is the plain value being read as the type `wanted`."""
    message, _, path = str(error).partition(" - at `")
    steps = _steps(path.removesuffix("`"))
    cause = error.__cause__.__cause__ if error.__cause__ is not None else None
    if isinstance(cause, UserError):
        found = _find(document, steps, _is_bad_quantity)
        return UserError(cause.what, where=_place(where, found, steps), fix=cause.fix)
    if match := _MISSING.fullmatch(message):
        name = match["name"]
        found = _find(document, steps, lambda value: isinstance(value, dict) and name not in value)
        return UserError("is required", where=_place(where, found, steps).below(name))
    if match := _UNKNOWN.fullmatch(message):
        name = match["name"]
        found = _find(document, steps, lambda value: isinstance(value, dict) and name in value)
        return UserError("unknown field", where=_place(where, found, steps).key(name))
    if match := _EXPECTED.fullmatch(message):
        return _expected(match, document, steps, where)
    if match := _CHOICE.fullmatch(message):
        shown = match["got"].strip("'")
        found = _find(document, steps, lambda value: str(value) == shown)
        choices = ", ".join(str(c) for c in _choices(_type_info(wanted), steps) if c != "")
        fix = f"supported values are {choices}" if choices else ""
        return UserError(f"unsupported value {excerpt(shown)}", where=_place(where, found, steps), fix=fix)
    found = _find(document, steps, lambda _: True)
    if "RFC3339" in message or "timezone" in message:
        fix = "write a time such as 2026-01-31T12:00:00Z"
        return UserError("is not a time with its zone", where=_place(where, found, steps), fix=fix)
    return UserError(message[:1].lower() + message[1:], where=_place(where, found, steps))


def _expected(match: re.Match[str], document: Any, steps: list[Step], where: Where) -> UserError:
    got, bound = match["got"], (match["bound"] or "").strip()
    found = _find(document, steps, lambda value: got is None or type_name(value) == got)
    here = _place(where, found, steps)
    value = found[1] if found is not None else None
    if bound:
        bound = bound.replace(">=", "at least").replace("<=", "at most")
        seen = f", got {_number(value)}" if isinstance(value, (int, float)) else ""
        return UserError(f"must be {bound}{seen}", where=here)
    wanted = [w for w in match["wanted"].split(" | ") if w != "null"]
    words = " or ".join(_WORDS.get(w, w) for w in wanted)
    seen = _WORDS.get(got or "", got or "something else")
    if isinstance(value, (str, int, float)):
        seen += f" ({excerpt(value) if isinstance(value, str) else _number(value)})"
    fix = "put it in quotes" if "str" in wanted and isinstance(value, (int, float)) else ""
    return UserError(f"expected {words}, got {seen}", where=here, fix=fix)


def type_name(value: Any) -> str:
    """The word msgspec uses for the type of a plain value."""
    return "null" if value is None else _TYPES.get(type(value), type(value).__name__)


def type_words(value: Any) -> str:
    return _WORDS.get(type_name(value), type_name(value))


def _number(value: float) -> str:
    """As it was written, unless it was absurdly long."""
    return excerpt(str(value).lower()).strip('"')


def _steps(path: str) -> list[Step]:
    steps: list[Step] = []
    for name, index, _ in _STEP.findall(path):
        steps.append(name or (int(index) if index else None))
    return steps


def _find(value: Any, steps: list[Step], fits: Callable[[Any], bool]) -> tuple[list[str | int], Any] | None:
    """The first value down this path for which `fits` holds, with its true keys where the path has none."""
    if not steps:
        return ([], value) if fits(value) else None
    step, rest = steps[0], steps[1:]
    candidates: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        candidates = list(value.items()) if step is None else [(step, value[step])] if step in value else []
    elif isinstance(value, list) and isinstance(step, int) and step < len(value):
        candidates = [(step, value[step])]
    for key, inner in candidates:
        found = _find(inner, rest, fits)
        if found is not None:
            return [key, *found[0]], found[1]
    return None


def _place(where: Where, found: tuple[list[str | int], Any] | None, steps: list[Step]) -> Where:
    for step in found[0] if found is not None else steps:
        if step is None:
            where = where.below("[*]")
        elif isinstance(step, int):
            where = where.below(f"[{step}]")
        else:
            where = where.key(step)
    return where


def _is_bad_quantity(value: Any) -> bool:
    try:
        to_quantity(value)
    except UserError:
        return True
    return False


@cache
def _type_info(wanted: Any) -> inspect.Type:
    """A file of many objects of one kind can have the same error in each of them."""
    return inspect.type_info(wanted)


def _choices(kind: inspect.Type, steps: list[Step]) -> list[object]:
    """The values the schema allows at the end of a path."""
    if isinstance(kind, inspect.UnionType):
        return next((c for c in (_choices(t, steps) for t in kind.types) if c), [])
    if isinstance(kind, inspect.LiteralType):
        return list(kind.values)
    if not steps:
        return []
    step, rest = steps[0], steps[1:]
    if isinstance(kind, inspect.StructType):
        inner = next((f.type for f in kind.fields if f.encode_name == step), None)
        return _choices(inner, rest) if inner is not None else []
    if isinstance(kind, inspect.VarTupleType):
        return _choices(kind.item_type, rest)
    if isinstance(kind, inspect.DictType):
        return _choices(kind.value_type, rest)
    return []
