"""Checks the requests, constraints and configuration of a claim."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, not_supported, required, too_long, too_many
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.resource.names import check_class_name, check_driver, check_label, check_qualified
from shoal.embedded.apiserver.kinds.resource.selectors import check_selectors
from shoal.embedded.apiserver.kinds.spellings import label_key_faults, label_value_faults
from shoal.units.quantity import Quantity

Names = Mapping[str, frozenset[str]]
"""The requests of a claim, and the alternatives of each."""

MOST_REQUESTS, MOST_CONSTRAINTS, MOST_CONFIGS = 32, 32, 32
_MOST_ALTERNATIVES = 8
_LARGEST_PARAMETERS = 10 * 1024
_MODES = ("All", "ExactCount")
EFFECTS = ("NoExecute", "NoSchedule", "None")
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_REFERENCE = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def default_devices(devices: Obj) -> None:
    for request in devices.get("requests") or ():
        asked = [request["exactly"]] if request.get("exactly") is not None else []
        for one in [*asked, *(request.get("firstAvailable") or ())]:
            one["allocationMode"] = one.get("allocationMode") or "ExactCount"
            if one["allocationMode"] == "ExactCount" and not one.get("count"):
                one["count"] = 1
            for toleration in one.get("tolerations") or ():
                toleration["operator"] = toleration.get("operator") or "Equal"


def request_names(devices: Obj) -> Names:
    return {
        request.get("name", ""): frozenset(one.get("name", "") for one in request.get("firstAvailable") or ())
        for request in devices.get("requests") or ()
    }


def check_devices(devices: Obj, path: str, errors: Errors) -> None:
    names = request_names(devices)
    requests = devices.get("requests") or []
    if _is_short(requests, MOST_REQUESTS, f"{path}.requests", errors):
        for place, request in enumerate(requests):
            _check_request(request, f"{path}.requests[{place}]", errors)
        check_unique([one.get("name", "") for one in requests], f"{path}.requests", errors)
    constraints = devices.get("constraints") or []
    if _is_short(constraints, MOST_CONSTRAINTS, f"{path}.constraints", errors):
        for place, one in enumerate(constraints):
            _check_constraint(one, names, f"{path}.constraints[{place}]", errors)
    configs = devices.get("config") or []
    if _is_short(configs, MOST_CONFIGS, f"{path}.config", errors):
        for place, one in enumerate(configs):
            check_references(one.get("requests") or [], names, f"{path}.config[{place}].requests", errors)
            check_configuration(one, f"{path}.config[{place}]", errors)


def _is_short(items: list[Obj], most: int, path: str, errors: Errors) -> bool:
    if len(items) > most:
        errors.append(too_many(path, len(items), most))
    return len(items) <= most


def check_unique(values: list[str], path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for place, value in enumerate(values):
        if value in seen:
            errors.append(duplicate(f"{path}[{place}]", value))
        seen.add(value)


def _check_request(request: Obj, path: str, errors: Errors) -> None:
    check_label(request.get("name", ""), f"{path}.name", errors)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is not None and alternatives:
        errors.append(bad_value(path, None, f"{_ONE_KIND}, but multiple fields are set"))
    elif exactly is not None:
        _check_asked(exactly, f"{path}.exactly", errors)
    elif not alternatives:
        errors.append(required(path, _ONE_KIND))
    elif _is_short(alternatives, _MOST_ALTERNATIVES, f"{path}.firstAvailable", errors):
        for place, one in enumerate(alternatives):
            here = f"{path}.firstAvailable[{place}]"
            check_label(one.get("name", ""), f"{here}.name", errors)
            _check_asked(one, here, errors)
        check_unique([one.get("name", "") for one in alternatives], f"{path}.firstAvailable", errors)


def _check_asked(asked: Obj, path: str, errors: Errors) -> None:
    check_class_name(asked.get("deviceClassName", ""), f"{path}.deviceClassName", errors)
    check_selectors(asked.get("selectors") or [], f"{path}.selectors", errors)
    mode, count = asked.get("allocationMode", ""), asked.get("count", 0)
    if mode == "All":
        if count:
            words = "must not be specified when allocationMode is 'All'"
            errors.append(bad_value(f"{path}.count", count, words))
    elif mode == "ExactCount":
        if count <= 0:
            errors.append(bad_value(f"{path}.count", count, "must be greater than zero"))
    else:
        errors.append(not_supported(f"{path}.allocationMode", mode, _MODES))
    for place, toleration in enumerate(asked.get("tolerations") or ()):
        check_toleration(toleration, f"{path}.tolerations[{place}]", errors)
    for name, amount in ((asked.get("capacity") or {}).get("requests") or {}).items():
        here = f"{path}.capacity.requests"
        check_qualified(name, here, errors)
        if Quantity.parse(amount).nano < 0:
            errors.append(bad_value(f"{here}[{name}]", amount, "must be greater than or equal to 0"))


def check_toleration(toleration: Obj, path: str, errors: Errors) -> None:
    key, value = toleration.get("key", ""), toleration.get("value", "")
    operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
    if key:
        add_faults(errors, f"{path}.key", key, label_key_faults(key))
    if operator == "Exists":
        if value:
            errors.append(bad_value(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        add_faults(errors, f"{path}.value", value, label_value_faults(value))
    elif not operator:
        errors.append(required(f"{path}.operator"))
    else:
        errors.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, EFFECTS))


def _check_constraint(constraint: Obj, names: Names, path: str, errors: Errors) -> None:
    check_references(constraint.get("requests") or [], names, f"{path}.requests", errors)
    for key in ("matchAttribute", "distinctAttribute"):
        if (name := constraint.get(key)) is not None:
            check_qualified(name, f"{path}.{key}", errors, fully=True)
            return
    words = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    errors.append(required(path, words))


def check_references(references: list[str], names: Names, path: str, errors: Errors) -> None:
    if len(references) > MOST_REQUESTS:
        errors.append(too_many(path, len(references), MOST_REQUESTS))
        return
    for place, reference in enumerate(references):
        check_reference(reference, names, f"{path}[{place}]", errors)
    check_unique(references, path, errors)


def check_reference(reference: str, names: Names, path: str, errors: Errors) -> None:
    parts = reference.split("/")
    if len(parts) > 2:
        errors.append(bad_value(path, reference, _REFERENCE))
        return
    for part in parts:
        check_label(part, path, errors)
    if parts[0] not in names or (len(parts) == 2 and parts[1] not in names[parts[0]]):
        errors.append(bad_value(path, reference, _REFERENCE))


def check_configuration(config: Obj, path: str, errors: Errors) -> None:
    if (opaque := config.get("opaque")) is None:
        errors.append(required(f"{path}.opaque"))
        return
    check_driver(opaque.get("driver", ""), f"{path}.opaque.driver", errors)
    check_free_form(opaque.get("parameters"), f"{path}.opaque.parameters", _LARGEST_PARAMETERS, errors)


def check_free_form(value: object, path: str, largest: int, errors: Errors) -> None:
    """Of a JSON object that only the driver understands."""
    if value is None:
        errors.append(required(path))
    elif len(msgspec.json.encode(value)) > largest:
        errors.append(too_long(path, largest))
    elif not isinstance(value, dict):
        errors.append(bad_value(path, "<value omitted>", "must be a valid JSON object"))
