"""Plans the nodes for pending pods.

Pods are taken in order, the largest first. Each goes to a node that exists, else to the planned node with the fewest
pods that takes it, else to a new node of the heaviest pool that can serve it. A pod that finds no place gives up its
preferences one after the other. Pods that were refused are tried again as long as any pod finds a place.

A gang is planned as a whole: unless all its pods that are needed find a place within all limits, none of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from shoal.api.pod import Pod
from shoal.api.topology import HOSTNAME_LABEL
from shoal.autoscale.nodes.catalog import Catalog
from shoal.autoscale.nodes.cost_reduction import GroupPrices, reduced
from shoal.autoscale.nodes.existing_nodes import ExistingNodes
from shoal.autoscale.nodes.gang_domains import DomainChoices, PlanOfDomains, with_cheaper_domains
from shoal.autoscale.nodes.plan import NodePlan, PodRefusal
from shoal.autoscale.nodes.plan_result import launched_nodes, price_bounds, provided_values, trials
from shoal.autoscale.nodes.planned_node import (
    NarrowedNode,
    PlannedNode,
    Refusal,
    VariantKey,
    cheapest,
    narrowed,
)
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.planning_units import read_units
from shoal.autoscale.nodes.pod_variants import PlannedPod, PodShapes, PodVariant, VariantChoice
from shoal.autoscale.nodes.pool_limits import PoolLimits
from shoal.autoscale.nodes.pools import by_precedence
from shoal.autoscale.nodes.shared_claims import SharedClaimPlaces
from shoal.autoscale.nodes.templates import DaemonPods, PoolTemplate
from shoal.autoscale.nodes.topology_domains import TopologyDomains
from shoal.autoscale.requirements import RequirementSet, only

_NO_POOL: Final = "there is no pool that pods may use"
_SOFT: Final = "PreferNoSchedule"
_ANYWHERE: Final = RequirementSet()
_MOST_REDUCED: Final = 3
"""Attempts whose plans are made cheaper by moving pods."""
_MOST_GROUPS: Final = 4000
_LEAST_GROUPS: Final = 500
_GROUPS_BY_PODS: Final = 400_000
"""Groups of pods of which the price is computed: fewer the more pods there are."""


def plan_nodes(given: PlanningInput) -> NodePlan:
    """What to provision for the pending pods."""
    return NodePlanner(given).plan()


class NodePlanner:
    """Plans for one state of a cluster; each planning leaves no trace, so that several can be compared."""

    def __init__(self, given: PlanningInput) -> None:
        self._given = given
        self._keeps_min_values = given.settings.min_values_policy == "Strict"
        pools = [pool for pool in by_precedence(given.pools) if not pool.is_static]
        by_name = {pool.name: {one.name: one for one in given.types.get(pool.name, ())} for pool in given.pools}
        labels = {key for types in given.types.values() for one in types for key in one.labels}
        daemon_pods = [DaemonPods(each) for each in given.daemon_sets]
        self._catalog = Catalog(given.devices.of_templates())
        self.templates = [
            PoolTemplate(self._catalog, pool, given.types.get(pool.name, ()), labels, daemon_pods) for pool in pools
        ]
        self._existing = ExistingNodes(
            given.nodes, {pool.name: pool for pool in given.pools}, by_name, given.daemon_sets, given.devices
        )
        self._claims = SharedClaimPlaces(self._existing.cluster)
        self._limits = {
            template.name: PoolLimits(template, [each for each in given.nodes if each.pool == template.name])
            for template in self.templates
        }
        self._provided = provided_values(self.templates)
        self._domains = self._domains_without(())
        soft = self._existing.has_soft_taints or any(
            taint.effect == _SOFT for template in self.templates for taint in template.pool.taints
        )
        self._shapes = PodShapes(
            respects_preferences=given.settings.preference_policy == "Respect", has_soft_taints=soft
        )
        self._nodes: list[PlannedNode] = []
        self._of_pool: dict[str, PoolTemplate] = {}
        self._placed: dict[str, str] = {}
        self._refusals: dict[str, PodRefusal] = {}
        self._undo: list[Callable[[], None]] = []
        self._made = 0
        self._most_price: float | None = None
        self._domain_of: dict[str, str] = {}
        self._domain_choices = DomainChoices()

    def plan(self, pods: Sequence[Pod] | None = None, excluded: Collection[str] = ()) -> NodePlan:
        """Place the pods, then choose a type for each planned node. `excluded`: nodes that are removed first."""
        chosen = self._given.pods if pods is None else pods
        if self._given.settings.packing == "Karpenter":
            return self._attempt(chosen, excluded, None)
        bounds: list[float | None] = [None, *price_bounds(self.templates, len(chosen))]
        is_scarce = any(offering.left is not None for each in self.templates for offering in each.offerings)
        if len(bounds) == 1 and not is_scarce:
            return self._attempt(chosen, excluded, None, reduces=True)
        plans = [(self._attempt(chosen, excluded, bound), bound) for bound in bounds]
        plans.sort(key=lambda found: found[0].cost)
        first = [bound for _, bound in plans[:_MOST_REDUCED]]
        cheaper = [(self._attempt(chosen, excluded, bound, reduces=True), bound, self._domain_of) for bound in first]
        best, bound, domains = min((*cheaper, (*plans[0], {})), key=lambda found: found[0].cost)
        return with_cheaper_domains(
            PlanOfDomains(best, domains),
            lambda gang: self._values_of(self._given.together[gang]),
            lambda tried: self._attempt(chosen, excluded, bound, reduces=True, domain_of=tried),
            trials(len(chosen)),
        )

    def _attempt(
        self,
        pods: Sequence[Pod],
        excluded: Collection[str],
        most_price: float | None,
        *,
        reduces: bool = False,
        domain_of: Mapping[str, str] = {},
    ) -> NodePlan:
        """`domain_of`: the domains that some gangs have to use."""
        self._domain_of = dict(domain_of)
        self._nodes, self._of_pool, self._placed, self._made = [], {}, {}, 0
        self._most_price = most_price
        self._domains = self._domains_without(excluded)
        self._existing.exclude(excluded)
        for limits in self._limits.values():
            limits.reset(excluded)
        queue, self._refusals = read_units(
            self._given, pods, self._shapes, has_interruptions=any(each.has_interruptions for each in self.templates)
        )
        self._claims.begin(queue)
        for unit in queue:
            for pod in unit:
                self._prepare(pod)
        while queue:
            left = [unit for unit in queue if not self._add_unit(unit)]
            if len(left) == len(queue):
                break
            queue = left
        result = self._result(self._reduced(self._nodes, excluded) if reduces else self._nodes)
        self._roll_back(0)
        return result

    def _reduced(self, nodes: list[PlannedNode], excluded: Collection[str]) -> list[PlannedNode]:
        """The same pods on cheaper nodes; the nodes as they are where that would exceed a limit."""
        kept = [node for node in nodes if not self._is_free(node)]
        made: list[PlannedNode] = []
        for weight in dict.fromkeys(template.pool.weight for template in self.templates):
            templates = [template for template in self.templates if template.pool.weight == weight]
            own = [node for node in nodes if self._of_pool[node.name] in templates and self._is_free(node)]
            pods = sum(len(node.pods) for node in own)
            most = min(max(_GROUPS_BY_PODS // max(pods, 1), _LEAST_GROUPS), _MOST_GROUPS)
            groups = GroupPrices(templates, self._domains, keeps_min_values=self._keeps_min_values, most=most)
            for placed in reduced([node.placed for node in own], groups):
                name = f"reduced-{len(made)}"
                found = groups.node(placed, name, len(made))
                if found is None:
                    return nodes
                made.append(found[0])
                self._of_pool[name] = found[1]
        every = [*kept, *made]
        for limits in self._limits.values():
            limits.reset(excluded)
        are_within = all(self._limits[self._of_pool[node.name].name].take(node) for node in every)
        return every if are_within else nodes

    def _is_free(self, node: PlannedNode) -> bool:
        """Whether no rule about other pods concerns the pods of the node."""
        return not any(
            pod.shared_claims or self._domains.concerns(pod.shape, variant) or self._domains.counts(pod.shape)
            for pod, variant, _ in node.placed
        )

    def usable_types(self, pool: str) -> list[str]:
        """The types that the pool may use, the cheapest first."""
        return next((each.usable_types() for each in self.templates if each.name == pool), [])

    def limits_left(self, pool: str) -> Mapping[str, int]:
        """What the nodes that exist leave of the limits of a pool."""
        limits = self._limits.get(pool)
        return {} if limits is None else limits.left

    def _domains_without(self, excluded: Collection[str]) -> TopologyDomains:
        existing = self._existing
        return TopologyDomains(
            self._provided, existing.domain_nodes, existing.residents, self._given.namespace_labels, excluded
        )

    def _prepare(self, pod: PlannedPod) -> None:
        """Compile the requests before anything is placed: the engine's record keeps its width from then on."""
        first = pod.shape.first
        self._catalog.charge(first.ask)
        self._existing.prepare(first.choices[0].ask)
        self._domains.watch(pod.shape)

    # -- placing -----------------------------------------------------------------------------------------------

    def _add_unit(self, unit: Sequence[PlannedPod]) -> bool:
        """Place a pod, or all pods of a gang or none of them."""
        gang = self._given.gangs.get(unit[0].key, "")
        key = self._given.together.get(gang, "")
        return self._add_all(unit, _ANYWHERE) if not key else self._add_together(unit, gang, key)

    def _add_all(self, unit: Sequence[PlannedPod], within: RequirementSet) -> bool:
        mark = len(self._undo)
        for pod in unit:
            if not self._add(pod, within):
                self._roll_back(mark)
                for other in unit:
                    if other is not pod:
                        self._refusals[other.key] = PodRefusal(other.key, reason=f"no place for {pod.key} of its gang")
                return False
        for pod in unit:
            self._refusals.pop(pod.key, None)
        return True

    def _add_together(self, unit: Sequence[PlannedPod], gang: str, key: str) -> bool:
        """Place a gang in one domain: the one in which its new nodes cost least."""
        best: tuple[float, str] | None = None
        values = [self._domain_of[gang]] if gang in self._domain_of else self._values_of(key)
        for value in values:
            mark, before = len(self._undo), len(self._nodes)
            if self._add_all(unit, RequirementSet({key: only(value)})):
                price = sum(self._price(node) for node in self._nodes[before:])
                if best is None or price < best[0]:
                    best = price, value
            self._roll_back(mark)
        if best is not None:
            self._domain_of[gang] = best[1]
            return self._add_all(unit, RequirementSet({key: only(best[1])}))
        for pod in unit:
            self._refusals.setdefault(pod.key, PodRefusal(pod.key, reason=f"no pool provides label {key}"))
        return False

    def _values_of(self, key: str) -> list[str]:
        """Of a label, on nodes that exist and on those that could be provisioned."""
        nodes = self._existing.domain_nodes.values()
        return sorted({*self._provided.get(key, ()), *(node.labels.get(key, "") for node in nodes)} - {""})

    def _price(self, node: PlannedNode) -> float:
        template = self._of_pool[node.name]
        index = cheapest(template, node.offers, hours=node.lost_hours)
        return 0.0 if index is None else float(template.expected_prices(node.lost_hours)[index])

    def _roll_back(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()

    def _add(self, pod: PlannedPod, within: RequirementSet) -> bool:
        """Place the pod, with those that share a claim with it."""
        if self._claims.is_placed(pod):
            return True
        peers = self._claims.peers(pod)
        for host in self._hosts(pod) if peers else ():
            mark = len(self._undo)
            there = within.with_values(HOSTNAME_LABEL, only(host))
            if all(self._add_alone(each, there) for each in peers):
                return True
            self._roll_back(mark)
        return self._add_alone(pod, within)

    def _hosts(self, pod: PlannedPod) -> list[str]:
        """The nodes that exist, that are planned, and that would be planned next."""
        rows = self._existing.feasible(pod.shape.first.choices[0].ask, pod.shape.first.tolerations)
        planned = (node.name for node in self._nodes)
        return [*map(self._existing.name_of, rows), *planned, f"planned-{self._made}"]

    def _add_alone(self, pod: PlannedPod, within: RequirementSet) -> bool:
        number = 0
        refusals: dict[str, str] = {}
        while (variant := pod.shape.variant(number)) is not None:
            key = (pod.shape.number, number, repr(within) if len(within) else "")
            for place, each in enumerate(variant.choices):
                choice = self._domain_choices.of(each, within, (*key, place)) if len(within) else each
                if self._to_existing(pod, variant, choice) or self._to_planned(pod, key, variant, choice):
                    return True
                refusals = {}
                if self._to_new(pod, variant, choice, refusals):
                    return True
            number += 1
        self._refusals[pod.key] = PodRefusal(pod.key, refusals, "" if self.templates else _NO_POOL)
        return False

    def _to_existing(self, pod: PlannedPod, variant: PodVariant, choice: VariantChoice) -> bool:
        existing, shape = self._existing, pod.shape
        if self._claims.refusal(pod, None):
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
        existing = self._existing
        existing.place(pod.key, row, choice.ask)
        self._placed[pod.key] = existing.name_of(row)
        take_back = self._domains.record(pod.shape, existing.requirements_of(row), existing.taints_of(row), frozenset())
        forget = self._claims.record(pod, None)

        def undo() -> None:
            forget()
            take_back()
            del self._placed[pod.key]
            existing.remove(pod.key)

        self._undo.append(undo)

    def _to_planned(self, pod: PlannedPod, known: VariantKey, variant: PodVariant, choice: VariantChoice) -> bool:
        candidates = [
            node for node in self._nodes if known not in node.refused and not self._claims.refusal(pod, node.name)
        ]
        candidates.sort(key=lambda node: len(node.pods))
        for node in candidates:
            template = self._of_pool[node.name]
            found = narrowed(
                node, template, pod, variant, choice, self._domains, keeps_min_values=self._keeps_min_values
            )
            if isinstance(found, NarrowedNode):
                if self._limits[template.name].can_spend(node, found):
                    self._record_planned(pod, node, variant, choice, found)
                    return True
            elif found.is_final and len(variant.choices) == 1:
                node.refused.add(known)
        return False

    def _to_new(self, pod: PlannedPod, variant: PodVariant, choice: VariantChoice, refusals: dict[str, str]) -> bool:
        for template in self.templates:
            refusal = self._to_new_of(template, pod, variant, choice)
            if refusal is None:
                return True
            refusals[template.name] = refusal
        return False

    def _to_new_of(
        self, template: PoolTemplate, pod: PlannedPod, variant: PodVariant, choice: VariantChoice
    ) -> str | None:
        """Plan another node of the pool for the pod, or say why not."""
        limits = self._limits[template.name]
        within = limits.within()
        if not template.usable.any():
            return "no instance type and offering satisfies the requirements of the pool"
        if not within.any():
            return f"the limits of the pool are reached ({limits.text()})"
        name = f"planned-{self._made}"
        if refusal := self._claims.refusal(pod, name):
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
        self._nodes.append(node)
        self._of_pool[name] = template

        def undo() -> None:
            self._nodes.remove(node)
            del self._of_pool[name]
            self._domains.forget_host(name)

        self._undo.append(undo)
        self._record_planned(pod, node, variant, choice, found)
        self._undo.append(limits.subtract(found.types))
        return None

    def _in_new(
        self, node: PlannedNode, template: PoolTemplate, pod: PlannedPod, variant: PodVariant, choice: VariantChoice
    ) -> NarrowedNode | Refusal:
        """A new node with the pod; of types within the bound of this attempt, if one of them will do."""
        every = node.offers
        if self._most_price is not None:
            node.offers = every & (template.prices <= self._most_price)
            node.types = template.types_of(node.offers)
            found = narrowed(
                node, template, pod, variant, choice, self._domains, keeps_min_values=self._keeps_min_values
            )
            if isinstance(found, NarrowedNode):
                return found
            node.offers, node.types = every, template.types_of(every)
        return narrowed(node, template, pod, variant, choice, self._domains, keeps_min_values=self._keeps_min_values)

    def _record_planned(
        self,
        pod: PlannedPod,
        node: PlannedNode,
        variant: PodVariant,
        choice: VariantChoice,
        found: NarrowedNode,
    ) -> None:
        template = self._of_pool[node.name]
        before = (node.offers, node.lost_hours) if node.pods else None
        give_back = node.take(pod, variant, choice, found, self._catalog.charge(variant.ask))
        take_back = self._domains.record(pod.shape, found.requirements, template.pool.taints, template.undefined)
        refund = self._limits[template.name].spend(before, (found.offers, found.lost_hours))
        forget = self._claims.record(pod, node.name)

        def undo() -> None:
            forget()
            refund()
            take_back()
            give_back()

        self._undo.append(undo)

    # -- the result --------------------------------------------------------------------------------------------

    def _result(self, nodes: Iterable[PlannedNode]) -> NodePlan:
        launched, lost = launched_nodes([(node, self._of_pool[node.name]) for node in nodes], self._given.gangs)
        for key in lost:
            self._refusals[key] = PodRefusal(key, reason="no more nodes of the reservation are left")
        return NodePlan(launched, dict(self._placed), tuple(self._refusals[key] for key in sorted(self._refusals)))
