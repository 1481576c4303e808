"""What a daemon set makes and ends on its nodes: pure, node by node, then over all nodes for an update.

Pods that should not be there, doubles and failed pods go first (`standing`); which old pods give way to new ones is
decided only by how many may be missing (`rolling`) or double (`surging`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.controllers.daemon_sets.eligibility import Verdict
from shoal.controllers.daemon_sets.sight import DaemonPod, Template


class Look(msgspec.Struct, frozen=True):
    """One moment of one set. `verdicts` has every node there is; `pods` those of each node, oldest first."""

    verdicts: Mapping[str, Verdict]
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
    """Nodes."""
    delete: list[DaemonPod] = msgspec.field(default_factory=list)
    ended: list[DaemonPod] = msgspec.field(default_factory=list)
    """Failed and succeeded ones, which are to go too, but not too quickly."""


def standing(look: Look) -> Changes:
    """One pod on every node that should have one, none on others."""
    changes = Changes()
    for node, verdict in look.verdicts.items():
        pods = look.pods.get(node, [])
        if not verdict.stays:
            changes.delete += _not_ending(pods)
            continue
        if not pods:
            if verdict.runs:
                changes.create.append(node)
            continue
        changes.ended += [pod for pod in pods if pod.is_finished() and not pod.is_terminating()]
        running = [pod for pod in pods if pod.is_active()]
        changes.delete += _doubles_while_surging(look, running) if look.surge else running[1:]
    lost = (pods for node, pods in look.pods.items() if node not in look.verdicts)
    changes.delete += [pod for pods in lost for pod in _not_ending(pods)]
    return changes


def _not_ending(pods: Iterable[DaemonPod]) -> list[DaemonPod]:
    return [pod for pod in pods if not pod.is_terminating()]


def _doubles_while_surging(look: Look, running: list[DaemonPod]) -> list[DaemonPod]:
    """Two may stand together while the old one serves and the new one does not yet."""
    if len(running) < 2:
        return []
    new = next((pod for pod in running if pod.is_of(look.template)), None)
    old = next((pod for pod in running if not pod.is_of(look.template)), None)
    extra = [pod for pod in running if pod is not new and pod is not old]
    if new is not None and old is not None and (not old.is_ready() or look.is_available(new)):
        extra.append(old)
    return extra


def updating(look: Look) -> Changes:
    return _surging(look) if look.surge else _rolling(look)


def _rolling(look: Look) -> Changes:
    """Old pods that do not serve may go at once; of those that do, as many as may be missing."""
    missing, broken, serving = 0, [], []
    for node, verdict in look.verdicts.items():
        if not verdict.runs:
            continue
        new, old = _pair(look, node)
        if (new is None) == (old is None):
            missing += 1
        elif new is not None:
            missing += not look.is_available(new)
        elif old is not None and look.is_available(old):
            serving.append(old)
        elif old is not None:
            broken.append(old)
            missing += 1
    return Changes(delete=broken + serving[: max(look.unavailable - missing, 0)])


def _surging(look: Look) -> Changes:
    """A new pod beside each old one; the old one goes when the new one serves."""
    changes, double = Changes(), 0
    candidates: list[str] = []
    for node, verdict in look.verdicts.items():
        if not verdict.runs:
            continue
        new, old = _pair(look, node)
        if old is None:
            continue
        if new is None:
            (candidates if look.is_available(old) else changes.create).append(node)
        elif look.is_available(new):
            changes.delete.append(old)
        else:
            double += 1
    changes.create += candidates[: max(look.surge - double, 0)]
    return changes


def _pair(look: Look, node: str) -> tuple[DaemonPod | None, DaemonPod | None]:
    """The new and the old pod of a node; a muddle of several is for `standing` to clear and counts as none."""
    pods = _not_ending(look.pods.get(node, []))
    new = [pod for pod in pods if pod.is_of(look.template)]
    old = [pod for pod in pods if not pod.is_of(look.template)]
    if len(new) > 1 or len(old) > 1:
        return None, None
    return (new[0] if new else None), (old[0] if old else None)
