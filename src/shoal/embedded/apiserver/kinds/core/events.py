"""Events, in the core group and in events.k8s.io: the same objects with other names for some fields.

What comes by the newer group is checked more strictly; the rules are those of the core form, which both are brought
into first.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed, add_faults
from shoal.embedded.apiserver.kinds.event_conversion import NEWER, to_core
from shoal.embedded.apiserver.kinds.spellings import label_key_faults, subdomain_faults
from shoal.embedded.apiserver.names import path_segment_fault
from shoal.embedded.apiserver.strategy import Strategy

_OBJECT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_LONGEST = 128
_LONGEST_NOTE = 1024
_UNSET = ("firstTimestamp", "lastTimestamp", "count")
_FIXED = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type",
    "eventTime", "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip
_SHOWN = {"reportingComponent": "reportingController"}


class EventStrategy(Strategy):
    counts_generation = False
    creates_on_update = True

    def __init__(self, *, is_newer: bool = False) -> None:
        self._prefix = "regarding" if is_newer else "involvedObject"
        others = ("reason", "reportingController", "type") if is_newer else (
            "reason", "reportingComponent", "source", "type")  # fmt: skip
        self._selectable = (*(f"{self._prefix}.{key}" for key in _OBJECT), *others)

    def default(self, obj: Obj) -> None:
        if obj.get("apiVersion") == NEWER:
            obj.setdefault("regarding", {})
            return
        # What Go always writes of an event, even empty.
        for key in ("involvedObject", "source"):
            obj.setdefault(key, {})
        for key in ("reportingComponent", "reportingInstance"):
            obj.setdefault(key, "")

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        event = to_core(obj)
        _check_always(event, errors)
        if obj.get("apiVersion") == NEWER:
            _check_strictly(event, errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        event, before = to_core(new), to_core(old)
        _check_always(event, errors)
        if new.get("apiVersion") == NEWER:
            if event.get("series") != before.get("series"):
                _check_series(event, errors)
            for key in _FIXED:
                add_changed(errors, _SHOWN.get(key, key), event.get(key), before.get(key))
        return errors

    def name_fault(self, name: str, is_prefix: bool) -> str:
        """Older than the rules for names of other kinds."""
        return path_segment_fault(name, is_prefix)

    def fields(self, obj: Obj) -> Mapping[str, str]:
        event = to_core(obj)
        about = event.get("involvedObject") or {}
        component = event.get("reportingComponent", "")
        found = {f"{prefix}.{key}": about.get(key, "") for prefix in ("involvedObject", "regarding") for key in _OBJECT}
        found |= {"reason": event.get("reason", ""), "type": event.get("type", "")}
        found |= {"reportingComponent": component, "reportingController": component}
        found["source"] = (event.get("source") or {}).get("component") or component
        return found

    def selectable(self) -> tuple[str, ...]:
        return self._selectable


def _check_always(event: Obj, errors: Errors) -> None:
    namespace = event["metadata"].get("namespace", "")
    about = (event.get("involvedObject") or {}).get("namespace", "")
    if not event.get("eventTime"):
        is_apart = namespace != about if about else namespace not in ("", "default")
    else:
        is_apart = not about and namespace not in ("default", "kube-system")
    if is_apart:
        errors.append(bad_value("involvedObject.namespace", about, "does not match event.namespace"))
    if event.get("eventTime"):
        _check_timed(event, errors)
    add_faults(errors, "namespace", namespace, subdomain_faults(namespace))


def _check_timed(event: Obj, errors: Errors) -> None:
    controller = event.get("reportingComponent", "")
    if not controller:
        errors.append(required("reportingController"))
    add_faults(errors, "reportingController", controller, label_key_faults(controller))
    for key, longest in (("reportingInstance", _LONGEST), ("action", _LONGEST), ("reason", _LONGEST)):
        value = event.get(key, "")
        if not value:
            errors.append(required(key))
        _check_length(key, value, longest, errors)
    _check_length("message", event.get("message", ""), _LONGEST_NOTE, errors)


def _check_length(key: str, value: str, longest: int, errors: Errors) -> None:
    if len(value.encode()) > longest:
        errors.append(bad_value(key, "", f"can have at most {longest} characters"))


def _check_series(event: Obj, errors: Errors) -> None:
    series = event.get("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        errors.append(bad_value("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))


def _check_strictly(event: Obj, errors: Errors) -> None:
    _check_series(event, errors)
    if not event.get("eventTime"):
        errors.append(required("eventTime"))
    if (kind := event.get("type", "")) not in ("Normal", "Warning"):
        errors.append(bad_value("type", "", f"has invalid value: {kind}"))
    errors.extend(bad_value(key, "", "needs to be unset") for key in _UNSET if event.get(key))
    source = event.get("source") or {}
    if source.get("component") or source.get("host"):
        errors.append(bad_value("source", "", "needs to be unset"))
