"""A release: the name of one installation, its namespace and version, and the labels by which its objects are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.units.errors import UserError, Where, excerpt

Obj = dict[str, Any]
FIELD_MANAGER = "shoal-install"
NAME, NAMESPACE = "shoal", "shoal-system"
INSTANCE, MANAGED_BY = "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"
PART = "app.kubernetes.io/component"
_MOST_LETTERS = 53
"""As with helm: names of objects are made of it."""


class Release(msgspec.Struct, frozen=True):
    name: str = NAME
    namespace: str = NAMESPACE
    version: str = ""

    def labels(self, component: str) -> dict[str, str]:
        return {
            "app.kubernetes.io/name": "shoal",
            INSTANCE: self.name,
            MANAGED_BY: "shoal",
            PART: component,
            "app.kubernetes.io/version": label_value(self.version),
        }

    def selector(self, component: str) -> dict[str, str]:
        """Labels of pods that stay the same through upgrades."""
        return {"app.kubernetes.io/name": "shoal", INSTANCE: self.name, PART: component}

    def labelled(self, obj: Obj, component: str, more: Mapping[str, str] | None = None) -> Obj:
        meta = obj["metadata"]
        return {
            **obj,
            "metadata": {**meta, "labels": {**(more or {}), **(meta.get("labels") or {}), **self.labels(component)}},
        }

    def owns(self, labels: Mapping[str, str]) -> bool:
        return labels.get(MANAGED_BY) == "shoal" and labels.get(INSTANCE) == self.name


def label_value(text: str) -> str:
    """Of a version: a plus sign may be in a version and not in a label."""
    return text.replace("+", "_")[:63]


def checked_name(name: str, where: Where, *, most: int = _MOST_LETTERS) -> str:
    """A DNS label. Raises UserError."""
    letters = name.replace("-", "")
    is_label = letters.isascii() and letters.isalnum() and letters == letters.lower()
    if not is_label or name[0] == "-" or name[-1] == "-" or len(name) > most:
        fix = f"use at most {most} lower-case letters, digits and hyphens"
        raise UserError(f"{excerpt(name)} is not a valid name", where=where, fix=fix)
    return name


def generated_name(now_s: float) -> str:
    """As helm generates names: with the time in seconds."""
    return f"{NAME}-{int(now_s)}"
