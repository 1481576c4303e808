"""Figures of the quota tree against those that a case gives."""

from __future__ import annotations

from typing import Any

from shoal.api.wire import to_quantity

from .facts import amount


def available_differences(name: str, wanted: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """By node, flavor and resource; what is nowhere mentioned is 0."""
    found = []
    for node, figures in wanted.items():
        for each in figures:
            fr = (each["flavor"], each["resource"])
            said = amount(each["resource"], to_quantity(each["quantity"]))
            ours = got[node].get(fr, 0) if node in got else None
            # A debt may be told as nothing being left.
            if said != ours and not (said == 0 and ours is not None and ours < 0):
                found.append(f"{name} {node} {'/'.join(fr)}: expected {said}, got {ours}")
    return found


def shares_differences(name: str, wanted: list[dict[str, Any]], got: list[dict[str, Any]]) -> list[str]:
    ours = {(each["kind"], each["name"]): each for each in got}
    found = []
    for said in wanted:
        share = ours.get((said.get("kind", "ClusterQueue"), said["name"]))
        if share is None:
            found.append(f"{name} {said['name']}: there is no such node")
            continue
        found += [
            f"{name} {said['name']} {key}: expected {each}, got {share[key]}"
            for key, each in said.items()
            if key in share and share[key] != each
        ]
    return found
