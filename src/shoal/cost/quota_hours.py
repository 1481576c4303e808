"""The quota of queues and namespaces as GPU-hours of a window, from what was recorded of them.

A queue above others of its kind has the quota of all of them, so that only the lowest queues count. The work of a
LocalQueue uses the quota of its ClusterQueue: both are one group. A quota of a Cohort belongs to no queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from shoal.cost.records import FULL_SHARE, Holding, Machine, QuotaSpan
from shoal.cost.statement import GroupOf, dimension
from shoal.units.calendar_windows import HOUR_MS, TimeWindow

QUOTA_DIMENSIONS = ("queue", "namespace")
"""Groups that can hold quota by objects of a cluster."""


def quota_hours(spans: Iterable[QuotaSpan], window: TimeWindow, by: str) -> dict[str, Decimal]:
    """`by`: one of QUOTA_DIMENSIONS. Groups without quota in the window are left out."""
    chosen = [one for one in spans if (one.kind == "namespace") == (by == "namespace")]
    parents = {(one.kind, one.parent) for one in chosen if one.parent}
    found: dict[str, int] = {}
    for one in chosen:
        start = max(one.start_ms, window.start_ms)
        end = window.end_ms if one.end_ms is None else min(one.end_ms, window.end_ms)
        if start < end and one.share and (one.kind, one.name) not in parents:
            found[one.name] = found.get(one.name, 0) + (end - start) * one.share
    return {name: Decimal(total) / FULL_SHARE / HOUR_MS for name, total in sorted(found.items())}


def quota_dimension(spans: Sequence[QuotaSpan], by: str) -> GroupOf:
    """The groups that hold the quotas of `quota_hours`."""
    plain = dimension(by)
    queues = {member: one.name for one in spans for member in one.members}
    if by != "queue" or not queues:
        return plain

    def group(held: Holding | None, machine: Machine) -> str:
        name = plain(held, machine)
        return name if held is None else queues.get(f"{held.holder.namespace}/{name}", name)

    return group
