"""Holds the nodes that pools could provision as rows of the engine's facts, one for each pool and instance type.

A row is a node as it will be once its device plugin is up: allocatable amounts, devices, taints, what DaemonSets take.
Whether pods fit on it is asked of the engine: by its record for amounts, by a trial placement where devices are shared
or cut. Labels that are still open on a planned node (zone, capacity type, any label with several values) are no labels
of a row; they are judged by requirements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.api.meta import ObjectMeta
from shoal.api.node import Node, NodeSpec, NodeStatus
from shoal.autoscale.nodes.advertised_devices import advertised, labels_of_machine
from shoal.autoscale.nodes.claim_trials import ClaimTrials
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.devices.names import OWN_DRA
from shoal.engine.asks import Ask
from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant, MigTiles, WholeGpus
from shoal.engine.events import Event
from shoal.engine.facts import GPU_WHOLE, fits
from shoal.engine.from_api import node_facts_of
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.pod_identity import NO_IDENTITY
from shoal.engine.pods import PodAllocation, PodState
from shoal.engine.profile import Profile
from shoal.engine.suitability import suits
from shoal.engine.unmet_claims import devices_near, lack
from shoal.units.numbers import whole_of
from shoal.units.quantity import Quantity

_NANO: Final = 1_000_000_000
_FIRST: Final = Profile("First")

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]


def quantities_of(amounts: Mapping[str, int]) -> dict[str, Quantity]:
    """Amounts in base units, cpu in thousandths of a core, as the API writes them."""
    return {name: Quantity(amount * (_NANO // 1000 if name == "cpu" else _NANO)) for name, amount in amounts.items()}


def node_of_type(name: str, pool: NodePool, instance: InstanceType, reserved: Mapping[str, int] | None = None) -> Node:
    """A node of the pool as it will be, as far as that is known before it is launched."""
    labels = labels_of_machine(instance, pool.labels)
    there = advertised(instance.allocatable(), labels)
    allocatable = {key: amount - (reserved or {}).get(key, 0) for key, amount in there.items()}
    return Node(
        metadata=ObjectMeta(name=name, labels=labels, annotations=dict(instance.annotations)),
        spec=NodeSpec(taints=pool.taints),
        status=NodeStatus(
            capacity=quantities_of(advertised(instance.capacity, labels)),
            allocatable=quantities_of({key: max(amount, 0) for key, amount in allocatable.items()}),
        ),
    )


class Catalog:
    """Rows for nodes that do not exist yet, and the engine's answers about them."""

    def __init__(self, devices: Iterable[Event] = ()) -> None:
        """`devices`: of the rows, for resource claims."""
        self.cluster = Cluster()
        intake = Intake(self.cluster)
        for event in devices:
            intake.apply(event)
        self._placement = Placement(self.cluster, _FIRST)
        self._suits: dict[tuple[Ask, int], Flags] = {}
        self._taken: dict[Charge, NDArray[np.int64]] = {}
        self._claims = ClaimTrials(self.cluster)

    def add(self, nodes: Iterable[Node]) -> Rows:
        """Rows for these nodes."""
        return np.array([self.cluster.put_node(node_facts_of(node)) for node in nodes], np.int64)

    def charge(self, ask: Ask) -> Charge:
        return self.cluster.charge(ask)

    def suitable(self, ask: Ask, rows: Rows) -> Flags:
        """The rows whose taints and devices suit the request."""
        known = (ask, int(rows[0]) if len(rows) else -1)
        found = self._suits.get(known)
        if found is None:
            found = self._suits[known] = suits(self.cluster, ask, rows)
        return found

    def taken(self, charge: Charge) -> NDArray[np.int64]:
        """What a pod takes of the record, whole devices included."""
        found = self._taken.get(charge)
        if found is None or len(found) != self.cluster.width:
            found = np.zeros(self.cluster.width, np.int64)
            found[: len(charge.taken)] = charge.taken
            if isinstance(charge.ask.devices, WholeGpus):
                found[GPU_WHOLE] += charge.ask.devices.count
            self._taken[charge] = found
        return found

    def enough(self, rows: Rows, used: NDArray[np.int64] | None, charge: Charge) -> Flags:
        """The rows that have the amounts that the request needs, beside what is used."""
        free = self.cluster.free.take(rows, 0)
        if used is not None:
            free[:, : len(used)] -= used
        return fits(free, charge.need)

    def needs_trial(self, rows: Rows, charge: Charge) -> Flags:
        """The rows on which only a trial placement tells whether this pod fits beside others."""
        ask = charge.ask
        devices = ask.devices
        if devices is None and not ask.claims:
            return np.zeros(len(rows), np.bool_)
        is_plain = not ask.claims and isinstance(devices, WholeGpus) and not (devices.island or devices.numa)
        if not is_plain:
            return np.ones(len(rows), np.bool_)
        odd = self.cluster.devices.odd
        if not odd:
            return np.zeros(len(rows), np.bool_)
        return np.fromiter((row in odd for row in rows.tolist()), np.bool_, len(rows))

    def holding(self, rows: Rows, charges: Sequence[Charge]) -> Flags:
        """The rows on which the engine places all of these, one after the other."""
        has_claims = any(charge.ask.claims for charge in charges)
        if has_claims and all(charge.ask.devices is None for charge in charges):
            return self._claims.holding(rows, charges)
        return np.fromiter((self.can_hold(row, charges) for row in rows.tolist()), np.bool_, len(rows))

    def can_hold(self, row: int, charges: Sequence[Charge]) -> bool:
        """Whether the engine places all of these on the row: the largest MIG instances first."""
        within = np.array([row], np.int64)
        held: list[str] = []
        for number, charge in enumerate(sorted(charges, key=lambda charge: -mig_slices(charge.ask))):
            chosen = self._placement.choose(charge, 0, within=within)
            if chosen is None:
                break
            held.append(f"trial/{number}")
            self.cluster.hold(held[-1], allocation(chosen, charge, number))
        for key in reversed(held):
            self.cluster.release(key)
        return len(held) == len(charges)

    def lack(self, ask: Ask, rows: Rows) -> str:
        """What the row that has most of the devices for the pod's claims lacks of them; empty without claims."""
        dra = self.cluster.dra
        if not ask.claims or not len(rows):
            return ""
        if dra.unallocated(ask.claims) and not any(dra.pools.on(row) for row in rows.tolist()):
            return f"its nodes publish none for resource claims (label {OWN_DRA} of the pool)"
        if blocked := dra.blocked(ask.claims):
            return blocked
        if not dra.reached(ask.claims, rows).any():
            return "its claim is allocated to devices of another node"
        _, _, total = devices_near(dra, ask.claims, rows)
        return lack(dra, ask.claims, int(rows[int(total.argmax())]))


def mig_slices(ask: Ask) -> int:
    """The slices of the largest MIG instance that a pod requests. A large instance has the fewest places on a GPU, so
    small ones that are placed before it can leave none.
    """
    if not isinstance(ask.devices, MigTiles):
        return 0
    return max(whole_of(profile.partition("g")[0]) or 0 for profile, _ in ask.devices.tiles)


def allocation(chosen: tuple[int, DeviceGrant | None], charge: Charge, turn: int) -> PodAllocation:
    """A pod that the plan puts on a row."""
    row, grant = chosen
    return PodAllocation(row, charge, grant, 0, turn, PodState.ASSUMED, False, "", NO_IDENTITY)
