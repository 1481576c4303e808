"""Records when each node's lease was last renewed, by this process's own clock, because clocks of nodes may differ.

A renewal of the lease and a status write of the kubelet count as heartbeats. Nothing else does, so that a write of this
controller to a silent node is not a heartbeat. A thousand nodes need a thousand floats.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from shoal.api.lease import Lease
from shoal.client.item import Item
from shoal.client.node_health import NodeFacts

GRACE_S = 50.0
STARTUP_GRACE_S = 60.0
"""The grace period of a node that has never reported whether it is ready."""


class Beat(msgspec.Struct, gc=False):
    uid: str
    zone: str
    heard_s: float
    ready: str = ""
    """The status of its Ready condition; empty while it has none."""
    heartbeat: str | None = None
    renewed: str | None = None

    def is_silent(self, now_s: float) -> bool:
        return now_s > self.heard_s + (GRACE_S if self.ready else STARTUP_GRACE_S)


class Heartbeats:
    def __init__(self) -> None:
        self.beats: dict[str, Beat] = {}

    def node(self, item: Item, facts: NodeFacts, now_s: float) -> Beat:
        beat = self.beats.get(item.name)
        ready = facts.conditions.get("Ready")
        if beat is None or beat.uid != item.uid:
            heard_s = now_s if ready is not None else _seconds(facts.metadata.creation_timestamp, now_s)
            beat = self.beats[item.name] = Beat(item.uid, facts.zone, heard_s)
        beat.zone = facts.zone
        if ready is None:
            beat.ready = ""
        else:
            if ready.last_heartbeat_time != beat.heartbeat or not beat.ready:
                beat.heard_s = max(beat.heard_s, now_s) if ready.status != "Unknown" else beat.heard_s
                beat.heartbeat = ready.last_heartbeat_time
            beat.ready = ready.status
        return beat

    def lease(self, item: Item, now_s: float) -> None:
        beat = self.beats.get(item.name)
        renewed = item.read(Lease).content().renew_time
        if beat is not None and renewed != beat.renewed:
            beat.renewed = renewed
            beat.heard_s = now_s

    def forget(self, name: str) -> Beat | None:
        return self.beats.pop(name, None)

    def pardon(self, seconds: float, now_s: float) -> None:
        """This much of the time since the last heartbeats does not count."""
        if seconds > 0:
            for beat in self.beats.values():
                beat.heard_s = min(beat.heard_s + seconds, now_s)

    def forgive(self, now_s: float) -> None:
        """Counts as a heartbeat of all nodes: this process was disconnected, not the nodes."""
        for beat in self.beats.values():
            beat.heard_s = now_s


def _seconds(text: str, otherwise: float) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return otherwise
