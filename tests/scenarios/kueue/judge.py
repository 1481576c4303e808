"""What was decided against what was expected: outcome first (level 1), then how (level 2), then what decides nothing.

Only what both sides speak of is compared; a case of which nothing was compared has failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .answers import Answer, expected_domains
from .details import assignment_differences, pod_set_differences
from .figures import available_differences, shares_differences

Compare = Callable[[str, Any, Any], list[str]]


@dataclass
class Verdict:
    first: list[str] = field(default_factory=list)
    second: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    compared: int = 0

    @property
    def diff(self) -> list[str]:
        """All that differs on the lowest level where something does."""
        if not self.compared:
            return ["nothing that was expected could be compared"]
        return self.first or self.second

    @property
    def level(self) -> int:
        if self.first or not self.compared:
            return 0
        return 1 if self.second else 2


def judge(answer: Answer, expect: dict[str, Any], *, is_whole: bool) -> Verdict:
    """`is_whole`: cycles were run, so what is not said of an admission was expected not to be there."""
    verdict = Verdict()
    for name, wanted in expect.items():
        if name == "admitted" and name in answer:
            verdict.compared += 1
            verdict.first += _admitted(wanted, answer[name])
            verdict.second += pod_set_differences(wanted, answer[name], is_whole=is_whole)
        elif name in _STANDING and "standing" in answer:
            verdict.compared += 1
            verdict.second += _standing(_STANDING[name], wanted, answer["standing"])
        elif name in _OUTCOME and name in answer:
            verdict.compared += 1
            verdict.first += _OUTCOME[name](name, wanted, answer[name])
        elif name in _MANNER and name in answer:
            verdict.compared += 1
            verdict.second += _MANNER[name](name, wanted, answer[name])
        elif name in _REMARKS and name in answer:
            verdict.notes += _REMARKS[name](name, wanted, answer[name])
        elif is_whole or name not in WHOLE:
            verdict.notes.append(f"{name}: expected {wanted}, and not compared")
    return verdict


def _admitted(wanted: dict[str, Any], got: Answer) -> list[str]:
    found = _members("admitted", wanted, got)
    for key in sorted(set(wanted) & set(got)):
        queue = wanted[key].get("clusterQueue", got[key]["clusterQueue"])
        if queue != got[key]["clusterQueue"]:
            found.append(f"admitted {key}: expected in {queue}, got {got[key]['clusterQueue']}")
    return found


def _members(name: str, wanted: Any, got: Any) -> list[str]:
    """Keys of workloads, of lists and of mappings alike."""
    if set(wanted) == set(got):
        return []
    return [f"{name}: expected {sorted(set(wanted))}, got {sorted(set(got))}"]


def _equal(name: str, wanted: Any, got: Any) -> list[str]:
    return [] if wanted == got else [f"{name}: expected {wanted}, got {got}"]


def _head(name: str, wanted: str, got: str) -> list[str]:
    return _order(name, [wanted], [got])


def _order(name: str, wanted: list[str], got: list[str]) -> list[str]:
    """Workloads may be spelled without their namespace."""
    named = [key if key in wanted else key.rpartition("/")[2] for key in got]
    return _equal(name, list(wanted), named)


def _standing(state: str, wanted: list[str], got: dict[str, str]) -> list[str]:
    return [
        f"{key}: expected {state}, got {got.get(key, 'not waiting')}" for key in sorted(wanted) if got.get(key) != state
    ]


def _mapping(name: str, wanted: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """Only what is said; counts that are not there are none."""
    found = {key: got.get(key, 0 if isinstance(each, int) else None) for key, each in wanted.items()}
    return _equal(name, wanted, found)


def _failure(name: str, wanted: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """How much fits where not all does, told of the pod set that found no place."""
    said = wanted.get(got.get("podSet", ""))
    if said is None:
        return [f"{name}: expected of {sorted(wanted)}, got of {got.get('podSet', 'none')}"]
    return _equal(f"{name}.fits", said.get("fits"), got.get("fits")) if "fits" in said else []


def _partial(name: str, wanted: dict[str, Any], got: dict[str, Any]) -> list[str]:
    return _equal(name, {key: expected_domains(each) for key, each in wanted.items()}, got)


_OUTCOME: dict[str, Compare] = {
    "preempted": _members,
    "evicted": _members,
    "inadmissible_or_pending": _members,
    "preemptionTargetCount": _equal,
    "assignmentMode": _equal,
    "head": _head,
    "order": _order,
    "available": available_differences,
    "potentiallyAvailable": available_differences,
    "shares": shares_differences,
}
_STANDING = {"requeuedActive": "active", "parkedInadmissible": "inadmissible", "notInAnyQueue": "none"}
_MANNER: dict[str, Compare] = {
    "assignment": assignment_differences,
    "borrowingLevel": _equal,
    "quotaReservedOnly": _members,
    "reassigned": _members,
}
_REMARKS: dict[str, Compare] = {
    "preemptionReasons": _mapping,
    "quotaReservedFalseReason": _mapping,
    "admissionCyclePreemptionSkips": _mapping,
    "failure": _failure,
    "partialPodSetAssignments": _partial,
}
WHOLE = {"admitted", "preempted", "inadmissible_or_pending"}
"""What every case says, of whatever component it is: the outcome of a whole cycle."""
