"""The view of one pod: the fields for decisions about it, for writes to it, and for reports why it is not
considered.
"""

from __future__ import annotations

import msgspec

from shoal.engine.events import PodArrived, PodBound


class PodView(msgspec.Struct, frozen=True):
    """The last seen state of a pod. `key`: the name of the pod in the engine, namespace/name."""

    key: str
    namespace: str
    name: str
    uid: str
    version: int
    scheduler: str
    event: PodArrived | PodBound | None = None
    """The event that was reported to the engine; None while the pod is held back."""
    held: str = ""
    """Why a pending pod of Shoal is not reported to the engine: scheduling gates, missing volumes, a fault."""
    node: str = ""
    nominated: str = ""
    generation: int = 0
    created_s: float = 0.0
    bound_s: float = 0.0
    """When it was bound, according to its PodScheduled condition."""
    workload: str = ""
    """The Workload that it belongs to as namespace/name, where the pod says so."""
    pod_set: str = ""
    """The pod set of the Workload."""
    has_succeeded: bool = False
