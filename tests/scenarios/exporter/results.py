"""One case of the exporter: decided from a copy without its expectation, then judged."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from ..result import Result
from .case import Case
from .run import Answer, decide

FAMILY = "exporter"
_LEVEL = 2
_SETS = frozenset({"series"})
"""Lists whose order does not matter."""


def results_of_case(raw: dict[str, Any]) -> list[Result]:
    name = str(raw.get("id", ""))
    try:
        case = msgspec.convert({key: value for key, value in raw.items() if key != "expect"}, Case)
    except msgspec.ValidationError as error:
        return [Result(name, FAMILY, "fail", 0, [f"not in the form of a case: {error}"])]
    answer = decide(case)
    diff = differences(answer, raw.get("expect") or {})
    notes = _notes(answer, raw.get("expect") or {})
    return [Result(name, FAMILY, "fail" if diff else "pass", 0 if diff else _LEVEL, diff, notes=notes)]


def differences(answer: Answer, expect: dict[str, Any]) -> list[str]:
    """A refusal is compared as such: its class is a note."""
    if not expect:
        return ["the case expects nothing"]
    if ("refused" in expect) != ("refused" in answer):
        return [f"expected {_said(expect)}, got {_said(answer)}"]
    if "refused" in expect:
        return []
    return [
        f"{name}: expected {wanted!r}, got {answer.get(name)!r}"
        for name, wanted in expect.items()
        if not _same(name, wanted, answer.get(name))
    ]


def _same(name: str, wanted: Any, got: Any) -> bool:
    if name in _SETS and isinstance(got, list):
        return Counter(map(_key, wanted)) == Counter(map(_key, got))
    return bool(wanted == got)


def _key(series: dict[str, Any]) -> str:
    return repr((series["name"], sorted(series["labels"].items()), series["value"]))


def _said(answer: dict[str, Any]) -> str:
    refused = answer.get("refused")
    return f"a refusal ({refused.get('words') or refused['class']})" if refused else f"{answer!r}"


def _notes(answer: Answer, expect: dict[str, Any]) -> list[str]:
    if "refused" not in expect or "refused" not in answer:
        return []
    wanted, got = expect["refused"], answer["refused"]
    notes = [] if wanted["class"] == got["class"] else [f"refused as {got['class']}, expected {wanted['class']}"]
    missing = [word for word in wanted.get("mentions", ()) if word.lower() not in got["words"].lower()]
    return notes + [f"the message has no {word!r}: {got['words']}" for word in missing]
