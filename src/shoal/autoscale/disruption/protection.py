"""Determines which pods keep their node from being disrupted, and what the eviction of the others costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.pod import Pod
from shoal.api.requirement import as_int64
from shoal.api.selectors import LabelSelector, selector_of
from shoal.api.taints import Taint
from shoal.autoscale.expanders.scale_down import DISABLED, MIRROR
from shoal.units.durations import DurationError, nanoseconds

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
_OLD_DO_NOT_EVICT: Final = "karpenter.sh/do-not-evict"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_DISRUPTED: Final = Taint("karpenter.sh/disrupted", "NoSchedule")


class DisruptionLimit(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget and what it allows now."""

    name: str
    namespace: str
    selector: LabelSelector | None
    allowed: int

    def selects(self, pod: Pod) -> bool:
        namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        return namespace == self.namespace and selector_of(self.selector).matches(pod.metadata.labels)


def node_annotation(annotations: Mapping[str, str]) -> str | None:
    """The annotation by which a node says that it must not be disrupted: Karpenter's or Cluster Autoscaler's."""
    return next((key for key in (DO_NOT_DISRUPT, DISABLED) if annotations.get(key) == "true"), None)


def is_active(pod: Pod) -> bool:
    return not pod.is_finished() and not pod.is_terminating()


def owner_kind(pod: Pod) -> str:
    owner = pod.metadata.controller()
    return owner.kind if owner is not None else ""


def is_mirror(pod: Pod) -> bool:
    """Whether it represents a static pod of the kubelet."""
    return owner_kind(pod) == "Node" or MIRROR in pod.metadata.annotations


def is_rescheduled(pod: Pod) -> bool:
    """Whether a pod like it must run elsewhere once its node is gone."""
    if pod.is_finished() or owner_kind(pod) == "DaemonSet" or is_mirror(pod):
        return False
    return not pod.is_terminating() or owner_kind(pod) == "StatefulSet"


def protection(pod: Pod, limits: Iterable[DisruptionLimit], now: datetime) -> str | None:
    """Why the pod keeps its node from being disrupted; None if it does not."""
    if not is_active(pod):
        return None
    if _forbids(pod, now):
        return f"pod {pod.metadata.key} has annotation {DO_NOT_DISRUPT}"
    if is_mirror(pod) or any(each.tolerates(_DISRUPTED) for each in pod.spec.tolerations):
        # It is not evicted, so no budget protects it.
        return None
    if owner_kind(pod) != "DaemonSet" and pod.metadata.annotations.get(_SAFE_TO_EVICT) == "false":
        return f"pod {pod.metadata.key} has annotation {_SAFE_TO_EVICT}: false"
    selecting = [limit for limit in limits if limit.selects(pod)]
    if len(selecting) > 1:
        return f"pod {pod.metadata.key} has more than one PodDisruptionBudget"
    if selecting and selecting[0].allowed <= 0:
        return f"PodDisruptionBudget {selecting[0].name} allows no disruption of pod {pod.metadata.key}"
    return None


def _forbids(pod: Pod, now: datetime) -> bool:
    """By the annotation: `true`, or a duration that is counted from the start of the pod."""
    annotations = pod.metadata.annotations
    if annotations.get(_OLD_DO_NOT_EVICT) == "true":
        return True
    value = annotations.get(DO_NOT_DISRUPT)
    if value is None:
        return False
    if value == "true":
        return True
    try:
        seconds = nanoseconds(value) / 1e9
    except DurationError:
        return False
    started = pod.status.start_time
    if seconds <= 0:
        return False
    return started is None or (now - started).total_seconds() < seconds


def eviction_cost(pod: Pod) -> float:
    """Higher for pods of high priority, and for pods that are costly to delete by their annotation."""
    cost = 1.0 + (as_int64(pod.metadata.annotations.get(_DELETION_COST, "0")) or 0) / 2**27
    cost += (pod.spec.priority or 0) / 2**25
    return min(max(cost, -10.0), 10.0)
