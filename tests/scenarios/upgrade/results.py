"""One case about driver upgrades: decided from a copy without its expectation, then judged."""

from __future__ import annotations

from typing import Any

import msgspec

from ..result import Result
from .case import Case
from .run import Answer, decide

FAMILY = "upgrade"
_WAITING = "upgrade-required"
_SETS = frozenset({"cordoned", "uncordoned", "drainStarted", "driverPodsRestarted", "podsEvicted"})
_COMPARED = "nvidia.com/gpu-driver-upgrade"


def results_of_case(raw: dict[str, Any]) -> list[Result]:
    name = str(raw.get("id", ""))
    try:
        case = msgspec.convert({key: value for key, value in raw.items() if key != "expect"}, Case)
    except msgspec.ValidationError as error:
        return [Result(name, FAMILY, "fail", 0, [f"not in the form of a case: {error}"])]
    diff, level = differences(decide(case), raw.get("expect") or {})
    return [Result(name, FAMILY, "fail" if diff else "pass", level, diff)]


def differences(answer: Answer, expect: dict[str, Any]) -> tuple[list[str], int]:
    """What differs on level 1, the counts of states and the states of nodes that have started; if nothing does, on
    level 2. And the level that agrees.
    """
    if not expect:
        return ["the case expects nothing"], 0
    if "refused" in expect or "refused" in answer:
        both = "refused" in expect and "refused" in answer
        return ([], 2) if both else ([f"expected {expect!r}, got {answer!r}"], 0)
    first = _counts(answer, expect) + _states(answer, expect)
    if first:
        return first, 0
    second = _nodes(answer, expect) + _rest(answer, expect)
    return second, 1 if second else 2


def _counts(answer: Answer, expect: dict[str, Any]) -> list[str]:
    wanted, got = expect.get("stateCounts"), answer["stateCounts"]
    if wanted is None or {state: count for state, count in wanted.items() if count} == got:
        return []
    return [f"stateCounts: expected {wanted!r}, got {got!r}"]


def _states(answer: Answer, expect: dict[str, Any]) -> list[str]:
    return [
        f"{name}: expected {wanted['state']!r}, got {state!r}"
        for name, wanted in expect.get("nodes", {}).items()
        if wanted.get("state") != (state := _state(answer, name)) and _WAITING not in (wanted.get("state"), state)
    ]


def _state(answer: Answer, name: str) -> str | None:
    found = answer["nodes"].get(name)
    return None if found is None else str(found["state"])


def _nodes(answer: Answer, expect: dict[str, Any]) -> list[str]:
    found = []
    for name, wanted in expect.get("nodes", {}).items():
        got = answer["nodes"].get(name, {})
        for key, value in wanted.items():
            if _canonical(key, value) != got.get(key):
                found.append(f"{name}: {key}: expected {value!r}, got {got.get(key)!r}")
    return found


def _canonical(key: str, value: Any) -> Any:
    if key == "annotations":
        return {name: text for name, text in (value or {}).items() if name.startswith(_COMPARED)}
    return value


def _rest(answer: Answer, expect: dict[str, Any]) -> list[str]:
    return [
        f"{key}: expected {wanted!r}, got {answer.get(key)!r}"
        for key, wanted in expect.items()
        if key not in ("nodes", "stateCounts")
        and (sorted(wanted) != sorted(answer.get(key) or []) if key in _SETS else wanted != answer.get(key))
    ]
