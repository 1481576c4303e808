"""Computes the conditions of a pod that its kubelet writes: type, status, reason and message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.client.kubelet.pod_facts import PodFacts
from shoal.client.kubelet.pod_run import ContainerRun, PodRun
from shoal.client.kubelet.times import written

Verdict = tuple[str, str, str]
"""Status, reason and message."""
_YES: Verdict = ("True", "", "")


def conditions(run: PodRun, facts: PodFacts, now_s: float) -> list[dict[str, Any]]:
    """The conditions for a strategic merge: a condition without a reason removes the previous reason."""
    found = []
    for type_, (status, reason, message) in _verdicts(run, facts):
        before = facts.condition(type_)
        keeps = before is not None and before.status == status and before.last_transition_time is not None
        changed = before.last_transition_time if before is not None and keeps else written(now_s)
        condition: dict[str, Any] = {"type": type_, "status": status, "lastProbeTime": None}
        condition["lastTransitionTime"] = changed
        if facts.metadata.generation:
            condition["observedGeneration"] = facts.metadata.generation
        for name, value, old in (
            ("reason", reason, before.reason if before else ""),
            ("message", message, before.message if before else ""),
        ):
            if value or old:
                condition[name] = value or None
        found.append(condition)
    return found


def is_ready(run: PodRun) -> bool:
    """Whether all containers are ready."""
    return _containers_ready(run) == _YES


def _verdicts(run: PodRun, facts: PodFacts) -> Iterator[tuple[str, Verdict]]:
    yield "PodReadyToStartContainers", _YES if run.ip and not run.is_over else ("False", "", "")
    yield "Initialized", _initialized(run)
    containers = _containers_ready(run)
    yield "ContainersReady", containers
    yield "Ready", _gates(facts) if containers == _YES else containers
    if not _is_scheduled(facts):
        # A pod with a node from the start has no condition of a scheduler.
        yield "PodScheduled", _YES
    yield from (run.extra or {}).items()


def _is_scheduled(facts: PodFacts) -> bool:
    said = facts.condition("PodScheduled")
    return said is not None and said.status == "True"


def _initialized(run: PodRun) -> Verdict:
    if run.is_over and run.phase == "Succeeded":
        return ("True", "PodCompleted", "")
    waiting = [one.name for one in run.containers if not _is_past(one)]
    if waiting:
        return ("False", "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(waiting)}]")
    return _YES


def _is_past(one: ContainerRun) -> bool:
    if one.role == "init":
        return one.step == "ended" and one.ended is not None and one.ended.code == 0
    return one.role == "main" or one.is_started or one.restarts > 0 or one.ended is not None


def _containers_ready(run: PodRun) -> Verdict:
    if run.is_over:
        return ("False", "PodCompleted" if run.phase == "Succeeded" else "PodFailed", "")
    unready = [one.name for one in run.containers if one.role != "init" and not one.is_ready]
    if unready:
        return ("False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    return _YES


def _gates(facts: PodFacts) -> Verdict:
    words = []
    for gate in facts.spec.readiness_gates:
        found = facts.condition(gate.condition_type)
        if found is None:
            words.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif found.status != "True":
            words.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {found.status}')
    return ("False", "ReadinessGatesNotReady", ", ".join(words)) if words else _YES
