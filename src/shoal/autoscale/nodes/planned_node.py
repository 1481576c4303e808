"""Represents a node that the plan provisions: its pods, and the types, zones and capacity types that it may still have.

Every pod narrows what the node may be. The type is chosen at the end, so a node can still take any pod that some of
its possible types can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.autoscale.nodes.catalog import Flags
from shoal.autoscale.nodes.instance_types import launch_rank
from shoal.autoscale.nodes.interruption_risk import lost_hours
from shoal.autoscale.nodes.pod_variants import PlannedPod, PodVariant, VariantChoice
from shoal.autoscale.nodes.templates import PoolTemplate
from shoal.autoscale.nodes.topology_domains import TopologyDomains
from shoal.autoscale.requirements import RequirementSet, only
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL
from shoal.engine.asks import HostPort
from shoal.engine.charges import Charge

VariantKey = tuple[int, int, str]
"""The number of a shape, the number of its variant, and what its gang requires beside."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a node, or the next node of a pool, does not take a pod."""

    reason: str
    is_final: bool = True
    """Whether the same pod would be refused again: rules about other pods may allow it later."""
    is_about_types: bool = False
    """Whether other instance types could serve the pod, so that limits may be the cause."""


class NarrowedNode(msgspec.Struct, frozen=True):
    """A planned node as it would be with one more pod."""

    requirements: RequirementSet
    offers: Flags
    types: Flags
    used: NDArray[np.int64]
    lost_hours: float = 0.0


class PlannedNode:
    """A node that does not exist yet."""

    __slots__ = (
        "charges",
        "host_ports",
        "index",
        "lost_hours",
        "name",
        "offers",
        "placed",
        "pods",
        "refused",
        "requirements",
        "types",
        "used",
    )

    def __init__(self, name: str, index: int, requirements: RequirementSet, template: PoolTemplate) -> None:
        self.name = name
        self.index = index
        self.requirements = requirements
        self.offers: Flags = template.usable
        self.types: Flags = template.types_of(template.usable)
        self.used: NDArray[np.int64] | None = None
        self.lost_hours = 0.0
        """Of the node, by one interruption."""
        self.pods: list[PlannedPod] = []
        self.placed: list[tuple[PlannedPod, PodVariant, VariantChoice]] = []
        self.charges: list[Charge] = []
        self.host_ports: tuple[HostPort, ...] = template.host_ports
        self.refused: set[int] = set()
        """Numbers of the shapes and variants that it cannot take any more."""

    def take(
        self, pod: PlannedPod, variant: PodVariant, choice: VariantChoice, found: NarrowedNode, charge: Charge
    ) -> Callable[[], None]:
        """Add the pod; returns what undoes that."""
        before = (self.requirements, self.offers, self.types, self.used, self.host_ports, set(self.refused))
        hours = self.lost_hours
        self.requirements, self.offers, self.types, self.used, self.lost_hours = (
            found.requirements,
            found.offers,
            found.types,
            found.used,
            found.lost_hours,
        )
        self.host_ports = (*self.host_ports, *variant.host_ports)
        self.pods.append(pod)
        self.placed.append((pod, variant, choice))
        self.charges.append(charge)

        def undo() -> None:
            self.pods.pop()
            self.placed.pop()
            self.charges.pop()
            self.requirements, self.offers, self.types, self.used, self.host_ports, self.refused = before
            self.lost_hours = hours

        return undo


def narrowed(
    node: PlannedNode,
    template: PoolTemplate,
    pod: PlannedPod,
    variant: PodVariant,
    choice: VariantChoice,
    domains: TopologyDomains,
    *,
    keeps_min_values: bool,
) -> NarrowedNode | Refusal:
    """The node with one more pod, or why it does not take it."""
    taint = template.untolerated(variant.tolerations)
    if taint is not None:
        return Refusal(f"the pod does not tolerate taint {taint}")
    if any(port.conflicts(taken) for port in variant.host_ports for taken in node.host_ports):
        return Refusal("a host port of the pod is taken")
    key = node.requirements.incompatible_key(choice.requirements, template.undefined)
    if key is not None:
        wanted = choice.requirements.get(key)
        if key not in node.requirements:
            return Refusal(f"the pool does not define label {key}, which the pod wants {wanted}")
        return Refusal(f"label {key} is {node.requirements.get(key)}, the pod wants {wanted}")
    requirements = node.requirements.with_all(choice.requirements)
    changed: set[str] = set(choice.requirements)
    is_final = True
    if domains.concerns(pod.shape, variant):
        is_final = False
        added = domains.narrowed(pod.shape, variant, choice.strict, requirements)
        if added is None or not requirements.is_compatible(added, template.undefined):
            return Refusal("rules about other pods allow no topology domain", is_final=False)
        requirements = requirements.with_all(added)
        changed |= set(added)
    offers = node.offers & template.mask(requirements, changed) if changed else node.offers
    if not offers.any():
        return Refusal("no offering satisfies the requirements", is_final, is_about_types=True)
    found = _fitting(node, template, variant, requirements, offers, is_final=is_final, keeps=keeps_min_values)
    if template.has_interruptions and isinstance(found, NarrowedNode):
        if pod.loss.gang and pod.loss.hours:
            hours = lost_hours([*(each.loss for each in node.pods), pod.loss])
        else:
            hours = max(node.lost_hours, pod.loss.hours)
        return msgspec.structs.replace(found, lost_hours=hours)
    return found


def _fitting(
    node: PlannedNode,
    template: PoolTemplate,
    variant: PodVariant,
    requirements: RequirementSet,
    offers: Flags,
    *,
    is_final: bool,
    keeps: bool,
) -> NarrowedNode | Refusal:
    catalog = template.catalog
    charge = catalog.charge(variant.ask)
    types = template.types_of(offers) & node.types
    types &= catalog.suitable(variant.ask, template.rows)
    if not types.any():
        return Refusal("no instance type has the devices", is_final, is_about_types=True)
    types &= catalog.enough(template.rows, node.used, charge)
    if not types.any():
        return Refusal("no instance type has enough resources", is_final, is_about_types=True)
    if charge.ask.devices is not None or charge.ask.claims:
        trial = catalog.needs_trial(template.rows, charge)
        for other in dict.fromkeys(node.charges):
            trial = trial | catalog.needs_trial(template.rows, other)
    else:
        trial = np.zeros(len(types), np.bool_)
    tried = types.copy()
    if trial.any():
        numbers = np.flatnonzero(types & trial)
        types[numbers] = catalog.holding(template.rows[numbers], [*node.charges, charge])
    offers = offers & types[template.type_of]
    types = template.types_of(offers)
    if not types.any():
        lack = "" if node.pods else catalog.lack(variant.ask, template.rows[tried])
        what = f"no instance type has the devices: {lack}" if lack else "no instance type has enough devices"
        return Refusal(what, is_final, is_about_types=True)
    if keeps and not template.has_enough_values(types, requirements.min_values()):
        return Refusal("too few instance types are left for minValues", is_final, is_about_types=True)
    taken = catalog.taken(charge)
    used = taken if node.used is None else _sum(node.used, taken)
    return NarrowedNode(requirements, offers, types, used)


def _sum(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(one) < len(other):
        one, other = other, one
    total = one.copy()
    total[: len(other)] += other
    return total


OfferingKey = tuple[str, str, str]
"""Instance type, zone and capacity type."""


def offering_key(template: PoolTemplate, index: int) -> OfferingKey:
    offering = template.offerings[index]
    return template.types[template.type_of[index]].name, offering.zone, offering.capacity_type


def cheapest(
    template: PoolTemplate, offers: Flags, left: Mapping[OfferingKey, int] | None = None, *, hours: float = 0.0
) -> int | None:
    """The offering that is launched: what is paid already first, then the lowest price. `left`: what the nodes so far
    leave of reservations. `hours`: what an interruption of the node loses.
    """
    best, best_order = None, None
    prices = template.expected_prices(hours)
    for index in np.flatnonzero(offers).tolist():
        offering = template.offerings[index]
        is_scarce = left is not None and offering.left is not None
        if is_scarce and (left or {}).get(offering_key(template, index), offering.left or 0) <= 0:
            continue
        is_paid = launch_rank(offering.capacity_type) < launch_rank("spot")
        order = (
            launch_rank(offering.capacity_type) if is_paid else 9,
            float(prices[index]),
            launch_rank(offering.capacity_type),
            template.types[template.type_of[index]].name,
            offering.zone,
        )
        if best_order is None or order < best_order:
            best, best_order = int(index), order
    return best


def bound_to(requirements: RequirementSet, capacity_type: str) -> RequirementSet:
    """The requirements, with one capacity type."""
    return requirements.with_values(CAPACITY_TYPE_LABEL, only(capacity_type))
