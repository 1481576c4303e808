"""One case about a HorizontalPodAutoscaler: decided from a copy without its expectation, then judged."""

from __future__ import annotations

from typing import Any

import msgspec

from ..result import Result
from .case import Case
from .run import Answer, decided

FAMILY = "hpa"
_LISTS = frozenset({"unready", "missing", "ignored", "conditions"})
"""Lists without an order."""
_UNWRITTEN = frozenset({"errorCause"})


def results_of_case(raw: dict[str, Any]) -> list[Result]:
    name = str(raw.get("id", ""))
    hidden = ("expect", "derived", "note")
    try:
        case = msgspec.convert({key: value for key, value in raw.items() if key not in hidden}, Case)
    except msgspec.ValidationError as error:
        return [Result(name, FAMILY, "fail", 0, [f"not in the form of a case: {error}"])]
    answer = decided(case)
    diff = differences(answer, raw.get("expect") or {})
    second = differences(answer, raw["derived"]) if raw.get("derived") else []
    level = 0 if diff else 1 if second else 2
    return [Result(name, FAMILY, "fail" if diff else "pass", level, diff + second)]


def differences(answer: Answer, expect: dict[str, Any]) -> list[str]:
    if not expect:
        return ["the case expects nothing"]
    return [
        f"{name}: expected {wanted!r}, got {answer.get(name)!r}"
        for name, wanted in expect.items()
        if name not in _UNWRITTEN and not _agrees(name, wanted, answer.get(name))
    ]


def _agrees(name: str, wanted: Any, found: Any) -> bool:
    if name == "error":
        return bool(wanted) == bool(found)
    if name in _LISTS:
        return _unordered(wanted) == _unordered(found or [])
    return bool(wanted == found)


def _unordered(listed: list[Any]) -> list[str]:
    return sorted(repr(sorted(one.items()) if isinstance(one, dict) else one) for one in listed)
