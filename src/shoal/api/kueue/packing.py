"""Topology assignments in both versions: v1beta1 lists domains one by one, v1beta2 packs them into slices.

Packing makes one slice: what all domains share is written once, of names that differ only the middle. Several slices
would pack some assignments tighter, at the price of a search for where to cut; unpacking reads any number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.api.faults import user_error
from shoal.api.kueue.topology_assignments import Domain, TopologyAssignment
from shoal.units.errors import Where

Plain = dict[str, Any]


def packed(raw: Plain) -> Plain:
    """v1beta1's assignment as v1beta2 writes it."""
    assignment = _typed(raw)
    domains = assignment.domains()
    return {"levels": list(assignment.levels), "slices": [_slice(domains)] if domains else []}


def unpacked(raw: Plain) -> Plain:
    """v1beta2's assignment as v1beta1 writes it."""
    assignment = _typed(raw)
    domains = [{"values": list(values), "count": count} for values, count in assignment.domains()]
    return {"levels": list(assignment.levels), "domains": domains}


def _typed(raw: Plain) -> TopologyAssignment:
    try:
        assignment = msgspec.convert(raw, TopologyAssignment)
    except msgspec.ValidationError as error:
        raise user_error(error, raw, TopologyAssignment, Where()) from error
    assignment.check(Where())
    return assignment


def _slice(domains: Sequence[Domain]) -> Plain:
    counts = [count for _, count in domains]
    levels = zip(*(values for values, _ in domains), strict=True)
    return {
        "domainCount": len(domains),
        "valuesPerLevel": [_level(values) for values in levels],
        "podCounts": {"universal": counts[0]} if len(set(counts)) == 1 else {"individual": counts},
    }


def _level(values: Sequence[str]) -> Plain:
    if len(set(values)) == 1:
        return {"universal": values[0]}
    prefix = _common_prefix(values)
    rests = [value[len(prefix) :] for value in values]
    suffix = _common_prefix([rest[::-1] for rest in rests])[::-1]
    individual: Plain = {"prefix": prefix} if prefix else {}
    if suffix:
        individual["suffix"] = suffix
    individual["roots"] = [rest.removesuffix(suffix) for rest in rests]
    return {"individual": individual}


def _common_prefix(values: Sequence[str]) -> str:
    """What the least and the greatest begin with alike, all between them do."""
    first, last = min(values), max(values)
    length = next((index for index, letter in enumerate(first) if letter != last[index : index + 1]), len(first))
    return first[:length]
