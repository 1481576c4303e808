"""Sums over the containers of a pod: its class of service, and what it asks for as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

from shoal.embedded.apiserver.kinds.complaints import Obj
from shoal.units.quantity import Quantity

_JUDGED = ("cpu", "memory")
_POD_LEVEL = ("cpu", "memory")


def service_class(spec: Obj) -> str:
    """`Guaranteed`, `Burstable` or `BestEffort`, by the cpu and memory of all containers or of the pod as a whole."""
    if whole := spec.get("resources"):
        blocks = [whole]
    else:
        lists = chain(spec.get("containers") or (), spec.get("initContainers") or ())
        blocks = [container.get("resources") or {} for container in lists]
    asks = [(_reported(block.get("requests")), _reported(block.get("limits"))) for block in blocks]
    return _judge(tuple(asks))


def _reported(amounts: Mapping[str, str] | None) -> tuple[str, str]:
    if not amounts:
        return ("", "")
    return amounts.get("cpu", ""), amounts.get("memory", "")


@lru_cache(maxsize=4096)
def _judge(asks: tuple[tuple[tuple[str, str], tuple[str, str]], ...]) -> str:
    totals: dict[tuple[str, int], int] = {}
    is_limited = True
    for requests, limits in asks:
        for place in range(len(_JUDGED)):
            for side, amounts in (("requests", requests), ("limits", limits)):
                nano = Quantity.parse(amounts[place]).nano if amounts[place] else 0
                if nano > 0:
                    totals[side, place] = totals.get((side, place), 0) + nano
                elif side == "limits":
                    is_limited = False
    if not totals:
        return "BestEffort"
    if is_limited and all(totals.get(("requests", place)) in (None, totals["limits", place]) for place in (0, 1)):
        return "Guaranteed" if all(("requests", place) in totals for place in (0, 1)) else "Burstable"
    return "Burstable"


def pod_level_defaults(spec: Obj) -> None:
    """Pod-level requests where only pod-level limits were given: the containers' own sum, else the limit."""
    block = spec["resources"]
    limits = block.get("limits")
    if not limits:
        return
    requests = block.get("requests") or {}
    for name, amount in _sum_requests(spec).items():
        requests.setdefault(name, amount)
    for name, amount in limits.items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            requests.setdefault(name, amount)
    if requests:
        block["requests"] = requests


def _sum_requests(spec: Obj) -> dict[str, str]:
    """Containers and sidecars run together; another init container runs beside the sidecars started before it."""
    steady: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(steady, container)
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            _add(steady, container)
            _add(sidecars, container)
            at_once = sidecars
        else:
            at_once = dict(sidecars)
            _add(at_once, container)
        for name, value in at_once.items():
            peak[name] = max(peak.get(name, value), value)
    names = dict.fromkeys(_names(steady, peak))
    return {name: str(max(one[name] for one in (steady, peak) if name in one)) for name in names}


def _names(*sums: Mapping[str, Quantity]) -> Iterable[str]:
    return (name for one in sums for name in one if name in _POD_LEVEL)


def _add(total: dict[str, Quantity], container: Obj) -> None:
    for name, amount in ((container.get("resources") or {}).get("requests") or {}).items():
        value = Quantity.parse(amount)
        total[name] = total[name] + value if name in total else value
