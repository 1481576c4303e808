"""Between the versions and groups of built-in kinds that are served in more than one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.embedded.apiserver.kinds.autoscaling.conversion import convert as convert_autoscaler
from shoal.embedded.apiserver.kinds.event_conversion import convert_event

Obj = dict[str, Any]


def convert_builtin(obj: Obj, to: str) -> Obj:
    """The object in another apiVersion. Kinds whose versions differ in nothing but their name need no line here."""
    converted = _CONVERSIONS.get(obj.get("kind", ""))
    return converted(obj, to) if converted is not None else {**obj, "apiVersion": to}


def _autoscaler(obj: Obj, to: str) -> Obj:
    return convert_autoscaler(obj, obj.get("apiVersion", to), to)


_CONVERSIONS: Mapping[str, Callable[[Obj, str], Obj]] = {
    "Event": convert_event,
    "HorizontalPodAutoscaler": _autoscaler,
}
