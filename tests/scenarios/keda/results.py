"""One case about a ScaledObject: decided from a copy without its expectation, then judged."""

from __future__ import annotations

from typing import Any

import msgspec

from ..result import Result
from .case import Case
from .run import Answer, decided

FAMILY = "keda"


def results_of_case(raw: dict[str, Any]) -> list[Result]:
    name = str(raw.get("id", ""))
    try:
        case = msgspec.convert({key: value for key, value in raw.items() if key not in ("expect", "note")}, Case)
    except msgspec.ValidationError as error:
        return [Result(name, FAMILY, "fail", 0, [f"not in the form of a case: {error}"])]
    diff = differences(decided(case), raw.get("expect") or {})
    return [Result(name, FAMILY, "fail" if diff else "pass", 0 if diff else 2, diff)]


def differences(answer: Answer, expect: dict[str, Any]) -> list[str]:
    if not expect:
        return ["the case expects nothing"]
    return [
        f"{name}: expected {wanted!r}, got {answer!r}"
        for name, wanted in expect.items()
        if not _agrees(name, wanted, answer)
    ]


def _agrees(name: str, wanted: Any, answer: Answer) -> bool:
    if name == "messageContains":
        return all(part in answer["message"] for part in _parts(wanted))
    if name in ("warningsContain", "warningsAbsent"):
        is_wanted = name == "warningsContain"
        return all(any(part in one for one in answer["warnings"]) == is_wanted for part in _parts(wanted))
    if name == "error":
        return bool(wanted) == bool(answer.get("error"))
    found = answer.get(name)
    if name == "conditions":
        return sorted(repr(sorted(one.items())) for one in wanted) == sorted(
            repr(sorted(one.items())) for one in found or ()
        )
    return bool(wanted == found)


def _parts(wanted: Any) -> list[str]:
    return [wanted] if isinstance(wanted, str) else list(wanted)
