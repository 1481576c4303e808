"""The conditions of a silent node, and the taints that a node's conditions ask for. Values in, values out."""

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
"""NetworkUnavailable is said by the control plane, and stays as it is."""


def silenced(conditions: Sequence[Obj], created: str, now: str) -> list[Obj]:
    """What is known of a node that is not heard of any more: nothing."""
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
    """Keys of the NoSchedule taints that the node is to have of those that are ours."""
    conditions = facts.conditions
    keys = {
        by_status[conditions[type_].status]
        for type_, by_status in _BY_CONDITION.items()
        if type_ in conditions and conditions[type_].status in by_status
    }
    return keys | ({_UNSCHEDULABLE} if facts.spec.unschedulable else set())


def evicting_for(facts: NodeFacts) -> str:
    """The key of the NoExecute taint that the node's readiness asks for; empty for none."""
    ready = facts.conditions.get("Ready")
    return _BY_CONDITION["Ready"].get(ready.status, "") if ready is not None else ""


def evicting(facts: NodeFacts) -> set[str]:
    """Keys of the NoExecute taints of ours that the node has."""
    return {one.key for one in facts.taints if one.effect == "NoExecute"} & {NOT_READY, UNREACHABLE}


def with_taints(taints: Sequence[Obj], no_schedule: set[str], no_execute: set[str], now: str) -> list[Obj]:
    """The taints of a node with ours as they are to be; those of others stay."""
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
