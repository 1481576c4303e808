"""Limit ranges: what containers of a namespace get where they ask for nothing, and how much they may ask for."""

from __future__ import annotations

from msgspec import field, structs

from shoal.api.meta import ObjectMeta
from shoal.api.resource_rules import check_amounts
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct, Quantities
from shoal.units.errors import Where

CONTAINER = "Container"
POD = "Pod"


class LimitRangeItem(ApiStruct, frozen=True):
    """Bounds for one kind of thing; storage claims have bounds too, which no scheduler reads."""

    type: str
    max: Quantities = field(default_factory=dict)
    min: Quantities = field(default_factory=dict)
    default: Quantities = field(default_factory=dict)
    """Limits of containers that have none."""
    default_request: Quantities = field(default_factory=dict)
    max_limit_request_ratio: Quantities = field(default_factory=dict)

    def completed(self) -> LimitRangeItem:
        """With the defaults that the API server sets when the object is created: of containers, bounds are defaults."""
        if self.type != CONTAINER:
            return self
        default = {**self.max, **self.default}
        return structs.replace(self, default=default, default_request={**self.min, **default, **self.default_request})


class LimitRangeSpec(ApiStruct, frozen=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LimitRangeSpec = field(default_factory=LimitRangeSpec)


def check_limit_range(limits: LimitRange, where: Where) -> None:
    check_meta(limits.metadata, where.below("metadata"))
    for index, item in enumerate(limits.spec.limits):
        here = where.below(f"spec.limits[{index}]")
        for name, amounts in (
            ("max", item.max),
            ("min", item.min),
            ("default", item.default),
            ("defaultRequest", item.default_request),
            ("maxLimitRequestRatio", item.max_limit_request_ratio),
        ):
            check_amounts(amounts, here.below(name))
