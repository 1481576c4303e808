"""Resource groups: what a cluster queue or a cohort may use of each resource in each flavor, and in which order flavors
are tried.

Cluster queues and cohorts write them alike and the same rules hold for both (`group_rules.py`), so both read them here.
Resources of one group take the same flavor, which is why every flavor of a group says something about every covered
resource, in the order in which the group names them, and why no resource may be in two groups.
"""

from __future__ import annotations

from msgspec import field

from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity

_ZERO = Quantity.of(0)
_ONE = Quantity.of(1)
_SMALLEST_WEIGHT = Quantity.parse("1n")


class ResourceQuota(ApiStruct, frozen=True):
    """`borrowing_limit` absent is no limit to borrowing, `lending_limit` absent is that all of it may be lent."""

    name: str
    nominal_quota: Quantity
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(ApiStruct, frozen=True):
    name: str
    resources: tuple[ResourceQuota, ...] = ()


class ResourceGroup(ApiStruct, frozen=True):
    covered_resources: tuple[str, ...] = ()
    flavors: tuple[FlavorQuotas, ...] = ()


class FairSharing(ApiStruct, frozen=True):
    """A weight of zero is an infinite share as soon as anything is borrowed."""

    weight: Quantity = field(default_factory=lambda: _ONE)

    def check(self, where: Where) -> None:
        weight, here = self.weight, where.below("weight")
        if weight < _ZERO:
            raise UserError(f"must be 0 or more, got {weight}", where=here)
        if _ZERO < weight <= _SMALLEST_WEIGHT:
            raise UserError(f"must be 0 or greater than {_SMALLEST_WEIGHT}, got {weight}", where=here)
