"""Plans the nodes for pending pods.

Pods are taken in order, the largest first. Each goes to a node that exists, else to the planned node with the fewest
pods that takes it, else to a new node of the heaviest pool that can serve it. A pod that finds no place gives up its
preferences one after the other. Pods that were refused are tried again as long as any pod finds a place.

A gang is planned as a whole: unless all its pods that are needed find a place within all limits, none of them does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from shoal.api.pod import Pod
from shoal.autoscale.nodes.catalog import Catalog
from shoal.autoscale.nodes.cost_reduction import cheaper_nodes
from shoal.autoscale.nodes.existing_nodes import ExistingNodes
from shoal.autoscale.nodes.gang_domains import DomainChoices, PlanOfDomains, with_cheaper_domains
from shoal.autoscale.nodes.plan import NodePlan, PodRefusal
from shoal.autoscale.nodes.plan_result import launched_nodes, price_bounds, provided_values, trials
from shoal.autoscale.nodes.planned_node import PlannedNode
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.planning_units import read_units
from shoal.autoscale.nodes.pod_placing import PlacingFacts, PodPlacing
from shoal.autoscale.nodes.pod_variants import PlannedPod, PodShapes
from shoal.autoscale.nodes.pool_limits import PoolLimits
from shoal.autoscale.nodes.pools import by_precedence
from shoal.autoscale.nodes.shared_claims import SharedClaimPlaces
from shoal.autoscale.nodes.templates import DaemonPods, PoolTemplate
from shoal.autoscale.nodes.topology_domains import TopologyDomains
from shoal.autoscale.requirements import RequirementSet, only

_SOFT: Final = "PreferNoSchedule"
_ANYWHERE: Final = RequirementSet()
_MOST_REDUCED: Final = 3
"""Attempts whose plans are made cheaper by moving pods."""


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
        self._facts = PlacingFacts(
            self._catalog,
            self.templates,
            self._existing,
            self._limits,
            self._claims,
            DomainChoices(),
            self._keeps_min_values,
        )
        self._placing = PodPlacing(self._facts, self._domains)
        self._domain_of: dict[str, str] = {}

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
        self._domains = self._domains_without(excluded)
        self._placing = PodPlacing(self._facts, self._domains, most_price)
        self._existing.exclude(excluded)
        for limits in self._limits.values():
            limits.reset(excluded)
        queue, self._placing.refusals = read_units(
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
        result = self._result(self._reduced(self._placing.nodes, excluded) if reduces else self._placing.nodes)
        self._placing.roll_back(0)
        return result

    def _reduced(self, nodes: list[PlannedNode], excluded: Collection[str]) -> list[PlannedNode]:
        """The same pods on cheaper nodes; the nodes as they are where that would exceed a limit."""
        kept = [node for node in nodes if not self._is_free(node)]
        free = [(node, self._placing.of_pool[node.name]) for node in nodes if self._is_free(node)]
        made = cheaper_nodes(free, self.templates, self._domains, keeps_min_values=self._keeps_min_values)
        if made is None:
            return nodes
        self._placing.of_pool |= {node.name: template for node, template in made}
        every = [*kept, *(node for node, _ in made)]
        for limits in self._limits.values():
            limits.reset(excluded)
        are_within = all(self._limits[self._placing.of_pool[node.name].name].take(node) for node in every)
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
        mark = self._placing.mark
        for pod in unit:
            if not self._placing.add(pod, within):
                self._placing.roll_back(mark)
                for other in unit:
                    if other is not pod:
                        refusal = PodRefusal(other.key, reason=f"no place for {pod.key} of its gang")
                        self._placing.refusals[other.key] = refusal
                return False
        for pod in unit:
            self._placing.refusals.pop(pod.key, None)
        return True

    def _add_together(self, unit: Sequence[PlannedPod], gang: str, key: str) -> bool:
        """Place a gang in one domain: the one in which its new nodes cost least."""
        best: tuple[float, str] | None = None
        values = [self._domain_of[gang]] if gang in self._domain_of else self._values_of(key)
        for value in values:
            mark, before = self._placing.mark, len(self._placing.nodes)
            if self._add_all(unit, RequirementSet({key: only(value)})):
                price = sum(self._placing.price(node) for node in self._placing.nodes[before:])
                if best is None or price < best[0]:
                    best = price, value
            self._placing.roll_back(mark)
        if best is not None:
            self._domain_of[gang] = best[1]
            return self._add_all(unit, RequirementSet({key: only(best[1])}))
        for pod in unit:
            self._placing.refusals.setdefault(pod.key, PodRefusal(pod.key, reason=f"no pool provides label {key}"))
        return False

    def _values_of(self, key: str) -> list[str]:
        """Of a label, on nodes that exist and on those that could be provisioned."""
        nodes = self._existing.domain_nodes.values()
        return sorted({*self._provided.get(key, ()), *(node.labels.get(key, "") for node in nodes)} - {""})

    # -- the result --------------------------------------------------------------------------------------------

    def _result(self, nodes: Iterable[PlannedNode]) -> NodePlan:
        placing = self._placing
        launched, lost = launched_nodes([(node, placing.of_pool[node.name]) for node in nodes], self._given.gangs)
        for key in lost:
            placing.refusals[key] = PodRefusal(key, reason="no more nodes of the reservation are left")
        return NodePlan(
            launched, dict(placing.placed), tuple(placing.refusals[key] for key in sorted(placing.refusals))
        )
