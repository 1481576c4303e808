"""Keeps what a pool may still provision.

A planned node counts with the largest of the types that it may still be, resource by resource, so no choice of types
can exceed a limit. The limit of spending counts with the dearest of its offerings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from shoal.api.resources import amounts
from shoal.autoscale.nodes.catalog import Flags
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pools import NODES_LIMIT, SPEND_LIMIT
from shoal.autoscale.nodes.templates import PoolTemplate
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, ZONE_LABEL


class PoolLimits:
    """What is left of the limits of one pool."""

    def __init__(self, template: PoolTemplate, nodes: Iterable[ExistingNode]) -> None:
        self._template = template
        self.left: dict[str, int] = dict(template.pool.limits)
        by_name = {one.name: one for one in template.types}
        for node in nodes:
            self._subtract_existing(node, by_name.get(node.instance_type))

    def _subtract_existing(self, existing: ExistingNode, instance: InstanceType | None) -> None:
        capacity = amounts(existing.node.status.capacity)
        for name in self.left:
            if name == NODES_LIMIT:
                self.left[name] -= 1
            elif name == SPEND_LIMIT:
                self.left[name] -= _price_milli(existing, instance)
            else:
                promised = 0 if instance is None else instance.capacity.get(name, 0)
                self.left[name] -= capacity.get(name, 0) or promised

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

    def subtract(self, types: Flags, offers: Flags) -> Callable[[], None]:
        """Count a planned node; returns what undoes that."""
        before = dict(self.left)
        template = self._template
        for name in self.left:
            if name == NODES_LIMIT:
                self.left[name] -= 1
            elif name == SPEND_LIMIT:
                self.left[name] -= int(np.rint(template.prices[offers].max() * 1000))
            else:
                self.left[name] -= max(template.types[number].capacity.get(name, 0) for number in np.flatnonzero(types))

        def undo() -> None:
            self.left = before

        return undo

    def text(self) -> str:
        """What is left, for messages."""
        return ", ".join(f"{name}: {_shown(name, left)} left" for name, left in sorted(self.left.items()))


def _price_milli(existing: ExistingNode, instance: InstanceType | None) -> int:
    labels = existing.node.metadata.labels
    for offering in instance.offerings if instance is not None else ():
        if (offering.zone, offering.capacity_type) == (labels.get(ZONE_LABEL), labels.get(CAPACITY_TYPE_LABEL)):
            return round(offering.price * 1000)
    return 0


def _shown(name: str, left: int) -> str:
    if name in ("cpu", SPEND_LIMIT):
        return f"{max(left, 0) / 1000:g}"
    return str(max(left, 0))
