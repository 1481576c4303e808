"""Metrics as v1 spells them in annotations: flat fields where v2 has `metric` and `target`."""

from __future__ import annotations

from shoal.embedded.apiserver.kinds.complaints import Obj

_FIELDS = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}


def to_old_metric(metric: Obj, *, is_status: bool = False) -> Obj:
    kind = metric.get("type", "")
    field = _FIELDS.get(kind, "")
    source = metric.get(field) or {}
    side = source.get("current" if is_status else "target") or {}
    said: Obj = {}
    if kind in ("Resource", "ContainerResource"):
        said = {key: source[key] for key in ("name", "container") if key in source}
        _put(said, _name("AverageUtilization", is_status), side.get("averageUtilization"))
        _put(said, _name("AverageValue", is_status), side.get("averageValue"))
        return {"type": kind, field: said}
    named = source.get("metric") or {}
    said["metricName"] = named.get("name", "")
    if kind == "Object":
        said["target"] = source.get("describedObject") or {}
        _put(said, _name("Value", is_status), side.get("value") or "0")
        _put(said, "averageValue", side.get("averageValue"))
        _put(said, "selector", named.get("selector"))
    elif kind == "Pods":
        _put(said, _name("AverageValue", is_status), side.get("averageValue"))
        _put(said, "selector", named.get("selector"))
    else:
        _put(said, "metricSelector", named.get("selector"))
        _put(said, _name("Value", is_status), side.get("value"))
        _put(said, _name("AverageValue", is_status), side.get("averageValue"))
    return {"type": kind, field: said}


def from_old_metric(metric: Obj, *, is_status: bool = False) -> Obj:
    kind = metric.get("type", "")
    field = _FIELDS.get(kind, "")
    said = metric.get(field) or {}
    share, average = said.get(_name("AverageUtilization", is_status)), said.get(_name("AverageValue", is_status))
    value = said.get(_name("Value", is_status))
    if kind == "Object":
        average = said.get("averageValue")
        value = None if average is not None and value == "0" else value
    side: Obj = {}
    if not is_status:
        side["type"] = "Utilization" if share is not None else "AverageValue" if average is not None else "Value"
    _put(side, "averageUtilization", share)
    _put(side, "averageValue", average)
    _put(side, "value", value)
    source: Obj = {"current" if is_status else "target": side}
    if kind in ("Resource", "ContainerResource"):
        source |= {key: said[key] for key in ("name", "container") if key in said}
    else:
        source["metric"] = {"name": said.get("metricName", "")}
        _put(source["metric"], "selector", said.get("metricSelector" if kind == "External" else "selector"))
    if kind == "Object":
        source["describedObject"] = said.get("target") or {}
    return {"type": kind, field: source}


def _name(suffix: str, is_status: bool) -> str:
    return ("current" if is_status else "target") + suffix


def _put(into: Obj, key: str, value: object) -> None:
    if value is not None:
        into[key] = value
