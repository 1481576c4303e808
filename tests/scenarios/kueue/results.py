"""One case of Kueue's: read, decided from a copy without its expectation, then judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.units.errors import ShoalError

from ..result import Result, said
from . import run_cycle, run_unit
from .answers import Answer
from .case import Case, case_of, unread
from .judge import WHOLE, judge

FAMILY = "kueue"
_UNIT = "unit"


class Options(msgspec.Struct, frozen=True):
    everything: bool = False
    """Cases that do not count are run as well."""
    end_to_end: bool = False
    """Component cases whose first full cycle should show the same are run as cycles too."""


def results_of_case(raw: dict[str, Any], options: Options) -> list[Result]:
    name = str(raw.get("id", ""))
    if not options.everything and (raw.get("usesNonDefaultGates") or raw.get("apiInvalid")):
        return [Result(name, FAMILY, "out_of_scope", reason="uses gates that are off by default, or is invalid")]
    try:
        case = case_of(said({key: value for key, value in raw.items() if key != "expect"}))
    except (msgspec.ValidationError, ShoalError) as error:
        return [Result(name, FAMILY, "fail", 0, [f"not in the form of a case: {error}"])]
    expect = _expectation(raw)
    notes = [f"not read: {field}" for field in unread(raw)]
    is_unit = case.level == _UNIT
    results = [_judged(case, name, run_unit.decide if is_unit else run_cycle.decide, expect, is_whole=not is_unit)]
    if is_unit and options.end_to_end and case.end_to_end_likely:
        whole = {key: value for key, value in expect.items() if key in WHOLE}
        results.append(_judged(case, f"{name} (first cycle)", run_cycle.decide, whole, is_whole=False))
    for result in results:
        result.notes += notes
    return results


def _expectation(raw: dict[str, Any]) -> dict[str, Any]:
    expect = raw.get("expect") or {}
    # Nulls say nothing, but for the head: no head is an answer.
    return {**said(expect), **({"head": ""} if expect.get("head", "") is None else {})}


def _judged(
    case: Case, name: str, decide: Callable[[Case], Answer], expect: dict[str, Any], *, is_whole: bool
) -> Result:
    """A case that breaks us is one failure with a reason: the others still count."""
    try:
        verdict = judge(decide(case), expect, is_whole=is_whole)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told and counted
        return Result(name, FAMILY, "fail", 0, [f"{type(error).__name__}: {error}"])
    return Result(name, FAMILY, "fail" if verdict.diff else "pass", verdict.level, verdict.diff, notes=verdict.notes)
