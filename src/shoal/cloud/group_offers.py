"""Chooses among groups of equal machines: which of them a pool may use, and which takes a launch. Reports what is wrong
with a group.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from shoal.api.taints import Taint
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements.labels import ZONE_LABEL
from shoal.cloud.launch_account import Launch
from shoal.cloud.port import InstanceRequest, NoCapacityError

_log = logging.getLogger("shoal.nodes")


class GroupOffer(msgspec.Struct, frozen=True):
    """What a group offers."""

    group: str
    """The identity of the group."""
    type: InstanceType
    """With the one offering of the group."""
    taints: tuple[Taint, ...] = ()

    @property
    def offering(self) -> tuple[str, str, str]:
        (one,) = self.type.offerings
        return self.type.name, one.zone, one.capacity_type


def usable(offers: Iterable[GroupOffer], taints: Collection[Taint]) -> tuple[list[GroupOffer], list[GroupOffer]]:
    """Those that nodes with these taints may come from, and those whose machines differ from an earlier group of the
    same type: a plan could not tell them apart.
    """
    tolerated = set(taints)
    first: dict[str, InstanceType] = {}
    fitting: list[GroupOffer] = []
    different: list[GroupOffer] = []
    for each in offers:
        if not tolerated.issuperset(each.taints):
            continue
        known = first.setdefault(each.type.name, each.type)
        (fitting if _machine(known) == _machine(each.type) else different).append(each)
    return fitting, different


class GroupReports:
    """Warnings about groups, each once until it changes."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def say(self, group: str, words: str) -> None:
        """Empty if nothing is wrong any more."""
        if self._last.get(group, "") != words:
            self._last[group] = words
            if words:
                _log.warning("node group %s: %s", group, words)

    def usable(self, offers: Iterable[GroupOffer], taints: Collection[Taint]) -> list[GroupOffer]:
        """Those that nodes with these taints may come from. Reports those that are left out."""
        fitting, different = usable(offers, taints)
        for each in different:
            self.say(each.group, f"its machines differ from others of type {each.type.name}: it is left out")
        return fitting


class GroupSize(msgspec.Struct, frozen=True):
    group: str
    """The identity of the group."""
    name: str
    """For messages."""
    now: int
    most: int


def offering_of(request: InstanceRequest) -> tuple[str, str, str]:
    return request.instance_type, request.zone, request.capacity_type


def launch_of(request: InstanceRequest, now_s: float) -> Launch:
    return Launch(request.count, now_s, offering_of(request), dict(request.tags))


def group_with_room(request: InstanceRequest, sizes: Sequence[GroupSize], kinds: str) -> str:
    """The first group that takes the launch as a whole. `sizes`: of the groups with its offering; `kinds`: what they
    are. Raises NoCapacityError.
    """
    words = "/".join(offering_of(request))
    if not sizes:
        raise NoCapacityError(f"no {kinds} offers {words}")
    for each in sizes:
        if each.now + request.count <= each.most:
            return each.group
    largest = ", ".join(f"{each.name} has {each.now} of at most {each.most}" for each in sizes)
    raise NoCapacityError(f"no room for {request.count} x {words}: {largest}")


def types_of(offers: Sequence[GroupOffer], pool: NodePool) -> tuple[InstanceType, ...]:
    """The types of usable groups in the zones of the pool, with all their offerings."""
    zones = pool.requirements.get(ZONE_LABEL)
    found: dict[str, InstanceType] = {}
    for each in offers:
        (offering,) = each.type.offerings
        if not zones.has(offering.zone):
            continue
        known = found.get(each.type.name)
        if known is None:
            found[each.type.name] = replace(each.type, labels=_labels(each.type))
        elif offering not in known.offerings:
            found[each.type.name] = replace(known, offerings=(*known.offerings, offering))
    return tuple(found.values())


def _labels(one: InstanceType) -> dict[str, tuple[str, ...]]:
    """Without the zone, which the offerings have."""
    return {key: values for key, values in one.labels.items() if key != ZONE_LABEL}


def _machine(one: InstanceType) -> InstanceType:
    return replace(one, offerings=(), labels=_labels(one))
