"""Computes the counts of a PodDisruptionBudget: expected, healthy, desired healthy, and allowed disruptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import field

from shoal.api.conditions import Condition, is_condition_true
from shoal.api.disruption import part_of
from shoal.api.meta import ObjectMeta
from shoal.api.selectors import LabelSelector
from shoal.api.wire import ApiStruct, Timestamp
from shoal.client.item import Key

DELETION_TIMEOUT = timedelta(minutes=2)
"""A pod whose eviction was allowed and that still runs after this time is no longer expected to be deleted."""


class BudgetedPodStatus(ApiStruct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class BudgetedPod(ApiStruct, frozen=True):
    metadata: ObjectMeta
    status: BudgetedPodStatus = field(default_factory=BudgetedPodStatus)

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        return is_condition_true(self.status.conditions, "Ready")


class BudgetSpec(ApiStruct, frozen=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class _DisruptionStatus(ApiStruct, frozen=True):
    disrupted_pods: dict[str, Timestamp] = field(default_factory=dict)


class DisruptionBudget(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: BudgetSpec = field(default_factory=BudgetSpec)
    status: _DisruptionStatus = field(default_factory=_DisruptionStatus)

    @property
    def key(self) -> Key:
        return (self.metadata.namespace, self.metadata.name)

    @property
    def needs_scale(self) -> bool:
        """Whether it refers to the number of pods that the controllers want."""
        return self.spec.max_unavailable is not None or isinstance(self.spec.min_available, str)


class BudgetCounts(NamedTuple):
    expected: int
    healthy: int
    desired: int
    allowed: int


class Disrupted(NamedTuple):
    """Pods whose eviction was allowed and that still exist."""

    going: dict[str, Timestamp]
    overdue: list[str]
    look_again_s: float | None


def counts(
    budget: DisruptionBudget, pods: Iterable[BudgetedPod], scale: int, going: Mapping[str, object]
) -> BudgetCounts:
    """`scale`: the number of pods that the controllers want, or the number of existing pods where that is not
    needed.
    """
    spec = budget.spec
    if spec.max_unavailable is not None:
        desired = max(scale - part_of(spec.max_unavailable, scale), 0)
    else:
        desired = part_of(spec.min_available or 0, scale)
    healthy = sum(pod.is_ready and not pod.is_terminating and pod.metadata.name not in going for pod in pods)
    allowed = max(healthy - desired, 0) if scale > 0 else 0
    return BudgetCounts(scale, healthy, desired, allowed)


def disrupted(budget: DisruptionBudget, pods: Iterable[BudgetedPod], now: datetime) -> Disrupted:
    going: dict[str, Timestamp] = {}
    overdue: list[str] = []
    waits: list[float] = []
    for pod in pods:
        since = budget.status.disrupted_pods.get(pod.metadata.name)
        if since is None or pod.is_terminating:
            continue
        left = (since + DELETION_TIMEOUT - now).total_seconds()
        if left <= 0:
            overdue.append(pod.metadata.name)
        else:
            going[pod.metadata.name] = since
            waits.append(left)
    return Disrupted(going, overdue, min(waits, default=None))
