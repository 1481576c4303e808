"""Keeps what a pool may still provision.

A planned node counts with the largest of the types that it may still be, resource by resource, so no choice of types
can exceed a limit. The limit of spending counts with the offering that would be launched, and is checked again when a
pod makes the node dearer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from shoal.api.resources import amounts
from shoal.autoscale.nodes.catalog import Flags
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.planned_node import NarrowedNode, PlannedNode
from shoal.autoscale.nodes.pools import NODES_LIMIT, SPEND_LIMIT
from shoal.autoscale.nodes.templates import PoolTemplate
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, ZONE_LABEL

OffersAndHours = tuple[Flags, float]
"""What a planned node may be, and the hours that an interruption of it loses."""


class PoolLimits:
    """What is left of the limits of one pool."""

    def __init__(self, template: PoolTemplate, nodes: Iterable[ExistingNode]) -> None:
        self._template = template
        by_name = {one.name: one for one in template.types}
        limits = template.pool.limits
        self._usage = {node.name: _usage(limits, node, by_name.get(node.instance_type)) for node in nodes}
        self._all: dict[str, int] = dict(limits)
        for usage in self._usage.values():
            for name, amount in usage.items():
                self._all[name] -= amount
        self.left: dict[str, int] = dict(self._all)

    def reset(self, excluded: Iterable[str] = ()) -> None:
        """Forget the planned nodes, and count the nodes that exist but for the excluded ones."""
        self.left = dict(self._all)
        for node in excluded if self.left else ():
            for name, amount in self._usage.get(node, {}).items():
                self.left[name] += amount

    def within(self) -> Flags:
        """The offerings that one more node may have."""
        template = self._template
        allowed = np.ones(len(template.offerings), np.bool_)
        for name, left in self.left.items():
            if name == NODES_LIMIT:
                allowed &= left > 0
            elif name == SPEND_LIMIT:
                allowed &= np.rint(template.prices * 1000).astype(np.int64) <= left
            else:
                fits = np.array([one.capacity.get(name, 0) <= left for one in template.types], np.bool_)
                allowed &= fits[template.type_of] if len(fits) else False
        return allowed

    def subtract(self, types: Flags) -> Callable[[], None]:
        """Count a planned node, apart from its price; returns what undoes that."""
        before = dict(self.left)
        template = self._template
        for name in self.left:
            if name == NODES_LIMIT:
                self.left[name] -= 1
            elif name != SPEND_LIMIT:
                self.left[name] -= max(template.types[number].capacity.get(name, 0) for number in np.flatnonzero(types))

        def undo() -> None:
            self.left = before

        return undo

    def can_spend(self, node: PlannedNode, grown: NarrowedNode) -> bool:
        """Whether a planned node may grow: it is launched as its cheapest offering, which may become dearer."""
        if SPEND_LIMIT not in self.left:
            return True
        more = self._launch_milli((grown.offers, grown.lost_hours)) - self._launch_milli((node.offers, node.lost_hours))
        return more <= self.left[SPEND_LIMIT]

    def spend(self, before: OffersAndHours | None, after: OffersAndHours) -> Callable[[], None]:
        """Count the price of a planned node, or by how much it grew; returns what undoes that."""
        if SPEND_LIMIT not in self.left:
            return _nothing
        more = self._launch_milli(after) - (0 if before is None else self._launch_milli(before))
        self.left[SPEND_LIMIT] -= more

        def undo() -> None:
            self.left[SPEND_LIMIT] += more

        return undo

    def _launch_milli(self, node: OffersAndHours) -> int:
        """The price of the offering that costs least with its interruptions."""
        offers, hours = node
        expected = self._template.expected_prices(hours)[offers]
        return int(np.rint(self._template.prices[offers][expected <= expected.min()].max() * 1000))

    def take(self, node: PlannedNode) -> bool:
        """Count a node that is planned as a whole, bound to what the limits leave; False if they leave nothing."""
        node.offers = node.offers & self.within()
        node.types = self._template.types_of(node.offers)
        if not node.offers.any():
            return False
        self.spend(None, (node.offers, node.lost_hours))
        self.subtract(node.types)
        return True

    def text(self) -> str:
        """What is left, for messages."""
        return ", ".join(f"{name}: {_shown(name, left)} left" for name, left in sorted(self.left.items()))


def limits_fault(template: PoolTemplate) -> str:
    """Why the limits of a pool never allow a node, of whichever of its types; empty if they do."""
    limits = PoolLimits(template, ())
    if not template.usable.any() or (limits.within() & template.usable).any():
        return ""
    named = ", ".join(f"{name}: {_shown(name, limit)}" for name, limit in sorted(limits.left.items()))
    cheapest = next(one for one in template.types if one.name == template.usable_types()[0])
    needs = [
        f"{name}: {_shown(name, cheapest.capacity.get(name, 0))}"
        for name, limit in sorted(limits.left.items())
        if name not in (NODES_LIMIT, SPEND_LIMIT) and cheapest.capacity.get(name, 0) > limit
    ]
    example = f"; {cheapest.name} has {', '.join(needs)}" if needs else ""
    return f"its limits ({named}) are below one node of each of its instance types{example}"


def _nothing() -> None:
    """There is no limit of spending."""


def _usage(limits: Iterable[str], existing: ExistingNode, instance: InstanceType | None) -> dict[str, int]:
    capacity = amounts(existing.node.status.capacity) if limits else {}
    usage = {}
    for name in limits:
        if name == NODES_LIMIT:
            usage[name] = 1
        elif name == SPEND_LIMIT:
            usage[name] = _price_milli(existing, instance)
        else:
            promised = 0 if instance is None else instance.capacity.get(name, 0)
            usage[name] = capacity.get(name, 0) or promised
    return usage


def _price_milli(existing: ExistingNode, instance: InstanceType | None) -> int:
    labels = existing.node.metadata.labels
    for offering in instance.offerings if instance is not None else ():
        if (offering.zone, offering.capacity_type) == (labels.get(ZONE_LABEL), labels.get(CAPACITY_TYPE_LABEL)):
            return round(offering.decision_price * 1000)
    return 0


def _shown(name: str, left: int) -> str:
    if name in ("cpu", SPEND_LIMIT):
        return f"{max(left, 0) / 1000:g}"
    return str(max(left, 0))
