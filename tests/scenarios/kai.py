"""A KAI case's queues and settings, as the fair-share discipline takes them."""

from __future__ import annotations

from typing import Any

from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareSettings
from shoal.engine.queues.disciplines.kai.fair_queues import FairQueue
from shoal.engine.queues.disciplines.kai.fairshare import Fairshare
from shoal.engine.queues.disciplines.kai.node_preferences import preferences_name

from .case import Case, Queue

_RESOURCES = ("gpu", "cpu", "memory")
_SCALES = {"gpu": 1000, "cpu": 1000, "memory": 1}
"""Cases count GPUs, cores and bytes."""


def discipline_of(case: Case) -> Fairshare:
    """The queues of a case are listed oldest first."""
    settings = FairshareSettings(stale_grace_s=case.config.staleness_grace_seconds)
    placement = case.config.node_placement
    preferences = preferences_name(
        gpu_spread=placement.get("gpu") == "spread",
        cpu_spread=placement.get("cpu") == "spread",
        shares_spread=case.config.gpu_placement == "spread",
    )
    queues = [_queue(queue) for queue in case.queues]
    return Fairshare(queues, settings, case.config.actions, preferences=preferences)


def _queue(queue: Queue) -> FairQueue:
    gpu, cpu, memory = (_bound(queue.quota, name) for name in _RESOURCES)
    weights = queue.over_quota_weight or {}
    return FairQueue(
        queue.name,
        queue.parent,
        100 if queue.priority is None else int(queue.priority),
        (gpu, cpu, memory),
        (_bound(queue.limit, "gpu"), _bound(queue.limit, "cpu"), _bound(queue.limit, "memory")),
        (float(weights.get("gpu", 0)), float(weights.get("cpu", 0)), float(weights.get("memory", 0))),
    )


def _bound(amounts: Any, resource: str) -> int | None:
    value = (amounts or {}).get(resource, 0)
    return None if value == -1 else round(value * _SCALES[resource])
