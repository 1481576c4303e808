"""Decides whether the one new node of a consolidation is cheap enough, and which types it may be.

A type must cost less than the nodes that it replaces, judged by its dearest usable offering of the capacity type that
it would launch as. Spot nodes are replaced by spot nodes only if that is switched on, and a single one only if enough
cheaper types remain, or each replacement would lead to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from shoal.autoscale.disruption.candidates import Candidate
from shoal.autoscale.nodes.instance_types import ON_DEMAND, RESERVED, SPOT, InstanceType, Offering
from shoal.autoscale.nodes.plan import NewNode
from shoal.autoscale.requirements import RequirementSet, min_values_of, only
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, ZONE_LABEL

CHEAPER_SPOT_TYPES: Final = 15
"""How many cheaper types a single spot node needs, and how many are kept."""

_LAUNCH_ORDER: Final = (RESERVED, SPOT, ON_DEMAND)


def launch_price(one: InstanceType, requirements: RequirementSet) -> float | None:
    """The dearest price at which a node of this type could be launched; None if it cannot be."""
    allowed = requirements.get(CAPACITY_TYPE_LABEL)
    for capacity_type in _LAUNCH_ORDER:
        if not allowed.has(capacity_type):
            continue
        prices = [each.decision_price for each in _usable(one, requirements) if each.capacity_type == capacity_type]
        if prices:
            return max(prices)
    return None


def _usable(one: InstanceType, requirements: RequirementSet) -> list[Offering]:
    zones = requirements.get(ZONE_LABEL)
    return [each for each in one.offerings if each.is_available and zones.has(each.zone)]


def cheaper_replacement(
    new: NewNode, removed: Sequence[Candidate], *, spot_to_spot: bool, least: dict[str, int]
) -> NewNode | None:
    """The new node with the types that are cheap enough; None if there are none."""
    total = 0.0
    for candidate in removed:
        if candidate.price is None:
            return None
        total += candidate.price
    allowed = new.requirements.get(CAPACITY_TYPE_LABEL)
    if allowed.has(SPOT) and all(candidate.capacity_type == SPOT for candidate in removed):
        return _spot_to_spot(new, removed, total, least) if spot_to_spot else None
    kept = _cheaper(new, total, least)
    if kept is not None and SPOT in new.capacity_types and ON_DEMAND in new.capacity_types:
        # The types were judged by the price of spot, so another capacity type must not be launched.
        kept = _bound_to(kept, SPOT)
    return kept


def on_demand_replacement(new: NewNode, removed: Sequence[Candidate], least: dict[str, int]) -> NewNode | None:
    """The new node as an on-demand node, with the types that are cheap enough; None if there are none. Spot nodes are
    replaced by spot nodes only.
    """
    prices = [each.price for each in removed if each.price is not None]
    is_all_spot = all(each.capacity_type == SPOT for each in removed)
    if is_all_spot or ON_DEMAND not in new.capacity_types or len(prices) < len(removed):
        return None
    return _cheaper(_bound_to(new, ON_DEMAND), sum(prices), least)


def _spot_to_spot(new: NewNode, removed: Sequence[Candidate], total: float, least: dict[str, int]) -> NewNode | None:
    kept = _cheaper(_bound_to(new, SPOT), total, least)
    if kept is None or len(removed) > 1:
        return kept
    if len(kept.types) < CHEAPER_SPOT_TYPES:
        return None
    needed = min_values_of([one.labels for one in kept.types], least).needed or 0
    return replace(kept, types=kept.types[: max(CHEAPER_SPOT_TYPES, needed)])


def without_dearer_types(new: NewNode, removed: Sequence[Candidate], least: dict[str, int]) -> NewNode | None:
    """If the new node may be of a type that is being removed, it must be cheaper than the cheapest such node.

    Otherwise removing the other nodes would have been the better decision.
    """
    names = {one.name for one in new.types}
    prices = [
        candidate.price
        for candidate in removed
        if candidate.price is not None and candidate.instance_type is not None and candidate.instance_type.name in names
    ]
    return _cheaper(new, min(prices), least) if prices else new


def _cheaper(new: NewNode, price: float, least: dict[str, int]) -> NewNode | None:
    priced = [(launch_price(one, new.requirements), one) for one in new.types]
    kept = tuple(one for asked, one in priced if asked is not None and asked < price)
    if not kept or not min_values_of([one.labels for one in kept], least).is_satisfied:
        return None
    return with_types(new, kept)


def _bound_to(new: NewNode, capacity_type: str) -> NewNode:
    requirements = new.requirements.with_values(CAPACITY_TYPE_LABEL, only(capacity_type))
    types = tuple(
        one for one in new.types if any(each.capacity_type == capacity_type for each in _usable(one, requirements))
    )
    return replace(with_types(replace(new, requirements=requirements), types), capacity_types=(capacity_type,))


def with_types(new: NewNode, types: tuple[InstanceType, ...]) -> NewNode:
    """The node with fewer types, launched as the cheapest offering of them."""
    allowed = new.requirements.get(CAPACITY_TYPE_LABEL)
    offers = sorted(
        (
            (each.decision_price + each.risk_price(new.lost_hours), one.name, each.zone, one, each)
            for one in types
            for each in _usable(one, new.requirements)
            if allowed.has(each.capacity_type)
        ),
        key=lambda found: found[:3],
    )
    if not offers:
        return replace(new, types=types)
    ordered = dict.fromkeys(found[3].name for found in offers)
    by_name = {one.name: one for one in types}
    return replace(
        new,
        types=tuple(by_name[name] for name in ordered),
        launch=offers[0][3],
        offering=offers[0][4],
    )
