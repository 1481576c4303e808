"""The status of a daemon set, node by node."""

from __future__ import annotations

from shoal.controllers.daemon_sets.plan import Look
from shoal.store.live.item import Obj


def told(obj: Obj, look: Look, collisions: int | None) -> Obj:
    """Of a node with several pods, the oldest counts."""
    before = obj.get("status") or {}
    wanted = scheduled = ready = available = updated = astray = 0
    for node, verdict in look.verdicts.items():
        pods = look.pods.get(node, [])
        if not verdict.runs:
            astray += bool(pods)
            continue
        wanted += 1
        if not pods:
            continue
        scheduled += 1
        ready += pods[0].is_ready()
        available += look.is_available(pods[0])
        updated += pods[0].is_of(look.template)
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
