"""Represents what a cloud offers: instance types with their capacity and labels, and the offerings of each.

An offering is a type in one zone under one capacity type, with its price. A type is only usable as one of its
available offerings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, ZONE_LABEL

ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
RESERVED: Final = "reserved"
CAPACITY_BLOCK: Final = "capacity-block"

PAID_ALREADY: Final = frozenset({RESERVED, CAPACITY_BLOCK})
"""Capacity types that cost the same whether they are used or not."""

MOST_INTERRUPTIONS: Final = 3600.0
"""Per hour, of one node: what users may write."""

_LAUNCH_ORDER: Final = {CAPACITY_BLOCK: 0, RESERVED: 1, SPOT: 2, ON_DEMAND: 3}


def launch_rank(capacity_type: str) -> int:
    """The order in which capacity types are launched: what is paid already first, then spot."""
    return _LAUNCH_ORDER.get(capacity_type, len(_LAUNCH_ORDER))


class Offering(msgspec.Struct, frozen=True):
    """A type in one zone under one capacity type."""

    zone: str
    capacity_type: str
    price: float
    """Per hour."""
    is_available: bool = True
    labels: Mapping[str, str] = {}
    """Further labels that only this offering has, for example of its reservation."""
    left: int | None = None
    """How many of a reservation are left; None where there is no such limit."""
    interruptions_per_hour: float = 0.0
    """How often the cloud takes a node back; zero where that is not known."""

    @property
    def decision_price(self) -> float:
        """What a decision compares: capacity that is paid already costs nothing more if it is used."""
        return 0.0 if self.capacity_type in PAID_ALREADY else self.price

    def risk_price(self, lost_hours: float) -> float:
        """What interruptions cost per hour, if each of them loses so many hours of the node."""
        return self.decision_price * self.interruptions_per_hour * lost_hours

    def label(self, key: str) -> str | None:
        if key == ZONE_LABEL:
            return self.zone
        if key == CAPACITY_TYPE_LABEL:
            return self.capacity_type
        return self.labels.get(key)


class InstanceType(msgspec.Struct, frozen=True):
    """A machine type. Amounts are in base units, cpu in thousandths of a core."""

    name: str
    capacity: Mapping[str, int]
    overhead: Mapping[str, int] = {}
    """What system and kubelet keep for themselves."""
    labels: Mapping[str, tuple[str, ...]] = {}
    """The values that a label may have on a node of this type; a label that only other types have is absent."""
    offerings: tuple[Offering, ...] = ()
    annotations: Mapping[str, str] = {}
    """Of its nodes, as far as they describe devices."""

    def allocatable(self) -> dict[str, int]:
        """What pods may use."""
        return {name: max(amount - self.overhead.get(name, 0), 0) for name, amount in self.capacity.items()}
