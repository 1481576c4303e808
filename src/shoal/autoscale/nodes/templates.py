"""Represents what a pool can provision: the instance types that it may use, their offerings, and what DaemonSets take.

Labels of planned nodes are judged by masks over the offerings, one for each label and set of admitted values, which are
computed once: a pool of 130 types in three zones has 780 offerings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.api.taints import Taint, Toleration, untolerated
from shoal.api.workloads import DaemonSet
from shoal.autoscale.nodes.catalog import Catalog, Flags, Rows, node_of_type
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.nodes.planned_devices import row_name
from shoal.autoscale.nodes.pod_variants import PodVariant
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.nodes.relaxation import relaxed
from shoal.autoscale.nodes.topology_groups import ALL_EFFECTS
from shoal.autoscale.nodes.volumes import ANYWHERE
from shoal.autoscale.requirements import WELL_KNOWN, AdmittedValues, RequirementSet
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, ZONE_LABEL
from shoal.autoscale.requirements.min_values import min_values_of
from shoal.engine.asks import HostPort
from shoal.engine.from_api import daemon_set_ask

_PODS = "pods"


class DaemonPods:
    """The pods that a DaemonSet would bring to new nodes."""

    __slots__ = ("amounts", "host_ports", "tolerations", "variants")

    def __init__(self, daemon_set: DaemonSet) -> None:
        ask = daemon_set_ask(daemon_set)
        self.amounts = {**dict(ask.requests), _PODS: 1}
        self.host_ports = ask.host_ports
        self.tolerations = daemon_set.tolerations()
        spec = daemon_set.spec.template.spec
        self.variants: list[RequirementSet] = []
        # Only its alternatives matter: what it prefers does not keep it away.
        while spec is not None:
            self.variants.append(PodVariant(spec, ask, ANYWHERE).choices[0].strict)
            weaker = relaxed(spec, has_soft_taints=False)
            spec = weaker  # type: ignore[assignment]

    def may_run(self, pool: NodePool, requirements: RequirementSet, undefined: Collection[str]) -> bool:
        if untolerated(pool.taints, self.tolerations) is not None:
            return False
        return any(requirements.is_compatible(wanted, undefined) for wanted in self.variants)


class PoolTemplate:
    """A pool with the types and offerings that it may use."""

    def __init__(
        self,
        catalog: Catalog,
        pool: NodePool,
        types: Sequence[InstanceType],
        type_labels: Collection[str],
        daemon_sets: Iterable[DaemonPods],
    ) -> None:
        self.pool = pool
        self.name = pool.name
        self.catalog = catalog
        self.requirements = pool.node_requirements()
        self.undefined: frozenset[str] = frozenset((*WELL_KNOWN, *type_labels))
        self._type_labels = frozenset(type_labels)
        self.types: list[InstanceType] = list(types)
        self.offerings: list[Offering] = [each for one in self.types for each in one.offerings]
        self.type_of: NDArray[np.int64] = np.array(
            [number for number, one in enumerate(self.types) for _ in one.offerings], np.int64
        )
        self.prices: NDArray[np.float64] = np.array([each.decision_price for each in self.offerings], np.float64)
        self.rates: NDArray[np.float64] = np.array([each.interruptions_per_hour for each in self.offerings], np.float64)
        self.has_interruptions = bool(self.rates.any())
        self._masks: dict[tuple[str, AdmittedValues], Flags] = {}
        self._tolerated: dict[tuple[Toleration, ...], Taint | None] = {}
        self.host_ports: tuple[HostPort, ...] = ()
        here = [each for each in daemon_sets if each.may_run(pool, self.requirements, self.undefined)]
        self.host_ports = tuple(port for each in here for port in each.host_ports)
        nodes, has_room = [], []
        for one in self.types:
            reserved: dict[str, int] = {}
            for each in here:
                if any(self._may_be(one, wanted) for wanted in each.variants):
                    for name, amount in each.amounts.items():
                        reserved[name] = reserved.get(name, 0) + amount
            nodes.append(node_of_type(row_name(pool.name, one.name), pool, one, reserved))
            allocatable = one.allocatable()
            has_room.append(all(amount <= allocatable.get(name, 0) for name, amount in reserved.items() if amount))
        self.rows: Rows = catalog.add(nodes)
        available = np.array([each.is_available and each.left != 0 for each in self.offerings], np.bool_)
        # A type without room for the pods of DaemonSets has none for others either.
        room = np.array(has_room, np.bool_)[self.type_of] if has_room else available
        self.usable: Flags = available & room & self.mask(self.requirements)
        self.least = self.requirements.min_values()

    def expected_prices(self, lost_hours: float) -> NDArray[np.float64]:
        """Of the offerings, with the price of interruptions that lose so many hours of a node."""
        if not lost_hours or not self.has_interruptions:
            return self.prices
        return self.prices * (1 + self.rates * lost_hours)

    def _may_be(self, one: InstanceType, wanted: RequirementSet) -> bool:
        for key, admitted in wanted.items():
            if key not in self._type_labels:
                continue
            values = one.labels.get(key)
            if not (admitted.is_met_by_absence() if values is None else any(map(admitted.has, values))):
                return False
        return True

    def mask(self, requirements: RequirementSet, keys: Iterable[str] | None = None) -> Flags:
        """The offerings that the requirements admit (of some labels, if given)."""
        allowed = np.ones(len(self.offerings), np.bool_)
        for key in requirements if keys is None else keys:
            allowed &= self._mask(key, requirements.get(key))
        return allowed

    def _mask(self, key: str, admitted: AdmittedValues) -> Flags:
        known = self._masks.get((key, admitted))
        if known is not None:
            return known
        if key in (ZONE_LABEL, CAPACITY_TYPE_LABEL) or any(key in each.labels for each in self.offerings):
            found = np.fromiter(
                (value is not None and admitted.has(value) for value in (o.label(key) for o in self.offerings)),
                np.bool_,
                len(self.offerings),
            )
        elif key in self._type_labels:
            by_type = [self._admits(one.labels.get(key), admitted) for one in self.types]
            found = np.array(by_type, np.bool_)[self.type_of] if by_type else np.zeros(0, np.bool_)
        else:
            found = np.ones(len(self.offerings), np.bool_)
        self._masks[key, admitted] = found
        return found

    def _admits(self, values: tuple[str, ...] | None, admitted: AdmittedValues) -> bool:
        return admitted.is_met_by_absence() if values is None else any(map(admitted.has, values))

    def untolerated(self, tolerations: tuple[Toleration, ...]) -> Taint | None:
        """The first taint of the pool that is not tolerated; a soft one counts until it is given up."""
        if tolerations not in self._tolerated:
            self._tolerated[tolerations] = untolerated(self.pool.taints, tolerations, ALL_EFFECTS)
        return self._tolerated[tolerations]

    def types_of(self, offers: Flags) -> Flags:
        """The types that have one of these offerings."""
        found = np.zeros(len(self.types), np.bool_)
        found[self.type_of[offers]] = True
        return found

    def has_enough_values(self, types: Flags, least: Mapping[str, int]) -> bool:
        """Whether these types have as many different values of each label as asked for."""
        if not least:
            return True
        chosen = (self._values(number, least) for number in np.flatnonzero(types).tolist())
        return min_values_of(chosen, least).is_satisfied

    def _values(self, number: int, keys: Iterable[str]) -> dict[str, Collection[str]]:
        one = self.types[number]
        found: dict[str, Collection[str]] = {}
        for key in keys:
            if key in (ZONE_LABEL, CAPACITY_TYPE_LABEL):
                labels = (each.label(key) for each in one.offerings if each.is_available)
                found[key] = {value for value in labels if value is not None}
            else:
                found[key] = one.labels.get(key, ())
        return found

    def usable_types(self) -> list[str]:
        """The types that the pool may use, the cheapest first."""
        offers = np.flatnonzero(self.usable).tolist()
        ordered = sorted(offers, key=lambda index: float(self.prices[index]))
        return list(dict.fromkeys(self.types[self.type_of[index]].name for index in ordered))

    def provided(self) -> dict[str, set[str]]:
        """The values of each label that nodes of the pool can have."""
        found: dict[str, set[str]] = {}
        for key, admitted in self.requirements.items():
            if not admitted.is_open and key not in self._type_labels and key not in (ZONE_LABEL, CAPACITY_TYPE_LABEL):
                found.setdefault(key, set()).update(admitted.values)
        for index in np.flatnonzero(self.usable):
            offering = self.offerings[index]
            labels = {ZONE_LABEL: offering.zone, CAPACITY_TYPE_LABEL: offering.capacity_type, **offering.labels}
            for key, value in labels.items():
                found.setdefault(key, set()).add(value)
        for number in np.flatnonzero(self.types_of(self.usable)):
            for key, values in self.types[number].labels.items():
                admitted = self.requirements.get(key)
                found.setdefault(key, set()).update(value for value in values if admitted.has(value))
        return found
