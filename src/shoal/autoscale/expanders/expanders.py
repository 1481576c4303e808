"""Implements Cluster Autoscaler's expanders: each keeps the best options, and all of those that are equally good."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, tanh
from typing import Final

from shoal.api.priority_expander import Priorities
from shoal.autoscale.expanders.options import Prices, ScaleUpOption
from shoal.engine.fitter import seeded_number

GPU_UNFITNESS: Final = 1000.0
_NOT_EXISTING: Final = 2.0
_NODES_SCALE: Final = 15.0
_LEAST_PRIORITY: Final = -1
"""Cluster Autoscaler uses no priority below."""

Options = list[ScaleUpOption]
Expander = Callable[[Sequence[ScaleUpOption]], Options]


def priority_of(group: str, priorities: Priorities | None) -> int | None:
    """The highest priority with a pattern that matches the name of the group; None without one."""
    matching = (
        priority
        for priority, patterns in (priorities or {}).items()
        if priority >= _LEAST_PRIORITY and any(pattern.occurs(group) for pattern in patterns)
    )
    return max(matching, default=None)


def by_priority(options: Sequence[ScaleUpOption], priorities: Priorities | None) -> Options:
    """The options of the highest priority with a match; all options where nothing matches or nothing is configured."""
    found = [priority_of(each.group, priorities) for each in options]
    best = max((each for each in found if each is not None), default=None)
    return [each for each, priority in zip(options, found, strict=True) if priority == best]


def least_waste(options: Sequence[ScaleUpOption]) -> Options:
    """The smallest sum of the unused shares of cpu and memory."""
    return _smallest(options, _waste)


def least_nodes(options: Sequence[ScaleUpOption]) -> Options:
    """The fewest nodes."""
    return _smallest(options, lambda option: float(option.nodes) if option.nodes else None)


def most_pods(options: Sequence[ScaleUpOption]) -> Options:
    """The most pods."""
    return _smallest(options, lambda option: -float(len(option.pods)))


def by_price(options: Sequence[ScaleUpOption], prices: Prices) -> Options:
    """The lowest price of nodes for the price of their pods, nodes of an unusual shape counted as dearer."""
    return _smallest(options, lambda option: _priced(option, prices))


def at_random(options: Sequence[ScaleUpOption], seed: int = 0) -> Options:
    """Any one option; the same seed gives the same one."""
    if not options:
        return []
    names = ",".join(option.group for option in options)
    return [options[seeded_number(seed, names) % len(options)]]


def in_chain(options: Sequence[ScaleUpOption], expanders: Sequence[Expander]) -> Options:
    """One expander after the other, each on what the former left, until one option is left."""
    left = list(options)
    for expander in expanders:
        left = expander(left)
        if len(left) <= 1:
            break
    return left


def _smallest(options: Sequence[ScaleUpOption], score: Callable[[ScaleUpOption], float | None]) -> Options:
    """The options with the smallest score; an option without a score is left out."""
    best: Options = []
    least = inf
    for option in options:
        found = score(option)
        if found is None or found > least:
            continue
        if found < least:
            best, least = [], found
        best.append(option)
    return best


def _waste(option: ScaleUpOption) -> float | None:
    template = option.template
    if template is None:
        return None
    cpu = sum(pod.cpu_milli for pod in option.pods)
    memory = sum(pod.memory_bytes for pod in option.pods)
    return _unused(template.cpu_milli * option.nodes, cpu) + _unused(template.memory_bytes * option.nodes, memory)


def _unused(supply: int, used: int) -> float:
    return (supply - used) / supply if supply else 0.0


def _priced(option: ScaleUpOption, prices: Prices) -> float | None:
    template = option.template
    node_price = prices.node.get(option.group)
    if template is None or node_price is None or any(pod.name not in prices.pod for pod in option.pods):
        return None
    nodes = node_price * option.nodes + prices.stabilization
    pods = sum(prices.pod[pod.name] for pod in option.pods) + prices.stabilization
    unfitness = GPU_UNFITNESS if template.has_gpu else _unfitness(option, prices.preferred_cpu_milli)
    score = (nodes / pods if pods else inf) * unfitness
    return score if option.exists else score * _NOT_EXISTING


def _unfitness(option: ScaleUpOption, preferred_cpu_milli: int) -> float:
    """How far the node's cpu is from the preferred one; that matters less the more nodes there are."""
    cpu_milli = option.template.cpu_milli if option.template is not None else 0
    if not cpu_milli or not preferred_cpu_milli:
        return inf
    shape = max(preferred_cpu_milli / cpu_milli, cpu_milli / preferred_cpu_milli)
    return (shape - 1.0) * (1.0 - tanh((option.nodes - 1) / _NODES_SCALE)) + 1.0
