"""Decides which pods of a DaemonSet are created and deleted: first for each node, then over all nodes for an update.

The functions are pure. `placement_changes` deletes pods on ineligible nodes, duplicates and failed pods first. Which
old pods are replaced depends only on how many may be unavailable (`_rolling`) or surge (`_surging`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.embedded.controllers.daemon_sets.daemon_pod import DaemonPod, Template
from shoal.embedded.controllers.daemon_sets.eligibility import NodeEligibility


class DaemonSetState(msgspec.Struct, frozen=True):
    """The state of one DaemonSet. `eligibility` has all nodes; `pods` has those of each node, oldest first."""

    eligibility: Mapping[str, NodeEligibility]
    pods: Mapping[str, list[DaemonPod]]
    template: Template
    min_ready_s: int
    now_s: float
    surge: int = 0
    unavailable: int = 1

    def is_available(self, pod: DaemonPod) -> bool:
        return pod.is_available(self.min_ready_s, self.now_s)


class Changes(msgspec.Struct):
    create: list[str] = msgspec.field(default_factory=list)
    """The nodes on which pods are created."""
    delete: list[DaemonPod] = msgspec.field(default_factory=list)
    ended: list[DaemonPod] = msgspec.field(default_factory=list)
    """Finished pods, which are deleted with a backoff."""


def placement_changes(state: DaemonSetState) -> Changes:
    """Ensures one pod on each eligible node and none on others."""
    changes = Changes()
    for node, eligibility in state.eligibility.items():
        pods = state.pods.get(node, [])
        if not eligibility.stays:
            changes.delete += _not_terminating(pods)
            continue
        if not pods:
            if eligibility.runs:
                changes.create.append(node)
            continue
        changes.ended += [pod for pod in pods if pod.is_finished() and not pod.is_terminating()]
        running = [pod for pod in pods if pod.is_active()]
        changes.delete += _duplicates_while_surging(state, running) if state.surge else running[1:]
    lost = (pods for node, pods in state.pods.items() if node not in state.eligibility)
    changes.delete += [pod for pods in lost for pod in _not_terminating(pods)]
    return changes


def _not_terminating(pods: Iterable[DaemonPod]) -> list[DaemonPod]:
    return [pod for pod in pods if not pod.is_terminating()]


def _duplicates_while_surging(state: DaemonSetState, running: list[DaemonPod]) -> list[DaemonPod]:
    """Two pods may exist while the old one is available and the new one is not."""
    if len(running) < 2:
        return []
    new = next((pod for pod in running if pod.is_of(state.template)), None)
    old = next((pod for pod in running if not pod.is_of(state.template)), None)
    extra = [pod for pod in running if pod is not new and pod is not old]
    if new is not None and old is not None and (not old.is_ready() or state.is_available(new)):
        extra.append(old)
    return extra


def update_changes(state: DaemonSetState) -> Changes:
    return _surging(state) if state.surge else _rolling(state)


def _rolling(state: DaemonSetState) -> Changes:
    """Deletes unavailable old pods at once, and as many available ones as may be unavailable."""
    missing, broken, serving = 0, [], []
    for node, eligibility in state.eligibility.items():
        if not eligibility.runs:
            continue
        new, old = _pair(state, node)
        if (new is None) == (old is None):
            missing += 1
        elif new is not None:
            missing += not state.is_available(new)
        elif old is not None and state.is_available(old):
            serving.append(old)
        elif old is not None:
            broken.append(old)
            missing += 1
    return Changes(delete=broken + serving[: max(state.unavailable - missing, 0)])


def _surging(state: DaemonSetState) -> Changes:
    """Creates a new pod next to each old one, which is deleted when the new one is available."""
    changes, double = Changes(), 0
    candidates: list[str] = []
    for node, eligibility in state.eligibility.items():
        if not eligibility.runs:
            continue
        new, old = _pair(state, node)
        if old is None:
            continue
        if new is None:
            (candidates if state.is_available(old) else changes.create).append(node)
        elif state.is_available(new):
            changes.delete.append(old)
        else:
            double += 1
    changes.create += candidates[: max(state.surge - double, 0)]
    return changes


def _pair(state: DaemonSetState, node: str) -> tuple[DaemonPod | None, DaemonPod | None]:
    """The new and the old pod of a node; (None, None) if there are more, which `placement_changes` deletes."""
    pods = _not_terminating(state.pods.get(node, []))
    new = [pod for pod in pods if pod.is_of(state.template)]
    old = [pod for pod in pods if not pod.is_of(state.template)]
    if len(new) > 1 or len(old) > 1:
        return None, None
    return (new[0] if new else None), (old[0] if old else None)
