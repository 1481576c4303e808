"""Makes an object of a document that is a part of one, so that rules check fragments, rule files of Prometheus, PromQL
expressions and configurations of the device plugin and the MIG manager too."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from shoal.api.plain_objects import COUNTERS
from shoal.policy.advice import Obj
from shoal.policy.fields import maps
from shoal.policy.fragments import is_container, is_pod, is_pod_spec

_NAME = "fragment"


class Wrapped(NamedTuple):
    obj: Obj
    prefix: str
    """What is before a field of the document in the paths of the object."""

    def field(self, path: str) -> str:
        """The path in the document."""
        return path.removeprefix(self.prefix).removeprefix(".") if path.startswith(self.prefix) else path


def wrapped(value: Any) -> Wrapped | None:
    """None for a document that is no part of a checked object."""
    if isinstance(value, list):
        is_rules = any(isinstance(each.get("expr"), str) for each in maps(value))
        return _prometheus([{"name": _NAME, "rules": value}], "spec.groups[0].rules") if is_rules else None
    if not isinstance(value, dict):
        return None
    if any(maps(group.get("rules")) for group in maps(value.get("groups"))):
        return _prometheus(value["groups"], "spec")
    if isinstance(value.get("expr"), str):
        return _prometheus([{"name": _NAME, "rules": [value]}], "spec.groups[0].rules[0]")
    if "sharing" in value or "mig-configs" in value:
        text = msgspec.yaml.encode(value).decode() if _is_plain(value) else ""
        return Wrapped(_object("v1", "ConfigMap", data={_NAME: text}), f"data[{_NAME}]")
    if isinstance(value.get(COUNTERS), str):
        return Wrapped(_object("v1", "ConfigMap", data={COUNTERS: value[COUNTERS]}), "")
    if is_pod(value):
        return Wrapped(_object("v1", "Pod", spec=value["spec"]), "")
    if is_pod_spec(value):
        return Wrapped(_object("v1", "Pod", spec=value), "spec")
    if is_container(value):
        return Wrapped(_object("v1", "Pod", spec={"containers": [value]}), "spec.containers[0]")
    return None


def _prometheus(groups: list[Any], prefix: str) -> Wrapped:
    return Wrapped(_object("monitoring.coreos.com/v1", "PrometheusRule", spec={"groups": groups}), prefix)


def _object(version: str, kind: str, **content: Any) -> Obj:
    """In a namespace of its own: the document says nothing about one."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": _NAME, "namespace": _NAME}, **content}


def _is_plain(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
