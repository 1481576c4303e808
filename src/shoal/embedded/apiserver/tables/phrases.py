"""Pieces of cells that many kinds share: selectors, containers, lists cut after a few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.embedded.apiserver.label_selectors import text_of

Obj = dict[str, Any]

NONE = "<none>"
UNSET = "<unset>"


def labels(found: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={found[key]}" for key in sorted(found)) if found else NONE


def selector(found: Obj | None) -> str:
    return text_of(found) or NONE


def containers(template: Obj) -> tuple[str, str]:
    """The names and the images of a pod template's containers."""
    found = (template.get("spec") or {}).get("containers") or ()
    return ",".join(one.get("name", "") for one in found), ",".join(one.get("image", "") for one in found)


def several(found: Sequence[str], count: int, shown: int, separator: str = ",") -> str:
    """The first few of many."""
    text = separator.join(found[:shown])
    return f"{text} + {count - shown} more..." if count > shown else text


def truth(value: bool | None) -> str:
    return UNSET if value is None else str(value)
