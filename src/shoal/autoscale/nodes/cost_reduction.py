"""Makes a plan cheaper by moving pods between its planned nodes, as long as that lowers the price of the whole plan.

A plan made pod by pod lets nodes grow as long as some type holds them, and leaves a rest on a last node. Here nodes are
given up whose pods other nodes can take for less, and nodes are divided where two smaller ones cost less. Only nodes
whose pods have no rules about other pods take part. Groups of equal pods have one price, so it is computed once; the
number of groups that are tried is bounded, and equal input gives an equal plan.

Rejected: a solver of integer programs. It would need a dependency, and its time depends on the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations, islice
from math import inf
from typing import Final

from shoal.autoscale.nodes.interruption_risk import PodLoss
from shoal.autoscale.nodes.planned_node import (
    NarrowedNode,
    PlannedNode,
    cheapest,
    narrowed,
)
from shoal.autoscale.nodes.pod_variants import PlannedPod, PodVariant, VariantChoice
from shoal.autoscale.nodes.templates import PoolTemplate
from shoal.autoscale.nodes.topology_domains import TopologyDomains

_LEAST_GAIN: Final = 1e-9
_MOST_DIVIDED: Final = 10
"""Pods of all nodes that are divided anew in all ways: 1,024 groups, and 59,049 steps."""
_MOST_OF_SOME: Final = 8
"""The same of two or three nodes."""
_MOST_DIVISIONS: Final = 60
_MOST_GROUPS: Final = 4000
_LEAST_GROUPS: Final = 500
_GROUPS_BY_PODS: Final = 400_000
"""Groups of pods of which the price is computed: fewer the more pods there are."""


PlacedPod = tuple[PlannedPod, PodVariant, VariantChoice]
GroupKey = tuple[tuple[int, int, PodLoss], ...]


class GroupPrices:
    """The prices of groups of pods, each group on one node of any of these pools, which users prefer equally."""

    def __init__(
        self, templates: Sequence[PoolTemplate], domains: TopologyDomains, *, keeps_min_values: bool, most: int
    ) -> None:
        self._templates = templates
        self._domains = domains
        self._keeps_min_values = keeps_min_values
        self._prices: dict[GroupKey, float] = {}
        self._most = most

    @property
    def is_exhausted(self) -> bool:
        """Whether as many groups were tried as may be."""
        return len(self._prices) >= self._most

    def price(self, pods: Sequence[PlacedPod]) -> float:
        """Of the cheapest node that holds these pods; infinite if none does, zero without pods."""
        if not pods:
            return 0.0
        key = tuple(sorted((pod.shape.number, id(choice), pod.loss) for pod, _, choice in pods))
        found = self._prices.get(key)
        if found is None:
            found = self._prices[key] = min((each[0] for each in self._priced(pods, "", 0)), default=inf)
        return found

    def node(self, pods: Sequence[PlacedPod], name: str, index: int) -> tuple[PlannedNode, PoolTemplate] | None:
        """The cheapest node with these pods, and its pool; None if no type of any holds them."""
        found = min(self._priced(pods, name, index), default=None)
        return None if found is None else (found[2], self._templates[found[1]])

    def _priced(self, pods: Sequence[PlacedPod], name: str, index: int) -> Iterator[tuple[float, int, PlannedNode]]:
        for number, template in enumerate(self._templates):
            node = self._node_of(template, pods, name, index)
            offering = None if node is None else cheapest(template, node.offers, hours=node.lost_hours)
            if node is not None and offering is not None:
                yield float(template.expected_prices(node.lost_hours)[offering]), number, node

    def _node_of(self, template: PoolTemplate, pods: Sequence[PlacedPod], name: str, index: int) -> PlannedNode | None:
        node = PlannedNode(name, index, template.requirements, template)
        for pod, variant, choice in pods:
            found = narrowed(
                node, template, pod, variant, choice, self._domains, keeps_min_values=self._keeps_min_values
            )
            if not isinstance(found, NarrowedNode):
                return None
            node.take(pod, variant, choice, found, template.catalog.charge(variant.ask))
        return node


def cheaper_nodes(
    nodes: Sequence[tuple[PlannedNode, PoolTemplate]],
    templates: Sequence[PoolTemplate],
    domains: TopologyDomains,
    *,
    keeps_min_values: bool,
) -> list[tuple[PlannedNode, PoolTemplate]] | None:
    """The pods of these nodes on nodes that cost no more in all, with their pools; None where a group finds none. Pods
    stay in pools of the same weight.
    """
    made: list[tuple[PlannedNode, PoolTemplate]] = []
    for weight in dict.fromkeys(template.pool.weight for template in templates):
        equal = [template for template in templates if template.pool.weight == weight]
        own = [node for node, template in nodes if template.pool.weight == weight]
        pods = sum(len(node.pods) for node in own)
        most = min(max(_GROUPS_BY_PODS // max(pods, 1), _LEAST_GROUPS), _MOST_GROUPS)
        groups = GroupPrices(equal, domains, keeps_min_values=keeps_min_values, most=most)
        for placed in reduced([node.placed for node in own], groups):
            found = groups.node(placed, f"reduced-{len(made)}", len(made))
            if found is None:
                return None
            made.append(found)
    return made


def reduced(nodes: Sequence[Sequence[PlacedPod]], groups: GroupPrices) -> list[list[PlacedPod]]:
    """The pods of nodes of these pools, divided over nodes that cost no more in all."""
    left = [list(pods) for pods in nodes]
    improved = True
    while improved and not groups.is_exhausted:
        improved = False
        for step in _STEPS:
            improved |= step(left, groups)
        left = [pods for pods in left if pods]
    return left


def _give_up(nodes: list[list[PlacedPod]], groups: GroupPrices) -> bool:
    """Move the pods of a node to others, where that costs less than the node; the dearest for its pods comes first."""
    improved = False
    order = sorted(range(len(nodes)), key=lambda index: -groups.price(nodes[index]) / max(len(nodes[index]), 1))
    for index in order:
        if groups.is_exhausted:
            break
        price = groups.price(nodes[index])
        moves: list[tuple[int, PlacedPod]] = []
        trial = {other: pods for other, pods in enumerate(nodes) if other != index and pods}
        cost = 0.0
        for pod in nodes[index]:
            best, target = _cheapest_target(trial, pod, groups)
            cost += best
            if cost >= price - _LEAST_GAIN:
                break
            trial = {**trial, target: [*trial[target], pod]}
            moves.append((target, pod))
        if nodes[index] and len(moves) == len(nodes[index]):
            nodes[index] = []
            for target, pod in moves:
                nodes[target].append(pod)
            improved = True
    return improved


def _cheapest_target(trial: dict[int, list[PlacedPod]], pod: PlacedPod, groups: GroupPrices) -> tuple[float, int]:
    best, target = inf, -1
    for other, pods in trial.items():
        more = groups.price([*pods, pod]) - groups.price(pods)
        if more < best:
            best, target = more, other
            if best <= _LEAST_GAIN:
                break
    return best, target


def _divide(nodes: list[list[PlacedPod]], groups: GroupPrices) -> bool:
    """Divide a node into two, where these cost less."""
    improved = False
    for index in range(len(nodes)):
        if groups.is_exhausted:
            break
        pods = sorted(nodes[index], key=lambda placed: placed[0].order)
        best, cut = groups.price(pods) - _LEAST_GAIN, 0
        for place in range(1, len(pods)):
            price = groups.price(pods[:place]) + groups.price(pods[place:])
            if price < best:
                best, cut = price, place
        if cut:
            nodes[index] = pods[:cut]
            nodes.append(pods[cut:])
            improved = True
    return improved


def _move(nodes: list[list[PlacedPod]], groups: GroupPrices) -> bool:
    """Move single pods to where they cost less."""
    improved = False
    for index in range(len(nodes)):
        for pod in list(nodes[index]):
            if groups.is_exhausted:
                return improved
            rest = [other for other in nodes[index] if other is not pod]
            saved = groups.price(nodes[index]) - groups.price(rest)
            if saved <= _LEAST_GAIN or not rest:
                continue
            trial = {other: pods for other, pods in enumerate(nodes) if other != index and pods}
            best, target = _cheapest_target(trial, pod, groups)
            if best < saved - _LEAST_GAIN:
                nodes[index] = rest
                nodes[target] = [*nodes[target], pod]
                improved = True
    return improved


def _divide_anew(nodes: list[list[PlacedPod]], groups: GroupPrices) -> bool:
    """Divide the pods of one to three nodes anew, in the cheapest way that there is, where they are few."""
    improved = False
    there = [index for index, pods in enumerate(nodes) if pods]
    for chosen in _neighbours(nodes, there, groups):
        if groups.is_exhausted:
            break
        pods = [pod for index in chosen for pod in nodes[index]]
        if not pods or len(pods) > (_MOST_DIVIDED if len(chosen) == len(there) else _MOST_OF_SOME):
            continue
        now = sum(groups.price(nodes[index]) for index in chosen)
        price, parts = _cheapest_division(pods, groups)
        if price < now - _LEAST_GAIN:
            for index in chosen:
                nodes[index] = []
            for index, part in zip(chosen, parts, strict=False):
                nodes[index] = part
            nodes.extend(parts[len(chosen) :])
            improved = True
    return improved


def _neighbours(
    nodes: Sequence[Sequence[PlacedPod]], there: Sequence[int], groups: GroupPrices
) -> Iterable[tuple[int, ...]]:
    """All nodes together, if they have few pods, else the nodes in threes and in pairs; of very many the first ones."""
    if sum(len(nodes[index]) for index in there) <= _MOST_DIVIDED:
        return [tuple(there)]
    dearest = sorted(there, key=lambda index: -groups.price(nodes[index]) / len(nodes[index]))
    return islice(chain(combinations(dearest, 2), combinations(dearest, 3)), _MOST_DIVISIONS)


def _cheapest_division(pods: Sequence[PlacedPod], groups: GroupPrices) -> tuple[float, list[list[PlacedPod]]]:
    """The cheapest of all divisions of these pods over nodes, by dynamic programming over their subsets."""
    count = len(pods)
    prices = [groups.price([pods[bit] for bit in range(count) if mask >> bit & 1]) for mask in range(1 << count)]
    best, part = [0.0] * (1 << count), [0] * (1 << count)
    for mask in range(1, 1 << count):
        least, chosen = inf, 0
        # The part with the first pod of the mask is chosen; the others are divided already.
        first = mask & -mask
        rest = sub = mask ^ first
        while True:
            price = prices[sub | first] + best[rest ^ sub]
            if price < least - _LEAST_GAIN:
                least, chosen = price, sub | first
            if not sub:
                break
            sub = (sub - 1) & rest
        best[mask], part[mask] = least, chosen
    parts, mask = [], (1 << count) - 1
    while mask and part[mask]:
        parts.append([pods[bit] for bit in range(count) if part[mask] >> bit & 1])
        mask ^= part[mask]
    return (inf, []) if mask else (best[-1], parts)


_STEPS: Final[tuple[Callable[[list[list[PlacedPod]], GroupPrices], bool], ...]] = (
    _give_up,
    _divide,
    _move,
    _divide_anew,
)
