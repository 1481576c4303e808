"""Reads and writes Volcano's queues."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.engine.queues.conversion.model import (
    ROOT,
    Amounts,
    NeutralQueue,
    Queues,
    Written,
    fractions,
    in_engine_units,
    parents_first,
    quantity,
)
from shoal.engine.queues.disciplines.volcano.objects import Queue

_API = "scheduling.volcano.sh/v1beta1"
_NEEDS_CAPACITY = (
    "the scheduler of Volcano needs the plugin capacity with enableHierarchy: true, and the actions reclaim and preempt"
)


def from_volcano(queues: Iterable[Queue]) -> Queues:
    losses: list[str] = []
    found: list[NeutralQueue] = []
    for queue in queues:
        if queue.name == ROOT:
            if queue.spec.capability or queue.spec.deserved:
                losses.append("queue root: its amounts are left out; the whole cluster is divided")
            continue
        if queue.status.state not in ("", "Open", "Closed", "Closing"):
            losses.append(f"queue {queue.name}: state {queue.status.state} is left out")
        spec = queue.spec
        for field, value in (("preemptable", spec.preemptable), ("preemptionPolicy", spec.preemption_policy)):
            if value not in (None, "", True):
                losses.append(f"queue {queue.name}: {field}, an extension of Shoal, is left out")
        found.append(
            NeutralQueue(
                queue.name,
                "" if queue.parent == ROOT else queue.parent,
                in_engine_units(queue.deserved()),
                in_engine_units(queue.capability()),
                guarantee=in_engine_units(queue.guarantee()),
                weight=float(queue.spec.weight),
                priority=queue.spec.priority or None,
                is_first_come=queue.spec.dequeue_strategy == "fifo",
                is_held=queue.status.state in ("Closed", "Closing"),
                is_reclaimable=queue.spec.reclaimable is not False,
            )
        )
    return Queues(parents_first(found), losses)


def to_volcano(source: Queues) -> Written:
    losses: list[str] = [_NEEDS_CAPACITY] if any(queue.quota or queue.guarantee for queue in source.queues) else []
    objects: list[dict[str, object]] = []
    for queue in source.queues:
        losses += fractions(queue)
        spec: dict[str, object] = {}
        if queue.parent:
            spec["parent"] = queue.parent
        weight = 1.0 if queue.weight is None else queue.weight
        spec["weight"] = max(round(weight), 1)
        if weight != spec["weight"]:
            losses.append(
                f"queue {queue.name}: weight {weight:g} is written as {spec['weight']}, the nearest whole number"
            )
        if queue.priority:
            spec["priority"] = queue.priority
        if not queue.is_reclaimable:
            spec["reclaimable"] = False
        if queue.is_first_come:
            spec["dequeueStrategy"] = "fifo"
        for field, amounts in (("deserved", queue.quota), ("capability", queue.limit)):
            if amounts:
                spec[field] = _quantities(amounts)
        if queue.guarantee:
            spec["guarantee"] = {"resource": _quantities(queue.guarantee)}
        for name in sorted(queue.unlimited):
            losses.append(f"queue {queue.name}: the unlimited quota of {name} is left out; Volcano has no word for it")
        if queue.is_held:
            losses.append(
                f"queue {queue.name}: it is stopped; close it with: vcctl queue operate -n {queue.name} -a close"
            )
        for namespace, name in queue.locals:
            losses.append(f"jobs of LocalQueue {namespace}/{name} must name the queue {queue.name} themselves")
        objects.append({"apiVersion": _API, "kind": "Queue", "metadata": {"name": queue.name}, "spec": spec})
    return Written(objects, losses)


def _quantities(amounts: Amounts) -> dict[str, str]:
    return {name: quantity(name, amount) for name, amount in sorted(amounts.items())}
