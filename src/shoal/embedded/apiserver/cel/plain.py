"""Converts the result of an expression to JSON, for patches, objects of policies and audit annotations."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.times import duration_text, timestamp_text
from shoal.embedded.apiserver.cel.values import Opaque, Optional, TypeName, kind_name


def to_json(value: Any) -> Any:
    """The value with nothing in it that JSON does not have; a CelFault where something has no such form."""
    if isinstance(value, dict):
        return {str(key): to_json(held) for key, held in value.items()}
    if isinstance(value, list):
        return [to_json(one) for one in value]
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, Opaque) and value.kind in ("JSONPatch", "ip", "cidr", "url"):
        return to_json(value.held) if value.kind == "JSONPatch" else str(value.held)
    if isinstance(value, Opaque | Optional | TypeName | bytes):
        raise CelFault(f"a value of type {kind_name(value)} cannot stand in an object")
    return value
