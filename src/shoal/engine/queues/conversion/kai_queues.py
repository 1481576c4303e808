"""Reads and writes KAI's queues, which know GPUs, cores and memory."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.engine.queues.conversion.model import GPU, NeutralQueue, Queues, Written, parents_first
from shoal.engine.queues.disciplines.kai.objects import RESOURCES, Queue

_API = "scheduling.run.ai/v2"
_NAMES = {"gpu": GPU, "cpu": "cpu", "memory": "memory"}
_PER_UNIT = {"gpu": 1000, "cpu": 1, "memory": 1_000_000}
_PRIORITY = 100
_UNLIMITED = -1


def from_kai(queues: Iterable[Queue]) -> Queues:
    losses: list[str] = []
    found: list[NeutralQueue] = []
    for queue in queues:
        quota: dict[str, int] = {}
        limit: dict[str, int] = {}
        unlimited: set[str] = set()
        weights: dict[str, float] = {}
        for resource in RESOURCES:
            name, own, most = _NAMES[resource], queue.quota(resource), queue.limit(resource)
            if own == 0 and most == 0:
                continue
            weights[resource] = weight = queue.weight(resource)
            if own is None:
                unlimited.add(name)
            elif own:
                quota[name] = own
            if weight == 0 and own is not None:
                # Without a weight a queue gets nothing beyond its quota.
                most = own if most is None else min(most, own)
            if most is not None:
                limit[name] = most
        given = {weight for weight in weights.values() if weight}
        if len(given) > 1:
            listed = ", ".join(f"{resource} {weight:g}" for resource, weight in weights.items())
            losses.append(f"queue {queue.name}: of the weights by resource ({listed}) only the largest is kept")
        for field, text in (
            ("preemptMinRuntime", queue.spec.preempt_min_runtime),
            ("reclaimMinRuntime", queue.spec.reclaim_min_runtime),
        ):
            if text:
                losses.append(
                    f"queue {queue.name}: {field} {text} is left out; only KAI protects pods after their start"
                )
        priority = None if queue.spec.priority == _PRIORITY else queue.spec.priority
        weight_of_all = max(given, default=0.0) or None
        found.append(
            NeutralQueue(
                queue.name,
                queue.spec.parent_queue,
                quota,
                limit,
                frozenset(unlimited),
                weight=weight_of_all,
                priority=priority,
            )
        )
    return Queues(parents_first(found), losses)


def to_kai(source: Queues) -> Written:
    losses: list[str] = []
    objects: list[dict[str, object]] = []
    others = [name for name in source.resources() if name not in _NAMES.values()]
    if others:
        losses.append(f"resources that KAI's queues do not count are left out: {', '.join(others)}")
    for queue in source.queues:
        spec: dict[str, object] = {"parentQueue": queue.parent} if queue.parent else {}
        if queue.priority is not None:
            spec["priority"] = queue.priority
        weight = 1.0 if queue.weight is None else queue.weight
        resources: dict[str, dict[str, float]] = {}
        for resource, name in _NAMES.items():
            if name in queue.unlimited:
                quota: float = _UNLIMITED
            else:
                quota = _units(resource, queue.quota.get(name, 0))
            limit = _units(resource, queue.limit[name]) if name in queue.limit else _UNLIMITED
            resources[resource] = {"quota": quota, "limit": limit, "overQuotaWeight": _number(weight)}
        spec["resources"] = resources
        if queue.guarantee:
            losses.append(f"queue {queue.name}: the guarantee is left out; in KAI other queues may use what is unused")
        if queue.is_first_come:
            losses.append(f"queue {queue.name}: the first job does not block those behind it in KAI")
        if queue.is_held:
            losses.append(f"queue {queue.name}: it is stopped; KAI has no such state")
        if not queue.is_reclaimable:
            losses.append(f"queue {queue.name}: other queues may reclaim what it uses beyond its quota")
        for namespace, local in queue.locals:
            losses.append(f"pods of LocalQueue {namespace}/{local} need the label kai.scheduler/queue: {queue.name}")
        objects.append({"apiVersion": _API, "kind": "Queue", "metadata": {"name": queue.name}, "spec": spec})
    return Written(objects, losses)


def _units(resource: str, amount: int) -> float:
    return _number(amount / _PER_UNIT[resource])


def _number(value: float) -> float:
    return int(value) if value == int(value) else value
