"""What the plan of an adoption is made from: objects of the other project as the cluster has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from shoal.api.lease import LeaseSpec
from shoal.install.adoption.projects import AdoptedKind
from shoal.install.preflight.facts import Right

Obj = dict[str, Any]
HOLDER = "shoal-install"
"""The holder of a Lease that a revert holds for the project."""
_USUAL_LEASE_S = 15


class AdoptionFacts(msgspec.Struct, frozen=True):
    deployments: tuple[Obj, ...] = ()
    """Of all namespaces."""
    hooks: tuple[Obj, ...] = ()
    """All configurations of admission webhooks."""
    definitions: tuple[Obj, ...] = ()
    api_services: tuple[Obj, ...] = ()
    objects: Mapping[AdoptedKind, tuple[Obj, ...]] = {}
    services: tuple[Obj, ...] = ()
    """Of the namespace of the project."""
    settings: Mapping[str, str] = {}
    """The data of the ConfigMap of the project."""
    config_map: str = ""
    """The name of that ConfigMap; empty if there is none."""
    pods: int = 0
    """Pods with a node that one of its schedulers placed."""
    reservation_pods: int = 0
    """Of KAI: they hold GPUs whose parts other pods use."""
    leases: tuple[Obj, ...] = ()
    """Of its leaders."""
    now: datetime | None = None
    denied: tuple[Right, ...] = ()


def live_holder(lease: Obj, now: datetime | None) -> str:
    """The leader of the project that has renewed the Lease in time; empty if there is none."""
    try:
        spec = msgspec.convert(lease.get("spec") or {}, LeaseSpec)
        renewed = spec.renewed_at()
    except msgspec.ValidationError:
        return ""
    holder = spec.holder_identity or ""
    if now is None or renewed is None or renewed.tzinfo is None or holder == HOLDER:
        return ""
    lasts = timedelta(seconds=spec.lease_duration_seconds or _USUAL_LEASE_S)
    return holder if renewed + lasts > now else ""
