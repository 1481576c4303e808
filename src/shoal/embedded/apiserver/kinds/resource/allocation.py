"""Checks the status of a claim: allocated devices, the pods that may use it, and what drivers report."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, not_allowed, not_supported, required, too_many
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed
from shoal.embedded.apiserver.kinds.pods.placement import check_node_selector
from shoal.embedded.apiserver.kinds.resource.names import check_driver, check_label, check_pool, check_uid
from shoal.embedded.apiserver.kinds.resource.requests import (
    MOST_CONFIGS,
    Names,
    check_configuration,
    check_free_form,
    check_reference,
    check_references,
    check_toleration,
    request_names,
)

_MOST_CONSUMERS = 256
_MOST_RESULTS = 32
_MOST_CONDITIONS = 8
_LARGEST_DATA = 10 * 1024
_LATE = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
_SOURCES = ("FromClaim", "FromClass")


def check_claim_status(new: Obj, old: Obj) -> Errors:
    errors: Errors = []
    status, before = new.get("status") or {}, old.get("status") or {}
    _check_consumers(status, before, "deletionTimestamp" in new["metadata"], errors)
    allocation, former = status.get("allocation"), before.get("allocation")
    _check_reports(status.get("devices") or [], allocation or {}, errors)
    if allocation is not None and former is not None:
        add_changed(errors, "status.allocation", allocation, former)
    elif allocation is not None:
        names = request_names((new.get("spec") or {}).get("devices") or {})
        _check_allocation(allocation, names, "status.allocation", errors)
    return errors


def _check_consumers(status: Obj, before: Obj, is_going: bool, errors: Errors) -> None:
    path, consumers = "status.reservedFor", status.get("reservedFor") or []
    if len(consumers) > _MOST_CONSUMERS:
        errors.append(too_many(path, len(consumers), _MOST_CONSUMERS))
        return
    seen: set[str] = set()
    for place, one in enumerate(consumers):
        errors.extend(required(f"{path}[{place}].{key}") for key in ("resource", "name", "uid") if not one.get(key))
    for place, one in enumerate(consumers):
        if one.get("uid", "") in seen:
            errors.append(duplicate(f"{path}[{place}]", one.get("uid", "")))
        seen.add(one.get("uid", ""))
    if not consumers:
        return
    if status.get("allocation") is None:
        errors.append(not_allowed(path, "may not be specified when `allocated` is not set"))
    elif is_going and any(one not in (before.get("reservedFor") or ()) for one in consumers):
        errors.append(not_allowed(path, _LATE))


def _check_allocation(allocation: Obj, names: Names, path: str, errors: Errors) -> None:
    devices = allocation.get("devices") or {}
    results, configs = devices.get("results") or [], devices.get("config") or []
    if len(results) > _MOST_RESULTS:
        errors.append(too_many(f"{path}.devices.results", len(results), _MOST_RESULTS))
    else:
        for place, result in enumerate(results):
            _check_result(result, names, f"{path}.devices.results[{place}]", errors)
    if len(configs) > 2 * MOST_CONFIGS:
        errors.append(too_many(f"{path}.devices.config", len(configs), 2 * MOST_CONFIGS))
    else:
        for place, config in enumerate(configs):
            here, source = f"{path}.devices.config[{place}]", config.get("source", "")
            if not source:
                errors.append(required(f"{here}.source"))
            elif source not in _SOURCES:
                errors.append(not_supported(f"{here}.source", source, _SOURCES))
            check_references(config.get("requests") or [], names, f"{here}.requests", errors)
            check_configuration(config, here, errors)
    if (selector := allocation.get("nodeSelector")) is not None:
        check_node_selector(selector, f"{path}.nodeSelector", errors)


def _check_result(result: Obj, names: Names, path: str, errors: Errors) -> None:
    check_reference(result.get("request", ""), names, f"{path}.request", errors)
    _check_device(result, path, errors)
    for place, toleration in enumerate(result.get("tolerations") or ()):
        check_toleration(toleration, f"{path}.tolerations[{place}]", errors)


def _check_device(device: Obj, path: str, errors: Errors) -> None:
    check_driver(device.get("driver", ""), f"{path}.driver", errors)
    check_pool(device.get("pool", ""), f"{path}.pool", errors)
    check_label(device.get("device", ""), f"{path}.device", errors)
    if (share := device.get("shareID")) is not None:
        check_uid(share, f"{path}.shareID", errors)


def _check_reports(reports: list[Obj], allocation: Obj, errors: Errors) -> None:
    held = {_id(one) for one in (allocation.get("devices") or {}).get("results") or ()}
    seen: set[str] = set()
    for place, one in enumerate(reports):
        path, named = f"status.devices[{place}]", _id(one)
        _check_device(one, path, errors)
        if named not in held:
            errors.append(bad_value(path, named, "must be an allocated device in the claim"))
        conditions = one.get("conditions") or []
        if len(conditions) > _MOST_CONDITIONS:
            errors.append(too_many(f"{path}.conditions", len(conditions), _MOST_CONDITIONS))
        if one.get("data"):
            check_free_form(one["data"], f"{path}.data", _LARGEST_DATA, errors)
        if named in seen:
            errors.append(duplicate(path, named))
        seen.add(named)


def _id(device: Obj) -> str:
    named = "/".join(device.get(key, "") for key in ("driver", "pool", "device"))
    return f"{named}/{device['shareID']}" if device.get("shareID") else named
