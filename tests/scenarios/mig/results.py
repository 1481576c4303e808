"""One case about MIG configuration: decided from a copy without its expectation, then judged."""

from __future__ import annotations

from typing import Any

import msgspec

from ..result import Result
from .case import Case
from .run import Answer, decide

FAMILY = "mig"
_SECOND = frozenset({"operations"})
"""What is compared on the second level."""


def results_of_case(raw: dict[str, Any]) -> list[Result]:
    name = str(raw.get("id", ""))
    try:
        case = msgspec.convert({key: value for key, value in raw.items() if key != "expect"}, Case)
    except msgspec.ValidationError as error:
        return [Result(name, FAMILY, "fail", 0, [f"not in the form of a case: {error}"])]
    answer = decide(case)
    diff, level = differences(answer, raw.get("expect") or {})
    notes = _notes(answer, raw.get("expect") or {})
    return [Result(name, FAMILY, "fail" if diff else "pass", level, diff, notes=notes)]


def differences(answer: Answer, expect: dict[str, Any]) -> tuple[list[str], int]:
    """What differs, and the level that agrees. A refusal is compared as such: its class is a note."""
    if not expect:
        return ["the case expects nothing"], 0
    first = []
    if ("refused" in expect) != ("refused" in answer):
        first.append(f"expected {expect!r}, got {answer!r}")
    first += _differing(answer, {name: value for name, value in expect.items() if name not in _SECOND | {"refused"}})
    if first:
        return first, 0
    second = _differing(answer, {name: value for name, value in expect.items() if name in _SECOND})
    return second, 1 if second else 2


def _differing(answer: Answer, expect: dict[str, Any]) -> list[str]:
    return [
        f"{name}: expected {wanted!r}, got {answer.get(name)!r}"
        for name, wanted in expect.items()
        if _canonical(name, wanted) != _canonical(name, answer.get(name))
    ]


def _canonical(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "accepted":
        return sorted(value["configs"])
    if name == "entries":
        return sorted(repr(_entry(one)) for one in value)
    return value


def _entry(one: dict[str, Any]) -> Any:
    """Filters as a set; absent and empty ones are equal, instances likewise."""
    filters = next((value for name, value in one.items() if "filter" in name.lower()), None) or []
    instances = next((value for name, value in one.items() if name in ("instances", "migDevices")), None) or {}
    listed = [filters] if isinstance(filters, str) else filters
    return one["devices"], one["migEnabled"], sorted(listed), sorted(instances.items())


def _notes(answer: Answer, expect: dict[str, Any]) -> list[str]:
    if "refused" not in expect or "refused" not in answer:
        return []
    words = answer["refused"]["words"]
    missing = [word for word in expect["refused"].get("mentions", ()) if word.lower() not in words.lower()]
    return [f"the message has no {word!r}: {words}" for word in missing]
