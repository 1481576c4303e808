"""Chooses what planned nodes are launched as, which further attempts are made, and lists what pools can provide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from shoal.api.taints import Taint
from shoal.api.topology import HOSTNAME_LABEL
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.nodes.plan import NewNode
from shoal.autoscale.nodes.planned_node import OfferingKey, PlannedNode, cheapest, offering_key
from shoal.autoscale.nodes.templates import PoolTemplate

_MOST_ATTEMPTS: Final = 24
_MOST_TRIED_PODS: Final = 900
"""Pods of all further attempts together, so that a plan for many pods does not take many times as long."""


def launched_nodes(
    nodes: Sequence[tuple[PlannedNode, PoolTemplate]], gangs: Mapping[str, str]
) -> tuple[tuple[NewNode, ...], set[str]]:
    """The nodes as they are launched, and the pods that get none because a reservation is used up.

    A gang that loses a pod loses all of them, and a node without pods is not launched.
    """
    left: dict[OfferingKey, int] = {}
    made: list[NewNode] = []
    lost: set[str] = set()
    for node, template in nodes:
        new = new_node(node, template, left)
        if new is None:
            lost.update(pod.key for pod in node.pods)
        else:
            made.append(new)
    if lost:
        broken = {gangs[key] for key in lost if key in gangs}
        lost.update(key for new in made for key in new.pods if gangs.get(key) in broken)
        made = [replace(new, pods=tuple(key for key in new.pods if key not in lost)) for new in made]
    return tuple(new for new in made if new.pods), lost


def new_node(node: PlannedNode, template: PoolTemplate, left: dict[OfferingKey, int]) -> NewNode | None:
    """The node as it is launched; `left`: what the nodes so far leave of reservations. None if nothing is left."""
    index = cheapest(template, node.offers, left, hours=node.lost_hours)
    if index is None:
        return None
    by_price = cheapest(template, node.offers, left)
    offering = template.offerings[index]
    if offering.left is not None:
        key = offering_key(template, index)
        left[key] = left.get(key, offering.left) - 1
    chosen = template.types[template.type_of[index]]
    numbers = sorted(
        np.flatnonzero(node.types).tolist(),
        key=lambda number: (_least_price(template, node, number), template.types[number].name),
    )
    offers = [template.offerings[each] for each in np.flatnonzero(node.offers)]
    return NewNode(
        template.name,
        node.requirements.without(HOSTNAME_LABEL),
        tuple(template.types[number] for number in numbers),
        chosen,
        offering,
        tuple(pod.key for pod in node.pods),
        tuple(sorted({each.zone for each in offers})),
        tuple(sorted({each.capacity_type for each in offers})),
        node.lost_hours,
        None if by_price is None or by_price == index else _offered(template, by_price),
    )


def _offered(template: PoolTemplate, index: int) -> tuple[InstanceType, Offering]:
    return template.types[template.type_of[index]], template.offerings[index]


def _least_price(template: PoolTemplate, node: PlannedNode, number: int) -> float:
    return float(template.prices[node.offers & (template.type_of == number)].min())


def provided_values(templates: Iterable[PoolTemplate]) -> dict[str, dict[str, list[tuple[Taint, ...]]]]:
    """By label, the values that the pools can provide, with the taints of each pool that can."""
    found: dict[str, dict[str, list[tuple[Taint, ...]]]] = {}
    for template in templates:
        for key, values in template.provided().items():
            for value in values:
                found.setdefault(key, {}).setdefault(value, []).append(template.pool.taints)
    return found


def price_bounds(templates: Sequence[PoolTemplate], pods: int) -> list[float]:
    """Prices beyond which nodes do not grow, one for each further attempt; fewer the more pods there are."""
    least: set[float] = set()
    for template in templates:
        for number in np.flatnonzero(template.types_of(template.usable)).tolist():
            offers = template.usable & (template.type_of == number)
            least.add(float(template.prices[offers].min()))
    prices = sorted(least)[:-1]
    attempts = min(len(prices), trials(pods))
    return [prices[place * len(prices) // attempts] for place in range(attempts)]


def trials(pods: int) -> int:
    """How many further attempts are made for so many pods."""
    return min(_MOST_ATTEMPTS, _MOST_TRIED_PODS // max(pods, 1))
