"""The view of one pod: enough to decide about it, to write to it, and to report why it is not considered."""

from __future__ import annotations

import msgspec

from shoal.engine.events import PodArrived, PodBound


class PodView(msgspec.Struct, frozen=True):
    """A pod as it was seen last. `key` is what the engine calls it: namespace/name."""

    key: str
    namespace: str
    name: str
    uid: str
    version: int
    scheduler: str
    event: PodArrived | PodBound | None = None
    """What the engine was told of it; None while it is kept from the engine."""
    held: str = ""
    """Why it is kept from the engine though it waits for us: closed gates, volumes that are not there, a fault."""
    node: str = ""
    nominated: str = ""
    generation: int = 0
    created_s: float = 0.0
    bound_s: float = 0.0
    """When it was bound, as its PodScheduled condition says."""
    workload: str = ""
    """The Workload that it belongs to as namespace/name, where the pod says so."""
    pod_set: str = ""
    """And the pod set of it."""
    has_succeeded: bool = False
