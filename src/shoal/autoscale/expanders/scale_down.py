"""Decides whether a node is a candidate for removal by its own state, as Cluster Autoscaler does.

Utilization is the larger share of cpu and memory that pods request; of a GPU node it is the share of its GPUs only,
and zero while the GPUs are not advertised. Whether its pods would fit elsewhere is another question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final, Literal

import msgspec

TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DAEMON_SET_POD: Final = "cluster-autoscaler.kubernetes.io/daemonset-pod"
MIRROR: Final = "kubernetes.io/config.mirror"

_DELETION_S: Final = 300.0
"""A node that was marked longer ago is a candidate again: its deletion went wrong."""
_OVERDUE_S: Final = 30.0
"""Beyond its grace period a terminating pod is counted no more."""

UnremovableReason = Literal["", "being-deleted", "disabled-annotation", "not-underutilized", "unready", "error"]


class ScaleDownPod(msgspec.Struct, frozen=True):
    """A pod on the node."""

    requests: Mapping[str, int]
    owner_kind: str = ""
    annotations: Mapping[str, str] = {}
    deleted_for_s: float | None = None
    """How long ago its deletion began."""
    grace_s: float = 0.0

    def is_of_daemon_set(self) -> bool:
        return self.owner_kind == "DaemonSet" or self.annotations.get(DAEMON_SET_POD) == "true"

    def is_mirror(self) -> bool:
        return MIRROR in self.annotations

    def is_overdue(self) -> bool:
        return self.deleted_for_s is not None and self.deleted_for_s > self.grace_s + _OVERDUE_S


class ScaleDownNode(msgspec.Struct, frozen=True):
    """A node, as far as its removal depends on it alone."""

    allocatable: Mapping[str, int]
    is_ready: bool = True
    annotations: Mapping[str, str] = {}
    marked_for_s: float | None = None
    """How long ago it was marked for deletion."""
    gpu_resource: str = ""
    """The resource by which a GPU node advertises its GPUs; empty on other nodes."""


class ScaleDownOptions(msgspec.Struct, frozen=True):
    """Cluster Autoscaler's options."""

    utilization_threshold: float = 0.5
    gpu_utilization_threshold: float = 0.5
    ignores_daemon_sets: bool = False
    ignores_mirror_pods: bool = False
    removes_unready: bool = True


_USUAL_OPTIONS: Final = ScaleDownOptions()


class Removability(msgspec.Struct, frozen=True):
    """Whether the node is a candidate, and why not."""

    reason: UnremovableReason = ""
    utilization: float | None = None

    @property
    def is_removable(self) -> bool:
        return not self.reason


def removability(
    node: ScaleDownNode, pods: Sequence[ScaleDownPod], options: ScaleDownOptions = _USUAL_OPTIONS
) -> Removability:
    """Whether the node may be removed if its pods fit elsewhere."""
    if node.marked_for_s is not None and node.marked_for_s < _DELETION_S:
        return Removability("being-deleted")
    if node.annotations.get(DISABLED) == "true":
        return Removability("disabled-annotation")
    if not options.removes_unready and not node.is_ready:
        return Removability("unready")
    found = utilization(node, pods, options)
    if found is None:
        return Removability("error")
    threshold = options.gpu_utilization_threshold if node.gpu_resource else options.utilization_threshold
    return Removability("not-underutilized" if found > threshold else "", found)


def utilization(node: ScaleDownNode, pods: Sequence[ScaleDownPod], options: ScaleDownOptions) -> float | None:
    """The share that pods request; None where cpu or memory of the node are not known."""
    if node.gpu_resource:
        share = _share(node, pods, options, node.gpu_resource)
        return 0.0 if share is None else share
    cpu, memory = (_share(node, pods, options, name) for name in ("cpu", "memory"))
    return None if cpu is None or memory is None else max(cpu, memory)


def _share(node: ScaleDownNode, pods: Sequence[ScaleDownPod], options: ScaleDownOptions, resource: str) -> float | None:
    allocatable = node.allocatable.get(resource, 0)
    if allocatable <= 0:
        return None
    requested = ignored = 0
    for pod in pods:
        if pod.is_overdue():
            continue
        amount = pod.requests.get(resource, 0)
        is_ignored = (options.ignores_daemon_sets and pod.is_of_daemon_set()) or (
            options.ignores_mirror_pods and pod.is_mirror()
        )
        if is_ignored:
            ignored += amount
        else:
            requested += amount
    left = allocatable - ignored
    if left <= 0:
        return inf if requested else 0.0
    return requested / left
