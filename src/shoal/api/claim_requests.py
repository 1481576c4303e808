"""Requests of a DRA claim for devices, and constraints that the devices of several requests must share.

A request is for exactly one kind of device, or for the first of a list of alternatives that can be had.
v1beta1 writes the exact kind of request without the word `exactly`; `DeviceRequest.exact` gives the
same value for both spellings.

Rejected: a type for each version. They differ in one level of nesting, and every reader would have to know
both.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from shoal.api.device_classes import (
    MOST_CONFIGS,
    DeviceConfig,
    DeviceSelector,
    check_length,
    check_selectors,
)
from shoal.api.device_names import dns_label_fault, full_name_fault, qualified_name_fault
from shoal.api.device_taints import MOST_TOLERATIONS, DeviceToleration
from shoal.api.names import object_name_fault
from shoal.api.wire import ApiStruct, Quantities
from shoal.units.errors import UserError, Where, excerpt

MOST_REQUESTS = 32
MOST_ALTERNATIVES = 8
MOST_CONSTRAINTS = 32


class CapacityAsk(ApiStruct, frozen=True):
    """A part of one device, by capacity; what is not named is taken as the device's policy says."""

    requests: Quantities = field(default_factory=dict)


class DeviceAsk(ApiStruct, frozen=True):
    """What exact requests and alternatives have in common."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: Literal["ExactCount", "All", ""] = "ExactCount"
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityAsk | None = None

    def wanted(self) -> int | None:
        """How many devices: one unless said otherwise, None for every device that matches."""
        return None if self.allocation_mode == "All" else self.count or 1

    def check(self, where: Where) -> None:
        _check_class(self.device_class_name, where.below("deviceClassName"))
        check_selectors(self.selectors, where.below("selectors"))
        if self.allocation_mode == "All" and self.count:
            raise UserError("must not be specified when allocationMode is All", where=where.below("count"))
        if self.count < 0:
            raise UserError(f"must be greater than zero, got {self.count}", where=where.below("count"))
        check_length(self.tolerations, MOST_TOLERATIONS, where.below("tolerations"))
        for index, toleration in enumerate(self.tolerations):
            toleration.check(where.below(f"tolerations[{index}]"))
        if self.capacity is not None:
            _check_capacity(self.capacity.requests, where.below("capacity.requests"))


class ExactRequest(DeviceAsk, frozen=True):
    admin_access: bool = False


class SubRequest(DeviceAsk, frozen=True, kw_only=True):
    """One alternative; allocations call it `request/alternative`."""

    name: str


class DeviceRequest(ExactRequest, frozen=True, kw_only=True):
    """v1beta1 has the fields of an exact request here and under `exactly` in later versions."""

    name: str
    exactly: ExactRequest | None = None
    first_available: tuple[SubRequest, ...] = ()

    def exact(self) -> ExactRequest | None:
        """The one kind of device asked for, or None where there are alternatives."""
        if self.exactly is not None or self.first_available:
            return self.exactly
        return self._inline()

    def names(self) -> tuple[str, ...]:
        """What constraints, configuration and allocations may call this request."""
        return (self.name, *(f"{self.name}/{one.name}" for one in self.first_available))

    def check(self, where: Where, *, is_inline: bool = False) -> None:
        _check_name(self.name, where.below("name"))
        alternatives = where.below("firstAvailable")
        check_length(self.first_available, MOST_ALTERNATIVES, alternatives)
        if is_inline:
            self._check_inline(where)
        elif (self.exactly is None) == (not self.first_available):
            fix = "put deviceClassName and the fields beside it under exactly" if self.device_class_name else ""
            raise UserError("exactly one of exactly and firstAvailable is required", where=where, fix=fix)
        elif self.exactly is not None:
            self.exactly.check(where.below("exactly"))
        names: set[str] = set()
        for index, one in enumerate(self.first_available):
            here = alternatives.below(f"[{index}]")
            _check_name(one.name, here.below("name"))
            if one.name in names:
                raise UserError(f"{excerpt(one.name)} is named twice", where=here.below("name"))
            names.add(one.name)
            one.check(here)

    def _check_inline(self, where: Where) -> None:
        if not self.first_available:
            self._inline().check(where)
        elif self._inline() != ExactRequest():
            raise UserError("exactly one of deviceClassName and firstAvailable is required", where=where)

    def _inline(self) -> ExactRequest:
        return ExactRequest(
            device_class_name=self.device_class_name,
            selectors=self.selectors,
            allocation_mode=self.allocation_mode,
            count=self.count,
            tolerations=self.tolerations,
            capacity=self.capacity,
            admin_access=self.admin_access,
        )


class DeviceConstraint(ApiStruct, frozen=True):
    """All devices of these requests, or of all requests where none is named, agree or differ in an attribute."""

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


class ClaimConfig(DeviceConfig, frozen=True):
    requests: tuple[str, ...] = ()


class DeviceClaim(ApiStruct, frozen=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[ClaimConfig, ...] = ()

    def names(self) -> frozenset[str]:
        return frozenset(name for request in self.requests for name in request.names())

    def check(self, where: Where, *, is_inline: bool = False) -> None:
        check_length(self.requests, MOST_REQUESTS, where.below("requests"))
        seen: set[str] = set()
        for index, request in enumerate(self.requests):
            here = where.below(f"requests[{index}]")
            request.check(here, is_inline=is_inline)
            if request.name in seen:
                raise UserError(f"{excerpt(request.name)} is named twice", where=here.below("name"))
            seen.add(request.name)
        names = self.names()
        check_length(self.constraints, MOST_CONSTRAINTS, where.below("constraints"))
        for index, constraint in enumerate(self.constraints):
            here = where.below(f"constraints[{index}]")
            _check_references(constraint.requests, names, here.below("requests"))
            _check_constraint(constraint, here)
        check_length(self.config, MOST_CONFIGS, where.below("config"))
        for index, config in enumerate(self.config):
            here = where.below(f"config[{index}]")
            _check_references(config.requests, names, here.below("requests"))
            config.check(here)


def _check_class(name: str, where: Where) -> None:
    if not name:
        raise UserError("is required", where=where)
    if fault := object_name_fault(name):
        raise UserError(f"{excerpt(name)} is not a device class: {fault}", where=where)


def _check_name(name: str, where: Where) -> None:
    if fault := dns_label_fault(name):
        raise UserError(f"{excerpt(name)} is not a request name: {fault}", where=where)


def _check_capacity(requests: Quantities, where: Where) -> None:
    for name, amount in requests.items():
        if fault := qualified_name_fault(name):
            raise UserError(f"{excerpt(name)} is not a capacity: {fault}", where=where)
        if amount.nano < 0:
            raise UserError(f'Invalid value: "{amount}": must be greater than or equal to 0', where=where.key(name))


def _check_references(requests: tuple[str, ...], names: frozenset[str], where: Where) -> None:
    for index, name in enumerate(requests):
        here = where.below(f"[{index}]")
        if name not in names:
            raise UserError(f"{excerpt(name)} is not one of the claim's requests", where=here)
        if name in requests[:index]:
            raise UserError(f"{excerpt(name)} is named twice", where=here)


def _check_constraint(constraint: DeviceConstraint, where: Where) -> None:
    matched, distinct = constraint.match_attribute, constraint.distinct_attribute
    if bool(matched) == bool(distinct):
        raise UserError("exactly one of matchAttribute and distinctAttribute is required", where=where)
    if fault := full_name_fault(matched or distinct):
        here = where.below("matchAttribute" if matched else "distinctAttribute")
        raise UserError(f"{excerpt(matched or distinct)} is not an attribute: {fault}", where=here)
