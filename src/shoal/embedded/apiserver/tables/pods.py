"""Prints the table row of a pod, with a status summarized from its phase, conditions and containers.

The word is what people act on (`CrashLoopBackOff`, `Init:1/2`, `Completed`), so the order in which the parts overrule
each other is exactly that of Kubernetes: init containers first, then the last container that has something to say,
then deletion.
"""

from __future__ import annotations

from typing import Any

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.embedded.apiserver.tables.ages import duration, instant_s
from shoal.embedded.apiserver.tables.phrases import NONE
from shoal.embedded.apiserver.tables.printer import Obj, Printer, age, condition_status, heads

_EMPTY: Obj = {}


def _completed(reason: str, message: str) -> list[Obj]:
    return [{"type": "Completed", "status": "True", "reason": reason, "message": message}]


_CONDITIONS = {
    "Succeeded": _completed("Succeeded", "The pod has completed successfully."),
    "Failed": _completed("Failed", "The pod failed."),
}


class _Restarts:
    """A count of restarts and the newest end that led to one."""

    __slots__ = ("count", "last_s")

    def __init__(self) -> None:
        self.count = 0
        self.last_s: int | None = None

    def add(self, container: Obj) -> None:
        self.count += container.get("restartCount") or 0
        last = container.get("lastState")
        ended = last.get("terminated") if last else None
        if ended:
            end_s = instant_s(ended.get("finishedAt") or "")
            if end_s is not None and (self.last_s is None or end_s > self.last_s):
                self.last_s = end_s

    def text(self, now_s: int) -> str:
        if self.count and self.last_s is not None:
            return f"{self.count} ({duration(now_s - self.last_s)} ago)"
        return str(self.count)


class _Summary:
    """What is known of a pod after each step."""

    __slots__ = ("pod_restarts", "ready", "reason", "sidecar_restarts", "total")

    def __init__(self, reason: str, total: int) -> None:
        self.reason = reason
        self.total = total
        self.ready = 0
        self.pod_restarts = _Restarts()
        self.sidecar_restarts = _Restarts()


def _terminated(ended: Obj) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _init_containers(summary: _Summary, spec: Obj, status: Obj) -> bool:
    """Goes through the init containers as far as they have come; whether one of them is still at it."""
    declared = spec.get("initContainers") or ()
    sidecars = {one["name"] for one in declared if one.get("restartPolicy") == "Always"}
    summary.total += len(sidecars)
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        is_sidecar = container.get("name") in sidecars
        summary.pod_restarts.add(container)
        if is_sidecar:
            summary.sidecar_restarts.add(container)
        state = container.get("state") or _EMPTY
        ended, waiting = state.get("terminated"), state.get("waiting") or _EMPTY
        if ended and not ended.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            summary.ready += bool(container.get("ready"))
            continue
        if ended:
            summary.reason = f"Init:{_terminated(ended)}"
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            summary.reason = f"Init:{waiting['reason']}"
        else:
            summary.reason = f"Init:{index}/{len(declared)}"
        return True
    return False


def _containers(summary: _Summary, status: Obj) -> None:
    is_running = False
    for container in reversed(status.get("containerStatuses") or ()):
        summary.sidecar_restarts.add(container)
        state = container.get("state") or _EMPTY
        ended, waiting = state.get("terminated"), state.get("waiting") or _EMPTY
        if waiting.get("reason"):
            summary.reason = waiting["reason"]
        elif ended is not None:
            summary.reason = _terminated(ended)
        elif container.get("ready") and state.get("running") is not None:
            is_running = True
            summary.ready += 1
    if summary.reason == "Completed" and is_running:
        is_ready = condition_status(status.get("conditions"), "Ready") == "True"
        summary.reason = "Running" if is_ready else "NotReady"


def _readiness_gates(spec: Obj, status: Obj) -> str:
    gates = spec.get("readinessGates")
    if not gates:
        return NONE
    conditions = status.get("conditions")
    passed = sum(condition_status(conditions, gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{passed}/{len(gates)}"


def _summary(spec: Obj, status: Obj) -> tuple[_Summary, _Restarts]:
    summary = _Summary(status.get("reason") or status.get("phase") or "", len(spec.get("containers") or ()))
    conditions = status.get("conditions")
    for one in conditions or ():
        if one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated":
            summary.reason = "SchedulingGated"
    is_initializing = False
    if spec.get("initContainers") or status.get("initContainerStatuses"):
        is_initializing = _init_containers(summary, spec, status)
    if is_initializing and condition_status(conditions, "Initialized") != "True":
        return summary, summary.pod_restarts
    _containers(summary, status)
    return summary, summary.sidecar_restarts


def cells(pod: Obj, now_s: int) -> list[Any]:
    metadata, spec, status = pod["metadata"], pod.get("spec") or _EMPTY, pod.get("status") or _EMPTY
    summary, restarts = _summary(spec, status)
    reason = summary.reason
    if metadata.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in TERMINAL_PHASES:
            reason = "Terminating"
    addresses = status.get("podIPs")
    return [
        metadata.get("name", ""),
        f"{summary.ready}/{summary.total}",
        reason,
        restarts.text(now_s),
        age(pod, now_s),
        (addresses[0].get("ip") if addresses else status.get("podIP")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, status),
    ]


def conditions(pod: Obj) -> list[Obj] | None:
    """What `--watch-only` and scripts read off a row: whether the pod is through."""
    return _CONDITIONS.get((pod.get("status") or _EMPTY).get("phase", ""))


PODS = Printer(
    heads("Name", "Ready", "Status", "Restarts", "Age", "+IP", "+Node", "+Nominated Node", "+Readiness Gates"),
    cells,
    conditions,
)
