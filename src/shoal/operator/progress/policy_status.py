"""Decides the status of a ClusterPolicy: its state and its conditions, with the reasons of NVIDIA's operator.

A cluster without nodes with GPUs, or without labels of node feature discovery, counts as ready: there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.operator.components.component import DRIVER
from shoal.operator.components.desired import DesiredState
from shoal.operator.components.facts import FleetFacts

PolicyState = Literal["ready", "notReady", "ignored"]
_MOST_NAMED = 3


class DaemonSetProgress(msgspec.Struct, frozen=True):
    generation: int = 0
    observed: int = 0
    desired: int = 0
    updated: int = 0
    unavailable: int = 0
    is_on_delete: bool = False
    """Its pods are replaced when they are deleted, so that old ones may remain."""

    @property
    def is_ready(self) -> bool:
        if self.observed < self.generation:
            return False
        return not self.unavailable and (self.is_on_delete or self.updated >= self.desired)


class PolicyStatus(msgspec.Struct, frozen=True):
    state: PolicyState
    reason: str
    message: str = ""

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"

    def conditions(self) -> list[tuple[str, tuple[bool, str, str]]]:
        """Type, and status, reason and message."""
        if self.is_ready:
            return [("Ready", (True, self.reason, self.message)), ("Error", (False, "Ready", ""))]
        return [("Ready", (False, "Error", "")), ("Error", (True, self.reason, self.message))]


class StateProgress(msgspec.Struct, frozen=True):
    name: str
    is_ready: bool
    message: str = ""


def state_progress(states: Iterable[DesiredState], daemon_sets: Mapping[str, DaemonSetProgress]) -> list[StateProgress]:
    """Of the states that the policy enables. `daemon_sets`: by name; a missing one is not created yet."""
    found = []
    for state in states:
        if state.fault:
            found.append(StateProgress(state.name, is_ready=False, message=state.fault))
            continue
        names = [one["metadata"]["name"] for one in state.objects if one["kind"] == "DaemonSet"]
        if state.component is None or not names or not state.component.is_waited_for:
            continue
        waiting = [words for name in names if (words := _waiting(name, daemon_sets.get(name)))]
        found.append(StateProgress(state.name, is_ready=not waiting, message="; ".join(waiting[:_MOST_NAMED])))
    return found


def policy_status(progress: Sequence[StateProgress], facts: FleetFacts, failed: Sequence[str] = ()) -> PolicyStatus:
    """`failed`: objects that could not be written, with the reason."""
    if failed:
        return PolicyStatus("notReady", "ReconcileFailed", "; ".join(failed[:_MOST_NAMED]))
    waiting = [one for one in progress if not one.is_ready]
    if not facts.has_labels:
        return PolicyStatus("ready", "NFDLabelsMissing", "no node has labels of node feature discovery")
    if not facts.gpu_nodes:
        return PolicyStatus("ready", "NoGPUNodes", "no node with GPUs was found")
    if not waiting:
        return PolicyStatus("ready", "Reconciled", f"all components are ready on {_nodes(facts.gpu_nodes)}")
    reason = "DriverNotReady" if waiting[0].name == DRIVER.state else "OperandNotReady"
    return PolicyStatus("notReady", reason, "; ".join(f"{one.name}: {one.message}" for one in waiting[:_MOST_NAMED]))


def ignored_status(active: str) -> PolicyStatus:
    words = f"only one ClusterPolicy is applied, and that is {active}, the oldest; delete one of the two"
    return PolicyStatus("ignored", "PrerequisiteNotMet", words)


def _waiting(name: str, found: DaemonSetProgress | None) -> str:
    if found is None:
        return f"DaemonSet {name} does not exist yet"
    if found.is_ready:
        return ""
    if found.observed < found.generation:
        return f"DaemonSet {name}: the DaemonSet controller has not seen the last change yet"
    if found.unavailable:
        return f"DaemonSet {name}: {found.unavailable} of {found.desired} pods are not available"
    return f"DaemonSet {name}: {found.desired - found.updated} of {found.desired} pods are of an older version"


def _nodes(count: int) -> str:
    return "1 node with GPUs" if count == 1 else f"{count} nodes with GPUs"
