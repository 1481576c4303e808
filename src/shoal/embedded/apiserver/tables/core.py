"""The rows of the core group's own kinds and of events: nodes, namespaces, quotas, what is stored for others."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.tables.ages import UNKNOWN, since
from shoal.embedded.apiserver.tables.phrases import NONE
from shoal.embedded.apiserver.tables.printer import (
    Obj,
    Printer,
    age,
    condition_status,
    heads,
    name,
    name_and_age,
    name_and_creation,
    part,
)

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _node_state(obj: Obj) -> str:
    ready = condition_status(part(obj, "status").get("conditions"), "Ready")
    word = {"": "Unknown", "True": "Ready"}.get(ready, "NotReady")
    return f"{word},SchedulingDisabled" if part(obj, "spec").get("unschedulable") else word


def _roles(labels: dict[str, str]) -> str:
    found = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    found.add(labels.get(_ROLE_LABEL, ""))
    return ",".join(sorted(found - {""})) or NONE


def _address(obj: Obj, kind: str) -> str:
    addresses = part(obj, "status").get("addresses") or ()
    return next((one.get("address", "") for one in addresses if one.get("type") == kind), NONE)


def node(obj: Obj, now_s: int) -> list[Any]:
    info = part(part(obj, "status"), "nodeInfo")
    return [
        name(obj),
        _node_state(obj),
        _roles(part(obj["metadata"], "labels")),
        age(obj, now_s),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        *(info.get(key) or UNKNOWN for key in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def namespace(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), part(obj, "status").get("phase", ""), age(obj, now_s)]


def secret(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), obj.get("type", ""), len(part(obj, "data")), age(obj, now_s)]


def config_map(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), len(part(obj, "data")) + len(part(obj, "binaryData")), age(obj, now_s)]


def component_status(obj: Obj, _: int) -> list[Any]:
    found = next((one for one in obj.get("conditions") or () if one.get("type") == "Healthy"), None)
    if found is None:
        return [name(obj), "Unknown", "", ""]
    state = "Healthy" if found.get("status") == "True" else "Unhealthy"
    return [name(obj), state, found.get("message", ""), found.get("error", "")]


def resource_quota(obj: Obj, now_s: int) -> list[Any]:
    status = part(obj, "status")
    hard, used = part(status, "hard"), part(status, "used")
    requests: list[str] = []
    limits: list[str] = []
    for key in sorted(hard):
        column = limits if key.startswith("limits.") else requests
        column.append(f"{key}: {used.get(key, '0')}/{hard[key]}")
    return [name(obj), ", ".join(requests), ", ".join(limits), age(obj, now_s)]


def _source(component: str, instance: str) -> str:
    return f"{component}, {instance}" if instance else component


def event(obj: Obj, now_s: int) -> list[Any]:
    """Both faces of an event: `regarding` and `note` of the newer group are `involvedObject` and `message` here."""
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    series = obj.get("series")
    if series:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    about = part(obj, "involvedObject") or part(obj, "regarding")
    kind = about.get("kind", "").lower()
    source = part(obj, "source") or part(obj, "deprecatedSource")
    reporter = obj.get("reportingComponent") or obj.get("reportingController") or ""
    return [
        since(last, now_s),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        _source(source.get("component") or reporter, source.get("host") or obj.get("reportingInstance") or ""),
        (obj.get("message") or obj.get("note") or "").strip(),
        since(first, now_s),
        count,
        name(obj),
    ]


_WIDE_NODE = ("+Internal-IP", "+External-IP", "+OS-Image", "+Kernel-Version", "+Container-Runtime")
_EVENT_HEADS = heads(
    "Last Seen",
    "Type",
    "Reason",
    "Object",
    "+Subobject",
    "+Source",
    "Message",
    "+First Seen",
    "+Count",
    "+Name",
)

CORE: dict[tuple[str, str], Printer] = {
    ("", "componentstatuses"): Printer(heads("Name", "Status", "Message", "Error"), component_status),
    ("", "configmaps"): Printer(heads("Name", "Data", "Age"), config_map),
    ("", "events"): Printer(_EVENT_HEADS, event),
    ("", "limitranges"): Printer(heads("Name", "Created At:date"), name_and_creation),
    ("", "namespaces"): Printer(heads("Name", "Status", "Age"), namespace),
    ("", "nodes"): Printer(heads("Name", "Status", "Roles", "Age", "Version", *_WIDE_NODE), node),
    ("", "resourcequotas"): Printer(heads("Name", "Request", "Limit", "Age"), resource_quota),
    ("", "secrets"): Printer(heads("Name", "Type", "Data", "Age"), secret),
    ("", "serviceaccounts"): Printer(heads("Name", "Age"), name_and_age),
    ("events.k8s.io", "events"): Printer(_EVENT_HEADS, event),
}
