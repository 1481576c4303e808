"""Computes the conditions of a node without heartbeats, and the taints that follow from a node's conditions. The
functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.client.item import Obj
from shoal.client.node_health import NodeFacts

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_BY_CONDITION: Mapping[str, Mapping[str, str]] = {
    "Ready": {"False": NOT_READY, "Unknown": UNREACHABLE},
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
_OURS = {key for by_status in _BY_CONDITION.values() for key in by_status.values()} | {_UNSCHEDULABLE}
_SILENCED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""NetworkUnavailable is written by the control plane, and is not changed."""


def silenced(conditions: Sequence[Obj], created: str, now: str) -> list[Obj]:
    """The conditions of a node without heartbeats, all with status Unknown."""
    found = [dict(one) for one in conditions]
    by_type = {one["type"]: one for one in found}
    for type_ in _SILENCED:
        condition = by_type.get(type_)
        if condition is None:
            condition = {
                "type": type_,
                "status": "Unknown",
                "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": created,
                "lastTransitionTime": now,
            }
            found.append(condition)
        elif condition["status"] != "Unknown":
            words = "Kubelet stopped posting node status."
            condition |= {"status": "Unknown", "reason": "NodeStatusUnknown", "message": words}
            condition["lastTransitionTime"] = now
    return found


def unschedulable_for(facts: NodeFacts) -> set[str]:
    """Keys of the NoSchedule taints of this controller that the node should have."""
    conditions = facts.conditions
    keys = {
        by_status[conditions[type_].status]
        for type_, by_status in _BY_CONDITION.items()
        if type_ in conditions and conditions[type_].status in by_status
    }
    return keys | ({_UNSCHEDULABLE} if facts.spec.unschedulable else set())


def evicting_for(facts: NodeFacts) -> str:
    """The key of the NoExecute taint that follows from the node's readiness; empty for none."""
    ready = facts.conditions.get("Ready")
    return _BY_CONDITION["Ready"].get(ready.status, "") if ready is not None else ""


def evicting(facts: NodeFacts) -> set[str]:
    """Keys of the NoExecute taints of this controller that the node has."""
    return {one.key for one in facts.taints if one.effect == "NoExecute"} & {NOT_READY, UNREACHABLE}


def with_taints(taints: Sequence[Obj], no_schedule: set[str], no_execute: set[str], now: str) -> list[Obj]:
    """The taints of a node, with this controller's taints updated; other taints are kept."""
    wanted = {(key, "NoSchedule") for key in no_schedule} | {(key, "NoExecute") for key in no_execute}
    kept = []
    for one in taints:
        known = (one["key"], one.get("effect", ""))
        is_ours = (known[1] == "NoSchedule" and known[0] in _OURS) or (
            known[1] == "NoExecute" and known[0] in (NOT_READY, UNREACHABLE)
        )
        if not is_ours or known in wanted:
            kept.append(one)
            wanted.discard(known)
    added = [{"key": key, "effect": effect, "timeAdded": now} for key, effect in sorted(wanted)]
    return [*kept, *added]
