"""Formats the messages when pods do not fit: Kueue's sentences, with the numbers in them also as numbers."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.engine.queues.facts import Amounts
from shoal.engine.queues.tas.flavor_topology import Column
from shoal.engine.queues.topology_facts import TopologyAssignment


class TopologyRefusal(msgspec.Struct, frozen=True):
    pod_set: str
    message: str
    group: tuple[str, ...] = ()
    """All pod sets that share the fate; one, unless they go together."""
    fits: int | None = None
    """Of `wanted`; None where the request itself is at fault."""
    wanted: int | None = None
    unit: str = "pod"
    """Or `slice`."""
    domains: int = 0
    """Leaves looked at."""
    excluded: dict[str, int] = {}
    """Leaves that take no pod at all, by rule."""
    placed: dict[str, TopologyAssignment] = {}
    """Pod sets before it, which had a place."""

    def with_placed(self, placed: dict[str, TopologyAssignment]) -> TopologyRefusal:
        return msgspec.structs.replace(self, placed=placed)


def faulty(group: tuple[str, ...], message: str) -> TopologyRefusal:
    return TopologyRefusal(group[0], message, group)


def too_small(topology: str, group: tuple[str, ...], fits: int, wanted: int, unit: str) -> TopologyRefusal:
    if fits > 0:
        message = f'topology "{topology}" allows to fit only {fits} out of {wanted} {unit}(s)'
    else:
        message = f'topology "{topology}" doesn\'t allow to fit any of {wanted} {unit}(s)'
    return TopologyRefusal(group[0], message, group, max(0, fits), wanted, unit)


def with_exclusions(misfit: TopologyRefusal, domains: int, excluded: dict[str, int]) -> TopologyRefusal:
    """The same with what kept leaves out; nothing is added where nothing did."""
    if not excluded:
        return msgspec.structs.replace(misfit, domains=domains)
    reported = ", ".join(f"{rule}: {leaves}" for rule, leaves in sorted(excluded.items()))
    message = f"{misfit.message}. Total nodes: {domains}; excluded: {reported}"
    return msgspec.structs.replace(misfit, message=message, domains=domains, excluded=excluded)


def exhausted(columns: dict[str, Column | None], amounts: Amounts, considered: NDArray[np.bool_]) -> dict[str, int]:
    """Of the leaves considered, how many have no capacity for one pod, by the first resource that is short."""
    counts: dict[str, int] = {}
    left = considered
    for name in sorted(amounts):
        column = columns[name]
        short = left if column is None else left & (column < amounts[name])
        found = int(np.count_nonzero(short))
        if found:
            counts[f'resource "{name}"'] = found
            left = left & ~short
    return counts
