"""Finds the labels and annotations of a Node that Shoal wrote, by the managers of its fields, for their removal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Obj = dict[str, Any]
_WRITERS = frozenset({"shoal-operator", "shoal-agent-labels", "shoal-agent-discovery", "shoal"})
_PREFIXES = ("nvidia.com/", "feature.node.kubernetes.io/pci-", "shoal.dev/")
_SIDES = ("labels", "annotations")


def removal_patch(node: Obj) -> Obj:
    """A merge patch that removes them; empty if there are none. Fields with a second writer stay."""
    metadata: Obj = {}
    for side in _SIDES:
        ours: set[str] = set()
        others: set[str] = set()
        for entry in node["metadata"].get("managedFields") or ():
            found = _names(entry, side)
            (ours if entry.get("manager") in _WRITERS else others).update(found)
        there = node["metadata"].get(side) or {}
        gone = sorted(name for name in ours - others if name in there and name.startswith(_PREFIXES))
        if gone:
            metadata[side] = dict.fromkeys(gone)
    return {"metadata": metadata} if metadata else {}


def _names(entry: Mapping[str, Any], side: str) -> set[str]:
    fields = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get(f"f:{side}") or {}
    return {name[2:] for name in fields if name.startswith("f:")}
