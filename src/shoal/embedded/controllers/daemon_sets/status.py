"""Computes the status of a DaemonSet."""

from __future__ import annotations

from shoal.client.item import Obj
from shoal.embedded.controllers.daemon_sets.plan import DaemonSetState


def daemon_set_status(obj: Obj, state: DaemonSetState, collisions: int | None) -> Obj:
    """The status; on a node with several pods the oldest one counts."""
    before = obj.get("status") or {}
    wanted = scheduled = ready = available = updated = astray = 0
    for node, eligibility in state.eligibility.items():
        pods = state.pods.get(node, [])
        if not eligibility.runs:
            astray += bool(pods)
            continue
        wanted += 1
        if not pods:
            continue
        scheduled += 1
        ready += pods[0].is_ready()
        available += state.is_available(pods[0])
        updated += pods[0].is_of(state.template)
    numbers = {
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": wanted - available,
    }
    status = {
        "currentNumberScheduled": scheduled,
        "numberMisscheduled": astray,
        "desiredNumberScheduled": wanted,
        "numberReady": ready,
        "observedGeneration": obj["metadata"].get("generation", 0),
        **{key: count for key, count in numbers.items() if count},
    }
    if collisions:
        status["collisionCount"] = collisions
    return status | ({"conditions": before["conditions"]} if before.get("conditions") else {})
