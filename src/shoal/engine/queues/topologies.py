"""Adds topology to a nomination: which pod sets need domains, where they go, and what victims change about that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from shoal.engine.queues.admission_checks import PROVISIONING
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import PODS, Amounts, WorkloadFacts
from shoal.engine.queues.flavors.assignment import Assignment, PodSetChoice
from shoal.engine.queues.flavors.eligibility import asks_for_topology, has_only_topology_flavors
from shoal.engine.queues.flavors.modes import Mode
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.engine.queues.tas.flavor_topology import FlavorTopology
from shoal.engine.queues.tas.overlap import free_of_all
from shoal.engine.queues.tas.place import Request, TopologyRefusal, place
from shoal.engine.queues.topology_facts import TopologyAssignment
from shoal.engine.queues.victims.search import Victim
from shoal.engine.queues.workloads import digest_of

_MOST_FORMS = 10_000
SEVERAL_FLAVORS = "more than one flavor with a topology would serve one pod set"


@dataclass(slots=True)
class Topologies:
    """Domains for assignments."""

    queues: Queues

    def complete(self, queue: ClusterQueue, facts: WorkloadFacts, assignment: Assignment) -> None:
        """Add domains to an assignment that fits; without any it may still fit once others are gone, or never."""
        if assignment.mode is Mode.NO_FIT:
            return
        requests = self.requests(queue, facts, assignment)
        if isinstance(requests, str):
            _lower(assignment, Mode.NO_FIT, requests)
            return
        if not requests:
            return
        if assignment.mode is Mode.FIT:
            found = place(self.queues, requests)
            if not isinstance(found, TopologyRefusal):
                adopt(assignment, found)
                return
            _lower(assignment, Mode.PREEMPT, found.message, found.pod_set)
            self.queues.short_of_nodes.add(queue.root)
        never = self._when_empty(requests)
        if isinstance(never, TopologyRefusal):
            _lower(assignment, Mode.NO_FIT, never.message, never.pod_set)
        else:
            _free_all(assignment, {request.total.pod_set.name for request in requests})

    def foresee(self, queue: ClusterQueue, facts: WorkloadFacts, assignment: Assignment, victims: list[Victim]) -> None:
        """Where it will go once its victims are gone; without victims, where it would go if all were empty, so that
        the place is kept from those that come later in the cycle."""
        if not victims and queue.facts.preemption.reclaim == "Any":
            # No room is reserved for it, so its domains are not needed.
            return
        requests = self.requests(queue, facts, assignment)
        if not requests or isinstance(requests, str):
            return
        removed = self.queues.remove_all_usage(victim.held for victim in victims)
        found = place(self.queues, requests) if victims else self._when_empty(requests)
        self.queues.add_all_usage(removed)
        if not isinstance(found, TopologyRefusal):
            adopt(assignment, found)

    def proof(self, queue: ClusterQueue, facts: WorkloadFacts, assignment: Assignment) -> Callable[[], bool] | None:
        """Whether domains are found as things are when it is called; None where none are needed."""
        requests = self.requests(queue, facts, assignment)
        if not requests or isinstance(requests, str):
            return None

        def fits() -> bool:
            if isinstance(place(self.queues, requests), TopologyRefusal):
                self.queues.short_of_nodes.add(queue.root)
                return False
            return True

        return fits

    def _when_empty(self, requests: list[Request]) -> dict[str, TopologyAssignment] | TopologyRefusal:
        """Depends on nodes alone: worked out once per form and set of nodes."""
        known = self.queues.when_empty
        key = digest_of(requests)
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST_FORMS:
                known.clear()
            found = known[key] = place(self.queues, requests, empty=True)
        return found

    def has_capacity(self, assignment: Assignment) -> bool:
        """Whether the domains that were found are still free, all pod sets together."""
        charged: list[tuple[FlavorTopology, TopologyAssignment, Amounts]] = []
        for choice in assignment.pod_sets:
            if choice.topology is None:
                continue
            for flavor in self._flavors(choice):
                forest = self.queues.forest(flavor)
                if forest is not None:
                    charged.append((forest, choice.topology, choice.total.pod_set.on_node))
        for forest, where, per_pod in charged:
            forest.charge(where, per_pod, 1)
        holds = all(self._is_covered(forest, where, per_pod) for forest, where, per_pod in charged)
        for forest, where, per_pod in charged:
            forest.charge(where, per_pod, -1)
        return holds

    def _is_covered(self, forest: FlavorTopology, where: TopologyAssignment, per_pod: Amounts) -> bool:
        """Whether nothing that was charged is overdrawn in these domains."""
        leaves = [forest.leaf(where.levels, values) for values, _ in where.domains]
        for name in (*per_pod, PODS):
            if name != PODS and not per_pod[name]:
                continue
            free = free_of_all(self.queues, forest, name)
            if free is None and name == PODS:
                continue
            if free is None or any(leaf is None or free[leaf] < 0 for leaf in leaves):
                return False
        return True

    def requests(self, queue: ClusterQueue, facts: WorkloadFacts, assignment: Assignment) -> list[Request] | str:
        """The pod sets that need domains; or why that cannot be."""
        if "TopologyAwareScheduling" not in self.queues.settings.gates:
            return []
        requests = []
        implied = self._is_topology_only(queue)
        for choice in assignment.pod_sets:
            flavors = self._flavors(choice)
            explicit = asks_for_topology(choice.total.pod_set.topology)
            if not flavors or not (explicit or implied):
                continue
            if len(flavors) > 1:
                return f"{SEVERAL_FLAVORS}: {', '.join(sorted(flavors))}"
            if self.is_delayed(queue, facts, flavors):
                continue
            (flavor,) = flavors
            requests.append(Request(choice.total, flavor, choice.total.count, None, not explicit))
        return requests

    def is_delayed(self, queue: ClusterQueue, facts: WorkloadFacts, flavors: Iterable[str]) -> bool:
        """Whether nodes are still to be made for it, so that domains are chosen once they are there."""
        if facts.admission is not None:
            return False
        wanted = set(flavors)
        for use in queue.facts.checks:
            check = self.queues.checks.get(use.name)
            if check is not None and check.controller == PROVISIONING and use.concerns(wanted):
                return True
        return False

    def delayed_sets(self, queue: ClusterQueue, facts: WorkloadFacts, assignment: Assignment) -> set[str]:
        """Pod sets that get their domains in a second pass."""
        if "TopologyAwareScheduling" not in self.queues.settings.gates:
            return set()
        implied = self._is_topology_only(queue)
        found = set()
        for choice in assignment.pod_sets:
            flavors = self._flavors(choice)
            asks = asks_for_topology(choice.total.pod_set.topology) or implied
            if flavors and asks and self.is_delayed(queue, facts, flavors):
                found.add(choice.total.pod_set.name)
        return found

    def _flavors(self, choice: PodSetChoice) -> set[str]:
        return {
            each.flavor
            for each in choice.flavors.values()
            if each.flavor in self.queues.flavors and self.queues.flavors[each.flavor].topology
        }

    def _is_topology_only(self, queue: ClusterQueue) -> bool:
        return bool(queue.facts.groups) and has_only_topology_flavors(self.queues, queue)


def adopt(assignment: Assignment, found: dict[str, TopologyAssignment]) -> None:
    for choice in assignment.pod_sets:
        choice.topology = found.get(choice.total.pod_set.name, choice.topology)


def _free_all(assignment: Assignment, pod_sets: Collection[str]) -> None:
    """All resources of these pod sets count as short: quota that is left may be that of scattered hosts."""
    for choice in assignment.pod_sets:
        if choice.total.pod_set.name in pod_sets:
            choice.limit(Mode.PREEMPT)


def _lower(assignment: Assignment, mode: Mode, message: str, pod_set: str = "") -> None:
    """What topology says of one pod set, or of all."""
    for choice in assignment.pod_sets:
        if pod_set in {"", choice.total.pod_set.name}:
            choice.lower(mode, message, Wait.TOPOLOGY)
