"""Computes the conditions of a Node that its kubelet writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.client.kubelet.times import written

Obj = dict[str, Any]
NodeVerdict = tuple[str, str, str, str]
"""Type, status, reason and message of a condition."""
_SUFFICIENT = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def conditions(
    before: Mapping[str, Obj], now_s: float, *, not_ready: str = "", others: Sequence[NodeVerdict] = ()
) -> list[Obj]:
    """`not_ready`: why the node accepts no pods now; empty if it is ready. `others`: conditions of other components."""
    verdicts = [*others, *((type_, "False", reason, message) for type_, reason, message in _SUFFICIENT)]
    if not_ready:
        verdicts.append(("Ready", "False", "KubeletNotReady", not_ready))
    else:
        verdicts.append(("Ready", "True", "KubeletReady", "kubelet is posting ready status"))
    now, found = written(now_s), []
    for type_, status, reason, message in verdicts:
        old = before.get(type_)
        changed = old["lastTransitionTime"] if old is not None and old["status"] == status else now
        found.append(
            {
                "type": type_,
                "status": status,
                "lastHeartbeatTime": now,
                "lastTransitionTime": changed,
                "reason": reason,
                "message": message,
            }
        )
    return found
