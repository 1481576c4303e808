"""One case about requirements: decided from a copy without its expectations, then judged."""

from __future__ import annotations

from typing import Any

from shoal.autoscale.requirements import (
    WELL_KNOWN,
    AdmittedValues,
    RequirementSet,
    admitted_values,
    min_values_of,
    requirement_set,
)
from shoal.units.errors import ShoalError

from ..result import Result

FAMILY = "requirements"
_EXPECTED = frozenset({"expect", "overlaps"})


def results_of_case(raw: dict[str, Any]) -> list[Result]:
    diff: list[str] = []
    for number, check in enumerate(raw.get("checks") or []):
        asked = {key: value for key, value in check.items() if key not in _EXPECTED}
        expected = {key: value for key, value in check.items() if key in _EXPECTED}
        try:
            answer = _answer(str(raw.get("op")), asked)
        except ShoalError as error:
            answer = {"error": str(error)}
        diff += [
            f"check {number}: {key}: expected {value!r}, got {answer.get(key, answer)!r}"
            for key, value in expected.items()
            if _ordered(answer.get(key)) != _ordered(value)
        ]
    if not raw.get("checks"):
        diff = ["the case checks nothing"]
    return [Result(str(raw.get("id", "")), FAMILY, "fail" if diff else "pass", 0 if diff else 2, diff)]


def _answer(op: str, check: dict[str, Any]) -> dict[str, Any]:
    match op:
        case "intersection":
            one, other = _admitted(check["a"]), _admitted(check["b"])
            return {"expect": _normal_form(one.intersection(other)), "overlaps": one.overlaps(other)}
        case "has":
            return {"expect": _admitted(check["requirement"]).has(check["value"])}
        case "compatible":
            undefined = {"none": (), "well-known": WELL_KNOWN}
            allowed = check["allowUndefined"]
            allow = undefined[allowed] if isinstance(allowed, str) else allowed
            return {"expect": _set(check["offered"]).is_compatible(_set(check["wanted"]), allow)}
        case "minValues":
            types = [{key: [value] for key, value in each["labels"].items()} for each in check["instanceTypes"]]
            found = min_values_of(types, _set(check["requirements"]).min_values())
            if found.is_satisfied:
                return {"expect": {"satisfied": True, "needed": found.needed}}
            return {"expect": {"satisfied": False, "missing": dict(found.missing)}}
        case _:
            return {}


def _admitted(raw: dict[str, Any]) -> AdmittedValues:
    return admitted_values(raw["operator"], raw.get("values") or (), raw.get("minValues"))


def _set(raw: list[dict[str, Any]]) -> RequirementSet:
    return requirement_set((each["key"], _admitted(each)) for each in raw)


def _normal_form(admitted: AdmittedValues) -> dict[str, Any]:
    form = {
        "kind": admitted.kind,
        "values": sorted(admitted.values) or None,
        "gte": admitted.gte,
        "lte": admitted.lte,
        "minValues": admitted.min_values,
    }
    return {key: value for key, value in form.items() if value is not None}


def _ordered(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("values"), list):
        return {**value, "values": sorted(value["values"])}
    return value
