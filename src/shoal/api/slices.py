"""ResourceSlices of DRA drivers: pools of devices, and the nodes that can reach each.

A pool is complete when all slices of its newest generation are there; that takes several objects, so it is
not decided here. Neither is whether counters that a device consumes exist: another slice may contain them
of the pool.

v1beta1 puts all that describes a device under `basic`; `Device.traits` gives it for both spellings.
"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, field

from shoal.api.claims import check_one_term
from shoal.api.device_capacity import Capacity
from shoal.api.device_classes import check_length
from shoal.api.device_names import dns_label_fault, driver_fault, pool_fault, qualified_name_fault
from shoal.api.device_taints import DeviceTaint, check_device_taints
from shoal.api.meta import ObjectMeta
from shoal.api.node_affinity import NodeSelector
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.quantity import Quantity

MOST_DEVICES = 128
MOST_TRAITS = 32
MOST_COUNTER_SETS = 8
MOST_COUNTERS = 32

_LONGEST_TEXT = 64
_NUMBER = r"(0|[1-9][0-9]*)"
_PRERELEASE = rf"({_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)


class Attribute(ApiStruct, frozen=True):
    """One value of one kind. The kinds are named as in JSON; the fields cannot be, for those words are taken."""

    flag: bool | None = field(default=None, name="bool")
    number: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = field(default=None, name="int")
    text: str | None = field(default=None, name="string")
    version: str | None = None

    def value(self) -> bool | int | str | None:
        return next((one for one in self._kinds() if one is not None), None)

    def check(self, where: Where) -> None:
        if sum(one is not None for one in self._kinds()) != 1:
            raise UserError("exactly one of bool, int, string and version is required", where=where)
        for name, text in (("string", self.text), ("version", self.version)):
            if text is not None and len(text) > _LONGEST_TEXT:
                raise UserError(f"must be no more than {_LONGEST_TEXT} characters", where=where.below(name))
        if self.version is not None and not _VERSION.fullmatch(self.version):
            what = f"{excerpt(self.version)} is not a version as in semver.org"
            raise UserError(what, where=where.below("version"), fix="write e.g. 1.2.3")

    def _kinds(self) -> tuple[bool | int | str | None, ...]:
        return self.flag, self.number, self.text, self.version


class Counter(ApiStruct, frozen=True):
    value: Quantity


class CounterSet(ApiStruct, frozen=True):
    """Shared by devices that overlap, such as the partitions of one GPU: what one consumes, others lack."""

    name: str
    counters: dict[str, Counter] = field(default_factory=dict)


class CounterConsumption(ApiStruct, frozen=True):
    counter_set: str
    counters: dict[str, Counter] = field(default_factory=dict)


class Reach(ApiStruct, frozen=True):
    """Which nodes can use something: one, those a selector finds, or all."""

    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False

    def ways(self) -> int:
        return bool(self.node_name) + (self.node_selector is not None) + self.all_nodes

    def check_selector(self, where: Where) -> None:
        if self.node_selector is not None:
            check_one_term(self.node_selector, where.below("nodeSelector"))


class DeviceTraits(Reach, frozen=True):
    attributes: dict[str, Attribute] = field(default_factory=dict)
    capacity: dict[str, Capacity] = field(default_factory=dict)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    allow_multiple_allocations: bool = False
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()

    def check(self, where: Where) -> None:
        if len(self.attributes) + len(self.capacity) > MOST_TRAITS:
            raise UserError(f"may have at most {MOST_TRAITS} attributes and capacities together", where=where)
        for key, attribute in self.attributes.items():
            _check_key(key, where.below("attributes"))
            attribute.check(where.below("attributes").key(key))
        for key, capacity in self.capacity.items():
            _check_key(key, where.below("capacity"))
            capacity.check(where.below("capacity").key(key), is_shared=self.allow_multiple_allocations)
        check_device_taints(self.taints, where.below("taints"))
        sets: set[str] = set()
        for index, consumed in enumerate(self.consumes_counters):
            here = where.below(f"consumesCounters[{index}]")
            _check_counters(consumed.counter_set, consumed.counters, here, "counterSet")
            if consumed.counter_set in sets:
                raise UserError(f"{excerpt(consumed.counter_set)} is named twice", where=here.below("counterSet"))
            sets.add(consumed.counter_set)


class Device(DeviceTraits, frozen=True, kw_only=True):
    name: str
    basic: DeviceTraits | None = None

    def traits(self) -> DeviceTraits:
        return self if self.basic is None else self.basic


class ResourcePool(ApiStruct, frozen=True):
    name: str
    resource_slice_count: Annotated[int, Meta(ge=1)]
    generation: Annotated[int, Meta(ge=0)] = 0


class ResourceSliceSpec(Reach, frozen=True, kw_only=True):
    driver: str
    pool: ResourcePool
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(ApiStruct, frozen=True):
    spec: ResourceSliceSpec
    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    def reach(self, device: Device) -> Reach:
        """Where this device can be used: the slice says it for all of them, or leaves it to each."""
        return device.traits() if self.spec.per_device_node_selection else self.spec


def check_slice(piece: ResourceSlice, where: Where) -> None:
    _check_slice(piece, where, is_basic=False)


def check_slice_v1beta1(piece: ResourceSlice, where: Where) -> None:
    _check_slice(piece, where, is_basic=True)


def _check_slice(piece: ResourceSlice, where: Where, *, is_basic: bool) -> None:
    check_meta(piece.metadata, where.below("metadata"))
    spec, where = piece.spec, where.below("spec")
    if fault := driver_fault(spec.driver):
        raise UserError(f"{excerpt(spec.driver)} is not a driver name: {fault}", where=where.below("driver"))
    if fault := pool_fault(spec.pool.name):
        raise UserError(f"{excerpt(spec.pool.name)} is not a pool name: {fault}", where=where.below("pool.name"))
    if spec.ways() + spec.per_device_node_selection != 1:
        what = "exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection is required"
        raise UserError(what, where=where)
    spec.check_selector(where)
    _check_sets(spec.shared_counters, where.below("sharedCounters"))
    check_length(spec.devices, MOST_DEVICES, where.below("devices"))
    names: set[str] = set()
    for index, device in enumerate(spec.devices):
        here = where.below(f"devices[{index}]")
        if fault := dns_label_fault(device.name):
            raise UserError(f"{excerpt(device.name)} is not a device name: {fault}", where=here.below("name"))
        if device.name in names:
            raise UserError(f"{excerpt(device.name)} is named twice", where=here.below("name"))
        names.add(device.name)
        here = _traits_place(device, here, is_basic=is_basic)
        device.traits().check(here)
        _check_reach(device.traits(), here, is_own=spec.per_device_node_selection)


def _traits_place(device: Device, where: Where, *, is_basic: bool) -> Where:
    """Where this version keeps what describes a device."""
    if is_basic and device.basic is None:
        raise UserError("is required", where=where.below("basic"))
    if not is_basic and device.basic is not None:
        fix = "put its fields beside the name"
        raise UserError("is only for resource.k8s.io/v1beta1", where=where.below("basic"), fix=fix)
    return where.below("basic") if is_basic else where


def _check_reach(traits: DeviceTraits, where: Where, *, is_own: bool) -> None:
    if is_own and traits.ways() != 1:
        what = "exactly one of nodeName, nodeSelector and allNodes is required with perDeviceNodeSelection"
        raise UserError(what, where=where)
    if not is_own and traits.ways():
        what = "nodeName, nodeSelector and allNodes of a device need perDeviceNodeSelection: true"
        raise UserError(what, where=where)
    traits.check_selector(where)


def _check_key(key: str, where: Where) -> None:
    if fault := qualified_name_fault(key):
        raise UserError(f"{excerpt(key)} is not an attribute or capacity: {fault}", where=where)


def _check_sets(sets: tuple[CounterSet, ...], where: Where) -> None:
    check_length(sets, MOST_COUNTER_SETS, where)
    names: set[str] = set()
    for index, one in enumerate(sets):
        here = where.below(f"[{index}]")
        _check_counters(one.name, one.counters, here, "name")
        if one.name in names:
            raise UserError(f"{excerpt(one.name)} is named twice", where=here.below("name"))
        names.add(one.name)


def _check_counters(name: str, counters: dict[str, Counter], where: Where, field_name: str) -> None:
    if fault := dns_label_fault(name):
        raise UserError(f"{excerpt(name)} is not a counter set: {fault}", where=where.below(field_name))
    where = where.below("counters")
    if not counters:
        raise UserError("at least one counter is required", where=where)
    if len(counters) > MOST_COUNTERS:
        raise UserError(f"must have at most {MOST_COUNTERS} items, got {len(counters)}", where=where)
    for key, counter in counters.items():
        if fault := dns_label_fault(key):
            raise UserError(f"{excerpt(key)} is not a counter: {fault}", where=where)
        if counter.value.nano < 0:
            raise UserError(f"must be 0 or more, got {counter.value}", where=where.key(key).below("value"))
