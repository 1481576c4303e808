"""Stores the facts of all queues, and keeps sums, admitted workloads and topology use consistent: it is their only
writer.

`put` takes any fact, new or changed; `drop` forgets one. `add_usage` and `remove_usage` change who holds quota and are
exact inverses: every trial (would removing these help?) goes through them and is undone in reverse order.

A tree of cohorts is summed again when one of its quotas changes, never per round.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.api.cost_budgets import NO_BUDGETS, CostBudgets, OverBudget, owner_of
from shoal.engine.queues.admission_checks import AdmissionCheckFacts
from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.cohort_tree_builder import grown, sum_all
from shoal.engine.queues.facts import ClusterQueueFacts, CohortFacts, FlavorFacts, LocalQueueFacts, WorkloadFacts
from shoal.engine.queues.flavor_topologies import FlavorTopologies
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.replacements import Replacements
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.tas.flavor_topology import FlavorTopology
from shoal.engine.queues.tas.refusals import TopologyRefusal
from shoal.engine.queues.topology_facts import QueueNode, TopologyAssignment, TopologyLevels
from shoal.engine.queues.workloads import usage_of

Fact = (
    FlavorFacts | TopologyLevels | AdmissionCheckFacts | ClusterQueueFacts | CohortFacts | LocalQueueFacts | QueueNode
)


class Queues:
    """Flavors, queues, cohorts and who holds what."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.flavors: dict[str, FlavorFacts] = {}
        self.topologies: dict[str, TopologyLevels] = {}
        self.checks: dict[str, AdmissionCheckFacts] = {}
        self.cluster_queues: dict[str, ClusterQueue] = {}
        self.cohorts: dict[str, Cohort] = {}
        self.local_queues: dict[str, LocalQueueFacts] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        """Namespace -> labels."""
        self.nodes: dict[str, QueueNode] = {}
        self.held: dict[str, AdmittedWorkload] = {}
        self.cost_budgets: CostBudgets = NO_BUDGETS
        self.cycles: set[str] = set()
        """Cohorts that are their own ancestor."""
        self.replacements = Replacements()
        self.unqueued: dict[str, tuple[WorkloadFacts, float]] = {}
        """Workloads that hold quota of a cluster queue that is not there, and their stamps."""
        self.use_generation = 0
        """Changes with the weights and the reported usage of local queues."""
        self.generation = 0
        """Moves when queues, quotas or flavors change."""
        self.nodes_generation = 0
        self._cohort_facts: dict[str, CohortFacts] = {}
        self._tables: dict[type[Fact], dict[str, Any]] = {
            FlavorFacts: self.flavors,
            TopologyLevels: self.topologies,
            AdmissionCheckFacts: self.checks,
            CohortFacts: self._cohort_facts,
            LocalQueueFacts: self.local_queues,
            QueueNode: self.nodes,
        }
        """Facts that are stored as they are given, by kind."""
        self._forests = FlavorTopologies(self.flavors, self.topologies, self.nodes, self.held)
        self.short_of_nodes: set[CohortNode] = set()
        """Trees in which a workload was refused for lack of nodes since nodes were released last."""
        self.when_empty: dict[bytes, dict[str, TopologyAssignment] | TopologyRefusal] = {}
        """Requests -> their places if no workload used anything: a question of nodes and flavors alone."""
        self._stale = True
        self._has_passed_expired = False
        """Whether work was decided about after the cost budgets had expired."""

    # What is there

    def put(self, fact: Fact) -> None:
        """Learn a fact, or that it changed; what is known already is no news."""
        if self._known(fact) == fact:
            return
        match fact:
            case FlavorFacts() | TopologyLevels():
                self._tables[type(fact)][fact.name] = fact
                self._forget_forests()
            case AdmissionCheckFacts() | CohortFacts():
                self._tables[type(fact)][fact.name] = fact
            case ClusterQueueFacts():
                found = self.cluster_queues.get(fact.name)
                if found is None:
                    self.cluster_queues[fact.name] = ClusterQueue(fact)
                else:
                    found.adopt(fact)
            case LocalQueueFacts():
                known = self.local_queues.get(fact.key)
                self.local_queues[fact.key] = fact
                self.use_generation += 1
                if known is not None and fact.without_use() == known.without_use():
                    return
            case QueueNode():
                self._nodes_changed()
                self.nodes[fact.name] = fact
                return
        self._stale = True

    def put_namespace(self, name: str, labels: dict[str, str]) -> None:
        if self.namespaces.get(name) != labels:
            self.namespaces[name] = labels
            self._stale = True

    def put_cost_budgets(self, budgets: CostBudgets) -> None:
        """What was spent; work is decided anew only where the budgets refuse other work than before, or the former ones
        had expired and let work pass."""
        if self._has_passed_expired or not budgets.refuses_as(self.cost_budgets):
            self._stale = True
        self._has_passed_expired = False
        self.cost_budgets = budgets

    def drop(self, kind: type[Fact], name: str) -> None:
        """Forget a fact. Who holds quota of a queue that is gone holds it again should the queue come back."""
        if kind is QueueNode:
            self._nodes_changed()
            self.nodes.pop(name, None)
            return
        if kind is ClusterQueueFacts:
            removed = self.cluster_queues.pop(name, None)
            for key in list(removed.held) if removed is not None else ():
                held = self.held.pop(key)
                self.unqueued[key] = (held.facts, held.stamp_s)
        else:
            self._tables[kind].pop(name, None)
        self._forget_forests()
        self._stale = True

    def refresh(self) -> None:
        """Make trees and sums true after facts changed."""
        if not self._stale:
            return
        self._stale = False
        self.generation += 1
        self.short_of_nodes.clear()
        queues = self.cluster_queues.values()
        self.cohorts, self.cycles = grown(self._cohort_facts, queues)
        sum_all(self.cohorts.values(), queues)
        for queue in queues:
            queue.generation = self.generation
            queue.closed = inactive_reason(self, queue)
        for key, (facts, stamp_s) in list(self.unqueued.items()):
            if facts.admission is not None and facts.admission.cluster_queue in self.cluster_queues:
                del self.unqueued[key]
                self.hold(facts, stamp_s)

    def over_budget(self, facts: WorkloadFacts, now_s: float) -> OverBudget | None:
        """The budget that lets the workload wait."""
        if not self.cost_budgets.is_refusing:
            return None
        if now_s >= self.cost_budgets.until_s:
            self._has_passed_expired = True
            return None
        labels, queue = self.namespaces.get(facts.namespace, {}), facts.queue.partition("/")[2]
        return self.cost_budgets.refusal(owner_of(labels, facts.namespace, queue), now_s)

    # Who holds what

    def hold(self, facts: WorkloadFacts, stamp_s: float) -> AdmittedWorkload | None:
        """A workload has its quota reserved; None where its cluster queue is not known."""
        admission = facts.admission
        queue = self.cluster_queues.get(admission.cluster_queue) if admission is not None else None
        if admission is None:
            return None
        if queue is None:
            self.unqueued[facts.key] = (facts, stamp_s)
            return None
        if facts.key in self.held:
            self.release(facts.key)
        self._give_back(facts.key)
        held = AdmittedWorkload(facts, admission, queue, usage_of(admission), stamp_s, facts.evicted_s is not None)
        if self.replacements.is_replaced(facts):
            self.replacements.put_aside(held, was_charged=True)
            return None
        self.replacements.not_so(facts.key)
        before = self.held.get(facts.replaces)
        if self.replacements.takes(facts, before) and before is not None:
            del self.held[before.key]
            self.replacements.put_aside(before, was_charged=bool(self.remove_all_usage((before,))))
        self.held[facts.key] = held
        self.add_usage(held)
        return held

    def release(self, key: str, *, is_over: bool = False) -> AdmittedWorkload | None:
        """It holds nothing any more; `is_over`: nor will it."""
        self.unqueued.pop(key, None)
        if self.replacements.knows(key):
            # Its former quota has been used by others meanwhile.
            return self.replacements.gives_up(key, is_over=is_over)
        held = self.held.pop(key, None)
        if held is not None:
            self.remove_usage(held)
        self._give_back(key)
        return held

    def add_usage(self, held: AdmittedWorkload) -> None:
        """Charge what it holds: quota and topology."""
        held.queue.held[held.key] = held
        held.queue.add_all(held.usage)
        if held.topology_flavors:
            self._forests.charge(held, 1)

    def remove_usage(self, held: AdmittedWorkload) -> None:
        """The inverse of `add_usage`; `held` of the whole still knows it, so that a trial can put it back."""
        del held.queue.held[held.key]
        held.queue.remove_all(held.usage)
        if held.topology_flavors:
            self._forests.charge(held, -1)

    def remove_all_usage(self, helds: Iterable[AdmittedWorkload]) -> list[AdmittedWorkload]:
        """Those of them that were seated, in order; `add_all_usage` puts them back."""
        removed = []
        for held in helds:
            if held.key in held.queue.held:
                self.remove_usage(held)
                removed.append(held)
        return removed

    def add_all_usage(self, removed: list[AdmittedWorkload]) -> None:
        """The inverse of `remove_all_usage`."""
        for held in reversed(removed):
            self.add_usage(held)

    def forest(self, flavor: str) -> FlavorTopology | None:
        """The domains of a flavor with a topology, with what is used in them; None without topology."""
        return self._forests.of(flavor)

    def leaves_of(self, root: CohortNode) -> Iterable[ClusterQueue]:
        """The cluster queues of one tree, in order."""
        if isinstance(root, ClusterQueue):
            yield root
        elif isinstance(root, Cohort):
            for child in root.children:
                yield from self.leaves_of(child)

    @property
    def is_stale(self) -> bool:
        """Whether facts changed since the last `refresh`."""
        return self._stale

    # internals

    def _known(self, fact: Fact) -> Fact | None:
        if isinstance(fact, ClusterQueueFacts):
            queue = self.cluster_queues.get(fact.name)
            return None if queue is None else queue.facts
        return self._tables[type(fact)].get(fact.key if isinstance(fact, LocalQueueFacts) else fact.name)

    def _give_back(self, key: str) -> None:
        """The place that it took: whose it was is charged again."""
        aside = self.replacements.give_back(key)
        if aside is None:
            return
        before = aside.held
        if before.queue is not self.cluster_queues.get(before.queue.name):
            # Its queue was gone for a while.
            self.hold(before.facts, before.stamp_s)
            return
        self.held[before.key] = before
        if aside.was_charged:
            self.add_usage(before)

    def _nodes_changed(self) -> None:
        self.nodes_generation += 1
        self._forget_forests()

    def _forget_forests(self) -> None:
        self._forests.forget()
        self.when_empty.clear()


def inactive_reason(queues: Queues, queue: ClusterQueue) -> tuple[str, str] | None:
    """The reason, and words that follow the queue's name; None where it admits."""
    facts = queue.facts
    if facts.stop != "None":
        return "Stopped", "is stopped"
    if facts.cohort in queues.cycles:
        return "CohortCycle", f"belongs to cohort {facts.cohort}, which is its own ancestor"
    used = dict.fromkeys(flavor.name for group in facts.groups for flavor in group.flavors)
    missing = [name for name in used if name not in queues.flavors]
    if missing:
        return "FlavorNotFound", f"uses ResourceFlavor {', '.join(missing)}, which does not exist"
    if "TopologyAwareScheduling" in queues.settings.gates:
        for name in used:
            topology = queues.flavors[name].topology
            if topology and topology not in queues.topologies:
                return "TopologyNotFound", f"uses Topology {topology}, which does not exist"
    for check in facts.checks:
        known = queues.checks.get(check.name)
        if known is None:
            return "AdmissionCheckNotFound", f"demands AdmissionCheck {check.name}, which does not exist"
        if not known.active:
            return "AdmissionCheckInactive", f"demands AdmissionCheck {check.name}, which is not active"
    return None
