"""Runtime classes, read for one thing: what a pod of the class costs beyond its containers."""

from __future__ import annotations

from msgspec import field

from shoal.api.meta import ObjectMeta
from shoal.api.resource_rules import check_amounts
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct, Quantities
from shoal.units.errors import Where


class Overhead(ApiStruct, frozen=True):
    pod_fixed: Quantities = field(default_factory=dict)


class RuntimeClass(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    overhead: Overhead = field(default_factory=Overhead)


def check_runtime_class(runtime: RuntimeClass, where: Where) -> None:
    check_meta(runtime.metadata, where.below("metadata"))
    check_amounts(runtime.overhead.pod_fixed, where.below("overhead.podFixed"))
