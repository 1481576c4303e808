"""DRA device classes, and the two things that classes and claims both carry: selectors and configuration.

A selector is an expression in CEL over one device. It is taken as text here: that it is there and not too
long is checked, its meaning is left to the evaluator. Configuration is for the driver alone and passed
on unread.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from shoal.api.device_names import driver_fault
from shoal.api.meta import ObjectMeta
from shoal.api.names import label_key_fault
from shoal.api.resources import is_extended
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

MOST_SELECTORS = 32
MOST_CONFIGS = 32
LONGEST_EXPRESSION_BYTES = 10 * 2**10


class CelSelector(ApiStruct, frozen=True):
    expression: str


class DeviceSelector(ApiStruct, frozen=True):
    cel: CelSelector

    def check(self, where: Where) -> None:
        expression, here = self.cel.expression, where.below("cel.expression")
        if not expression.strip():
            raise UserError("is required", where=here)
        if len(expression.encode()) > LONGEST_EXPRESSION_BYTES:
            raise UserError(f"must be no more than {LONGEST_EXPRESSION_BYTES} bytes", where=here)


class OpaqueConfig(ApiStruct, frozen=True):
    driver: str
    parameters: dict[str, Any]


class DeviceConfig(ApiStruct, frozen=True):
    opaque: OpaqueConfig

    def check(self, where: Where) -> None:
        if fault := driver_fault(self.opaque.driver):
            what = f"{excerpt(self.opaque.driver)} is not a driver name: {fault}"
            raise UserError(what, where=where.below("opaque.driver"))


class DeviceClassSpec(ApiStruct, frozen=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfig, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


def check_device_class(device_class: DeviceClass, where: Where) -> None:
    check_meta(device_class.metadata, where.below("metadata"))
    spec, where = device_class.spec, where.below("spec")
    check_selectors(spec.selectors, where.below("selectors"))
    check_length(spec.config, MOST_CONFIGS, where.below("config"))
    for index, config in enumerate(spec.config):
        config.check(where.below(f"config[{index}]"))
    name = spec.extended_resource_name
    if name and (label_key_fault(name) or not is_extended(name)):
        raise UserError(
            f"{excerpt(name)} is not the name of an extended resource",
            where=where.below("extendedResourceName"),
            fix="write a domain and a name, e.g. example.com/gpu",
        )


def check_selectors(selectors: tuple[DeviceSelector, ...], where: Where) -> None:
    check_length(selectors, MOST_SELECTORS, where)
    for index, selector in enumerate(selectors):
        selector.check(where.below(f"[{index}]"))


def check_length(items: tuple[object, ...], most: int, where: Where) -> None:
    if len(items) > most:
        raise UserError(f"must have at most {most} items, got {len(items)}", where=where)
