"""Detects whether Kueue itself runs in a set of manifests, by the signs that `shoal run` uses (see `client.presence`).

Kueue is looked for in its usual namespace, in the one that its Configuration names, and in the one that a
ShoalConfiguration names. Any user may have a Lease or a Deployment of these names elsewhere.
"""

from __future__ import annotations

from typing import Any

from shoal.api.decode import Unknown
from shoal.api.kueue import Configuration
from shoal.api.run_configuration import RUN_KIND
from shoal.api.workloads import Deployment
from shoal.client.kind import LEASES
from shoal.client.presence import KUEUE
from shoal.store.inventory import Inventory


def runs_kueue(inventory: Inventory) -> bool:
    """Whether Kueue runs: its Deployment has ready pods, or the Lease of its leader is held."""
    others = [placed.value for placed in inventory.others()]
    spaces = _spaces(inventory, others)
    for placed in inventory.of(Deployment):
        meta = placed.value.metadata
        if meta.namespace in spaces and meta.name in KUEUE.deployments and placed.value.status.ready_replicas:
            return True
    return any(
        _is_lease(one) and one.metadata.namespace in spaces and bool(_inside(one.raw, "spec", "holderIdentity"))
        for one in others
    )


def _is_lease(value: Unknown) -> bool:
    """Whether it is the Lease of Kueue's leader, in any namespace."""
    return (value.api_version, value.kind) == (LEASES.api_version, LEASES.name) and value.metadata.name in KUEUE.leases


def _spaces(inventory: Inventory, others: list[Unknown]) -> set[str]:
    reported = [placed.value.namespace for placed in inventory.of(Configuration)]
    reported += [_inside(one.raw, "namespaces", "kueue") for one in others if one.kind == RUN_KIND]
    return {KUEUE.namespace, *(name for name in reported if name)}


def _inside(raw: dict[str, Any], outer: str, inner: str) -> str:
    found = raw.get(outer)
    value = found.get(inner) if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""
