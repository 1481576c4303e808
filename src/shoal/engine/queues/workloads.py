"""Defines workloads as the queue engine stores them: pending ones, and those that hold quota.

Values that each cycle would compute again are stored once: totals per pod set, the key by which equal workloads are
recognized, the charge per flavor and resource.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from shoal.engine.queues.facts import PODS, Amounts, PodSet, QuotaAssignment, Usage, WorkloadFacts

if TYPE_CHECKING:
    pass


class Total(msgspec.Struct, frozen=True):
    """What a pod set wants now: pods that are no longer needed are not counted."""

    pod_set: PodSet
    count: int
    requests: Amounts
    """All pods together, `pods` included."""

    @classmethod
    def of(cls, pod_set: PodSet, count: int) -> Total:
        requests = {name: amount * count for name, amount in pod_set.requests.items()}
        requests[PODS] = requests.get(PODS, 0) + count
        return cls(pod_set, count, requests)


def totals_of(facts: WorkloadFacts, counts: tuple[int, ...] | None = None) -> tuple[Total, ...]:
    """The pod sets' totals; `counts` instead of their own sizes where a workload is tried smaller."""
    return tuple(
        Total.of(
            pod_set,
            max(0, pod_set.count - facts.reclaimable.get(pod_set.name, 0)) if counts is None else counts[index],
        )
        for index, pod_set in enumerate(facts.pod_sets)
    )


@dataclass(slots=True, eq=False)
class FlavorSearchProgress:
    """Where the search over flavors stopped, per pod set and resource, so that it goes on there.

    The index of the last flavor tried; -1 once all were."""

    flavors: list[dict[str, int]] = field(default_factory=list)
    generation: int = 0
    """Of the cluster queue's quota tree when this was noted."""

    @property
    def place(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """Where it goes on, as a value; empty where it starts at the first flavor."""
        return tuple(tuple(sorted(each.items())) for each in self.flavors) if self.is_open else ()

    @property
    def is_open(self) -> bool:
        """Whether flavors are left that were not tried."""
        return any(index != -1 for resources in self.flavors for index in resources.values())


class QueueingKey(NamedTuple):
    """What a workload is for the line."""

    priority: int
    shape: bytes
    """Of its pod sets."""
    share: str = ""
    """Its local queue, where turns go by use."""


@dataclass(slots=True, eq=False)
class PendingWorkload:
    """A workload in line."""

    facts: WorkloadFacts
    totals: tuple[Total, ...]
    stamp_s: float
    """The time that orders it: creation, or an eviction that gives it a new place."""
    tried: FlavorSearchProgress | None = None
    tried_at: int = 0
    """The cycle in which it was looked at last."""
    barred: frozenset[str] = frozenset()
    """Flavors whose nodes had no places for its pods in the cycle before."""
    is_retry: bool = False
    """Its search resumes after a flavor that other workloads of its cycle took, not one that lacked capacity."""
    label_key: QueueingKey | None = None
    """Equal for workloads of which one is admitted if the other would be; None for one without its like."""
    alone: bool = False
    """Turned away for a reason that says nothing about its like."""

    @property
    def form(self) -> tuple[object, ...]:
        """Its equivalence class in the queue."""
        return (self.facts.key,) if self.alone or self.label_key is None else self.label_key

    @property
    def key(self) -> str:
        return self.facts.key


def digest_of(value: object) -> bytes:
    """Equal for equal values."""
    try:
        return msgspec.msgpack.encode(value)
    except OverflowError:
        # The request is larger than any machine.
        return repr(value).encode()


def usage_of(admission: QuotaAssignment) -> Usage:
    usage: Usage = {}
    for pod_set in admission.pod_sets:
        for resource, amount in pod_set.usage.items():
            flavor = pod_set.flavors.get(resource)
            if flavor is not None:
                usage[flavor, resource] = usage.get((flavor, resource), 0) + amount
    return usage
