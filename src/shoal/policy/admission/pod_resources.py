"""Sums the requests of a pod: containers together, init containers one after the other.

An init container that restarts (a sidecar) stays, so it counts with everything that starts after it. Requests or limits
of the pod itself, where set, represent the sum. The rule is that of the scheduler and of quota.
"""

from __future__ import annotations

from typing import Any, Literal

from shoal.units.quantity import Quantity

Obj = dict[str, Any]
"""An object of the API as plain JSON values."""
Amounts = dict[str, Quantity]
Field = Literal["requests", "limits"]
_POD_LEVEL = ("cpu", "memory")


def parsed(listed: Obj | None) -> Amounts:
    return {name: Quantity.parse(str(text)) for name, text in (listed or {}).items()}


def container_amounts(container: Obj, field: Field) -> Amounts:
    return parsed((container.get("resources") or {}).get(field))


def pod_amounts(spec: Obj, field: Field, *, with_overhead: bool = False) -> Amounts:
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, container_amounts(container, field))
    _count_init(total, spec, field)
    for name, amount in parsed((spec.get("resources") or {}).get(field)).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = amount
    if with_overhead and spec.get("overhead"):
        overhead = parsed(spec["overhead"])
        # A pod without a limit does not get one by its overhead.
        add(total, overhead if field == "requests" else {name: overhead[name] for name in overhead if name in total})
    return total


def _count_init(total: Amounts, spec: Obj, field: Field) -> None:
    staying: Amounts = {}
    highest: Amounts = {}
    for container in spec.get("initContainers") or ():
        amounts = container_amounts(container, field)
        if container.get("restartPolicy") == "Always":
            add(total, amounts)
            add(staying, amounts)
            amounts = dict(staying)
        else:
            add(amounts, staying)
        _raise(highest, amounts)
    _raise(total, highest)


def add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: Amounts, floor: Amounts) -> None:
    for name, amount in floor.items():
        if name not in total or total[name] < amount:
            total[name] = amount
