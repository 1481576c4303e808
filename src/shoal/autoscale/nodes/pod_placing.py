"""Places the pods of one attempt at a plan, one by one: on a node that exists, on a planned one, or on a new one.

Each step can be taken back, so that a gang that is not placed as a whole leaves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from shoal.api.topology import HOSTNAME_LABEL
from shoal.autoscale.nodes.catalog import Catalog
from shoal.autoscale.nodes.existing_nodes import ExistingNodes
from shoal.autoscale.nodes.gang_domains import DomainChoices
from shoal.autoscale.nodes.plan import PodRefusal
from shoal.autoscale.nodes.planned_node import NarrowedNode, PlannedNode, Refusal, VariantKey, cheapest, narrowed
from shoal.autoscale.nodes.pod_variants import PlannedPod, PodVariant, VariantChoice
from shoal.autoscale.nodes.pool_limits import PoolLimits
from shoal.autoscale.nodes.shared_claims import SharedClaimPlaces
from shoal.autoscale.nodes.templates import PoolTemplate
from shoal.autoscale.nodes.topology_domains import TopologyDomains
from shoal.autoscale.requirements import RequirementSet, only

_NO_POOL: Final = "there is no pool that pods may use"


class PlacingFacts(NamedTuple):
    """What all attempts work with."""

    catalog: Catalog
    templates: list[PoolTemplate]
    existing: ExistingNodes
    limits: Mapping[str, PoolLimits]
    """By pool."""
    claims: SharedClaimPlaces
    domain_choices: DomainChoices
    keeps_min_values: bool


class PodPlacing:
    """The nodes of one attempt at a plan, and what was placed."""

    def __init__(self, facts: PlacingFacts, domains: TopologyDomains, most_price: float | None = None) -> None:
        """`most_price`: beyond which new nodes do not grow if there is another way."""
        self._facts = facts
        self._domains = domains
        self._most_price = most_price
        self.nodes: list[PlannedNode] = []
        self.of_pool: dict[str, PoolTemplate] = {}
        self.placed: dict[str, str] = {}
        """On nodes that exist."""
        self.refusals: dict[str, PodRefusal] = {}
        self._undo: list[Callable[[], None]] = []
        self._made = 0
        self._numbers: dict[VariantKey, int] = {}

    @property
    def mark(self) -> int:
        """What `roll_back` returns to."""
        return len(self._undo)

    def price(self, node: PlannedNode) -> float:
        template = self.of_pool[node.name]
        index = cheapest(template, node.offers, hours=node.lost_hours)
        return 0.0 if index is None else float(template.expected_prices(node.lost_hours)[index])

    def roll_back(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()

    def add(self, pod: PlannedPod, within: RequirementSet) -> bool:
        """Place the pod, with those that share a claim with it."""
        if self._facts.claims.is_placed(pod):
            return True
        peers = self._facts.claims.peers(pod)
        for host in self._hosts(pod) if peers else ():
            mark = len(self._undo)
            there = within.with_values(HOSTNAME_LABEL, only(host))
            if all(self._add_alone(each, there) for each in peers):
                return True
            self.roll_back(mark)
        return self._add_alone(pod, within)

    def _hosts(self, pod: PlannedPod) -> list[str]:
        """The host names of the nodes that exist, that are planned, and that would be planned next."""
        rows = self._facts.existing.feasible(pod.shape.first.choices[0].ask, pod.shape.first.tolerations)
        planned = (node.name for node in self.nodes)
        return [*map(self._facts.existing.host_of, rows), *planned, f"planned-{self._made}"]

    def _add_alone(self, pod: PlannedPod, within: RequirementSet) -> bool:
        number = 0
        refusals: dict[str, str] = {}
        while (variant := pod.shape.variant(number)) is not None:
            key = (pod.shape.number, number, repr(within) if len(within) else "")
            for place, each in enumerate(variant.choices):
                choice = self._facts.domain_choices.of(each, within, (*key, place)) if len(within) else each
                if self._to_existing(pod, variant, choice) or self._to_planned(pod, key, variant, choice):
                    return True
                refusals = {}
                if self._to_new(pod, variant, choice, refusals):
                    return True
            number += 1
        self.refusals[pod.key] = PodRefusal(pod.key, refusals, "" if self._facts.templates else _NO_POOL)
        return False

    def _to_existing(self, pod: PlannedPod, variant: PodVariant, choice: VariantChoice) -> bool:
        existing, shape = self._facts.existing, pod.shape
        if self._facts.claims.refusal(pod, None):
            return False
        if not self._domains.concerns(shape, variant) and not existing.has_soft_taints:
            row = existing.first(choice.ask)
            if row is None:
                return False
            self._record_existing(pod, row, choice)
            return True
        for row in existing.feasible(choice.ask, variant.tolerations):
            requirements = existing.requirements_of(row)
            added = self._domains.narrowed(shape, variant, choice.strict, requirements)
            if added is not None and requirements.is_compatible(added):
                self._record_existing(pod, row, choice)
                return True
        return False

    def _record_existing(self, pod: PlannedPod, row: int, choice: VariantChoice) -> None:
        existing = self._facts.existing
        existing.place(pod.key, row, choice.ask)
        self.placed[pod.key] = existing.name_of(row)
        take_back = self._domains.record(pod.shape, existing.requirements_of(row), existing.taints_of(row), frozenset())
        forget = self._facts.claims.record(pod, None)

        def undo() -> None:
            forget()
            take_back()
            del self.placed[pod.key]
            existing.remove(pod.key)

        self._undo.append(undo)

    def _to_planned(self, pod: PlannedPod, known: VariantKey, variant: PodVariant, choice: VariantChoice) -> bool:
        number = self._numbers.setdefault(known, len(self._numbers))
        candidates = [node for node in self.nodes if number not in node.refused]
        if pod.shared_claims:
            candidates = [node for node in candidates if not self._facts.claims.refusal(pod, node.name)]
        candidates.sort(key=lambda node: len(node.pods))
        for node in candidates:
            template = self.of_pool[node.name]
            found = narrowed(
                node, template, pod, variant, choice, self._domains, keeps_min_values=self._facts.keeps_min_values
            )
            if isinstance(found, NarrowedNode):
                if self._facts.limits[template.name].can_spend(node, found):
                    self._record_planned(pod, node, variant, choice, found)
                    return True
            elif found.is_final and len(variant.choices) == 1:
                node.refused.add(number)
        return False

    def _to_new(self, pod: PlannedPod, variant: PodVariant, choice: VariantChoice, refusals: dict[str, str]) -> bool:
        for template in self._facts.templates:
            refusal = self._to_new_of(template, pod, variant, choice)
            if refusal is None:
                return True
            refusals[template.name] = refusal
        return False

    def _to_new_of(
        self, template: PoolTemplate, pod: PlannedPod, variant: PodVariant, choice: VariantChoice
    ) -> str | None:
        """Plan another node of the pool for the pod, or say why not."""
        limits = self._facts.limits[template.name]
        within = limits.within()
        if not template.usable.any():
            return "no instance type and offering satisfies the requirements of the pool"
        if not within.any():
            return f"the limits of the pool are reached ({limits.text()})"
        name = f"planned-{self._made}"
        if refusal := self._facts.claims.refusal(pod, name):
            return refusal
        self._domains.add_host(name)
        requirements = template.requirements.with_values(HOSTNAME_LABEL, only(name))
        node = PlannedNode(name, self._made, requirements, template)
        node.offers = node.offers & within
        node.types = template.types_of(node.offers)
        found = self._in_new(node, template, pod, variant, choice)
        if isinstance(found, Refusal):
            self._domains.forget_host(name)
            if within.all() or not found.is_about_types:
                return found.reason
            return f"{found.reason} within the limits of the pool ({limits.text()})"
        self._made += 1
        self.nodes.append(node)
        self.of_pool[name] = template

        def undo() -> None:
            # Later nodes were taken back before.
            self.nodes.pop()
            del self.of_pool[name]
            self._domains.forget_host(name)

        self._undo.append(undo)
        self._record_planned(pod, node, variant, choice, found)
        self._undo.append(limits.subtract(found.types))
        return None

    def _in_new(
        self, node: PlannedNode, template: PoolTemplate, pod: PlannedPod, variant: PodVariant, choice: VariantChoice
    ) -> NarrowedNode | Refusal:
        """A new node with the pod; of types within the bound of this attempt, if one of them will do."""
        every, keeps = node.offers, self._facts.keeps_min_values
        if self._most_price is not None:
            node.offers = every & (template.prices <= self._most_price)
            node.types = template.types_of(node.offers)
            found = narrowed(node, template, pod, variant, choice, self._domains, keeps_min_values=keeps)
            if isinstance(found, NarrowedNode):
                return found
            node.offers, node.types = every, template.types_of(every)
        return narrowed(
            node, template, pod, variant, choice, self._domains, keeps_min_values=self._facts.keeps_min_values
        )

    def _record_planned(
        self,
        pod: PlannedPod,
        node: PlannedNode,
        variant: PodVariant,
        choice: VariantChoice,
        found: NarrowedNode,
    ) -> None:
        template = self.of_pool[node.name]
        before = (node.offers, node.lost_hours) if node.pods else None
        give_back = node.take(pod, variant, choice, found, self._facts.catalog.charge(variant.ask))
        take_back = self._domains.record(pod.shape, found.requirements, template.pool.taints, template.undefined)
        refund = self._facts.limits[template.name].spend(before, (found.offers, found.lost_hours))
        forget = self._facts.claims.record(pod, node.name)

        def undo() -> None:
            forget()
            refund()
            take_back()
            give_back()

        self._undo.append(undo)
