"""Plans for small clusters that Shoal's are compared with, none of them by Shoal's code.

- the optimum: the cheapest of all divisions of the pods over nodes, with each gang in each zone;
- Karpenter: pods by cpu, then memory; each to the planned node with the fewest pods that takes it, else to a new one;
  a node keeps all types that hold its pods, and the cheapest is chosen at the end;
- Cluster Autoscaler with `least-waste`: a node group for each type and zone; first fit of the pods, the largest part of
  the node's cpu and memory first; the group that wastes least of both grows; the other pods wait for the next round.

What is assumed in favour of the two autoscalers:

- They know how fractions and MIG instances fit on GPUs, cut on demand. In fact they count amounts, which an
  administrator has to state for each pool, and which hold for one fixed layout only.
- Neither knows gangs. Their pods have an affinity for each other by zone, as users write it. The first pod that is
  placed chooses the zone: the cheapest of those in which it is planned. A gang that then does not find all its nodes in
  this zone cannot run, and its nodes stand unused until it does. It is planned again in the other zones, from an empty
  cluster; what the nodes of the failed attempts cost until then is not counted, nor what the pods beside it would have
  kept of them. So the price is that of the nodes which the gang runs on in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from math import inf
from typing import Final, NamedTuple

from bench.random_clusters import GIB_OF_CORE, ZONES, Cluster, Item, Machine

_TENTHS: Final = 10
_SLICES: Final = {
    "1g.10gb": ((0, 1, 2, 3, 4, 5, 6), 1),
    "2g.20gb": ((0, 2, 4), 2),
    "3g.40gb": ((0, 4), 4),
    "4g.40gb": ((0,), 4),
    "7g.80gb": ((0,), 8),
}
"""Where an instance may start on a GPU with 80 GB, and how many slices of its memory it has."""


def holds(machine: Machine, items: Sequence[Item]) -> bool:
    """Whether a node of this type has room for these pods."""
    if sum(item.cores for item in items) > machine.cores:
        return False
    if sum(item.gib for item in items) > machine.cores * GIB_OF_CORE:
        return False
    shared = machine.gpus - sum(item.gpus for item in items)
    parts = sorted(item.tenths for item in items if item.tenths)
    instances = sorted(item.profile for item in items if item.profile)
    if not parts and not instances:
        return shared >= 0
    if instances and shared != machine.gpus:
        return False  # The GPUs of a node are all cut on demand, or none of them.
    return shared > 0 and (not parts or _has_shares(shared, tuple(parts))) and _has_instances(shared, tuple(instances))


@lru_cache(None)
def _has_shares(gpus: int, parts: tuple[int, ...]) -> bool:
    def fit(left: tuple[int, ...], number: int) -> bool:
        if number < 0:
            return True
        return any(
            fit(tuple(sorted((*left[:at], free - parts[number], *left[at + 1 :]))), number - 1)
            for at, free in enumerate(left)
            if free >= parts[number] and free not in left[:at]
        )

    return fit((_TENTHS,) * gpus, len(parts) - 1)


@lru_cache(None)
def _has_instances(gpus: int, profiles: tuple[str, ...]) -> bool:
    def fit(taken: tuple[int, ...], number: int) -> bool:
        if number < 0:
            return True
        starts, size = _SLICES[profiles[number]]
        for at, mask in enumerate(taken):
            if mask in taken[:at]:
                continue
            for start in starts:
                wanted = ((1 << size) - 1) << start
                if not mask & wanted and fit(tuple(sorted((*taken[:at], mask | wanted, *taken[at + 1 :]))), number - 1):
                    return True
        return False

    return fit((0,) * gpus, len(profiles) - 1)


def optimum(cluster: Cluster) -> float:
    """The price of the cheapest plan of all."""
    items = cluster.items
    groups = [[items[bit] for bit in range(len(items)) if mask >> bit & 1] for mask in range(1 << len(items))]
    fitting = [[one for one in cluster.machines if holds(one, group)] for group in groups]
    by_zone = {
        zone: [min((dict(one.prices).get(zone, inf) for one in each), default=inf) for each in fitting]
        for zone in ZONES
    }
    gangs = cluster.gangs
    return min(
        _cheapest_division(_prices(groups, by_zone, dict(zip(gangs, zones, strict=True))), len(items))
        for zones in product(ZONES, repeat=len(gangs))
    )


def _prices(groups: list[list[Item]], by_zone: dict[str, list[float]], zone_of: dict[str, str]) -> list[float]:
    """Of each group on one node, with the gangs in these zones."""
    found = []
    for mask, group in enumerate(groups):
        bound = {zone_of[item.gang] for item in group if item.gang}
        zones = bound or set(ZONES)
        found.append(inf if len(bound) > 1 else min(by_zone[zone][mask] for zone in zones))
    return found


def _cheapest_division(prices: list[float], count: int) -> float:
    best = [0.0] * (1 << count)
    for mask in range(1, 1 << count):
        first = mask & -mask
        rest = sub = mask ^ first
        least = inf
        while True:
            price = prices[sub | first]
            if price < least:
                least = min(least, price + best[rest ^ sub])
            if not sub:
                break
            sub = (sub - 1) & rest
        best[mask] = least
    return best[-1]


class Offer(NamedTuple):
    """A type in one zone."""

    price: float
    zone: str
    machine: Machine


class _Node:
    """Pods on a planned node, and what it may still become."""

    def __init__(self, offers: list[Offer], items: list[Item]) -> None:
        self.offers = offers
        self.items = items


Zones = dict[str, set[str]]
"""The zones that each gang may still use."""


class PlannedMachine(NamedTuple):
    """A node of a plan."""

    machine: str
    zone: str
    price: float


_Attempt = Callable[[Cluster, Zones], tuple[Sequence[Offer], str]]
"""The nodes of a plan, and the gang that does not fit into the zone which its first pod chose."""


def karpenter(cluster: Cluster) -> float:
    return _price(_until_gangs_run(_by_karpenter, cluster))


def cluster_autoscaler(cluster: Cluster) -> float:
    return _price(_until_gangs_run(_by_groups, cluster))


def karpenter_plan(cluster: Cluster) -> list[PlannedMachine]:
    """Nothing if a gang cannot run anywhere."""
    return _planned(_until_gangs_run(_by_karpenter, cluster))


def cluster_autoscaler_plan(cluster: Cluster) -> list[PlannedMachine]:
    """Nothing if a gang cannot run anywhere."""
    return _planned(_until_gangs_run(_by_groups, cluster))


def _price(offers: Sequence[Offer] | None) -> float:
    return inf if offers is None else sum(offer.price for offer in offers)


def _planned(offers: Sequence[Offer] | None) -> list[PlannedMachine]:
    return [PlannedMachine(offer.machine.name, offer.zone, offer.price) for offer in offers or ()]


def _until_gangs_run(attempt: _Attempt, cluster: Cluster) -> Sequence[Offer] | None:
    tried: dict[str, set[str]] = {gang: set() for gang in cluster.gangs}
    while True:
        allowed: Zones = {gang: set(ZONES) - zones for gang, zones in tried.items()}
        offers, failed = attempt(cluster, allowed)
        if not failed:
            return offers
        # The attempt leaves the zone that it chose as the only one.
        tried[failed] |= allowed[failed]
        if tried[failed] == set(ZONES):
            return None


def _offers(cluster: Cluster) -> list[Offer]:
    return sorted(Offer(price, zone, one) for one in cluster.machines for zone, price in one.prices)


def _within(offers: Sequence[Offer], items: Sequence[Item], zones: set[str] | None) -> list[Offer]:
    fits = {offer.machine: False for offer in offers if zones is None or offer.zone in zones}
    fits = {machine: holds(machine, items) for machine in fits}
    return [offer for offer in offers if (zones is None or offer.zone in zones) and fits[offer.machine]]


def _by_karpenter(cluster: Cluster, allowed: Zones) -> tuple[Sequence[Offer], str]:
    every = _offers(cluster)
    nodes: list[_Node] = []
    for item in sorted(cluster.items, key=lambda item: (-item.cores, -item.gib)):
        zones = allowed.get(item.gang)
        for node in sorted(nodes, key=lambda node: len(node.items)):
            offers = _within(node.offers, [*node.items, item], zones)
            if offers:
                break
        else:
            node = _Node(every, [])
            offers = _within(every, [item], zones)
            if not offers:
                return (), item.gang
            nodes.append(node)
        if zones is not None:
            zones.intersection_update({offers[0].zone})
            offers = [offer for offer in offers if offer.zone in zones]
        node.offers, node.items = offers, [*node.items, item]
    return [_launched(node) for node in nodes], ""


def _launched(node: _Node) -> Offer:
    """Types with GPUs are left out as long as any without would do; then the cheapest."""
    return next((offer for offer in node.offers if not offer.machine.gpus), node.offers[0])


class _Option(NamedTuple):
    """What the growth of a node group would bring."""

    waste: float
    turn: int
    offer: Offer
    nodes: list[list[Item]]


def _by_groups(cluster: Cluster, allowed: Zones) -> tuple[Sequence[Offer], str]:
    groups = _offers(cluster)
    left = list(cluster.items)
    nodes: list[tuple[Offer, list[Item]]] = []
    while left:
        left = _left_by(nodes, left, allowed)
        options = [
            option for turn, offer in enumerate(groups) if (option := _growth(offer, turn, left, allowed)) is not None
        ]
        if not left:
            break
        if not options:
            return (), next(item.gang for item in left if item.gang)
        chosen = min(options, key=lambda option: option[:2])
        for items in chosen.nodes:
            nodes.append((chosen.offer, items))
            for item in items:
                left.remove(item)
                allowed.get(item.gang, set()).intersection_update({chosen.offer.zone})
    return [offer for offer, _ in nodes], ""


def _left_by(nodes: list[tuple[Offer, list[Item]]], items: Sequence[Item], allowed: Zones) -> list[Item]:
    """The pods for which the nodes of earlier rounds have no room; the others go there."""
    left = []
    for item in items:
        zones = allowed.get(item.gang)
        for offer, there in nodes:
            if (zones is None or offer.zone in zones) and holds(offer.machine, [*there, item]):
                there.append(item)
                if zones is not None:
                    zones.intersection_update({offer.zone})
                break
        else:
            left.append(item)
    return left


def _growth(offer: Offer, turn: int, items: Sequence[Item], allowed: Zones) -> _Option | None:
    """The nodes that first fit needs in this group, and what part of their cpu and memory is wasted."""
    machine = offer.machine
    gib = machine.cores * GIB_OF_CORE
    nodes: list[list[Item]] = []
    for item in sorted(items, key=lambda item: -(item.cores / machine.cores + item.gib / gib)):
        if offer.zone not in allowed.get(item.gang, ZONES) or not holds(machine, [item]):
            continue
        there = next((each for each in nodes if holds(machine, [*each, item])), None)
        if there is None:
            nodes.append([item])
        else:
            there.append(item)
    if not nodes:
        return None
    cores = sum(item.cores for each in nodes for item in each) / (machine.cores * len(nodes))
    memory = sum(item.gib for each in nodes for item in each) / (gib * len(nodes))
    return _Option((1 - cores) + (1 - memory), turn, offer, nodes)
