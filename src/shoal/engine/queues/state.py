"""The facts of all queues: one writer, one place that keeps sums, holders and topology use in step.

`put` takes any fact, new or changed; `drop` forgets one. `seat` and `unseat` change who holds quota and are exact
inverses: every trial (would removing these help?) goes through them and is undone in reverse order.

A tree of cohorts is summed again when one of its quotas changes, never per round.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import (
    CheckFacts,
    ClusterQueueFacts,
    CohortFacts,
    FlavorFacts,
    LocalQueueFacts,
    QueueNode,
    Settings,
    TopologyAssignment,
    TopologyLevels,
    WorkloadFacts,
)
from shoal.engine.queues.held import Held, usage_of
from shoal.engine.queues.tas.forest import Forest
from shoal.engine.queues.tas.misfit import Misfit
from shoal.engine.queues.tree import Cohort, Node

Fact = FlavorFacts | TopologyLevels | CheckFacts | ClusterQueueFacts | CohortFacts | LocalQueueFacts | QueueNode


class Queues:
    """Flavors, queues, cohorts and who holds what."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.flavors: dict[str, FlavorFacts] = {}
        self.topologies: dict[str, TopologyLevels] = {}
        self.checks: dict[str, CheckFacts] = {}
        self.cluster_queues: dict[str, ClusterQueue] = {}
        self.cohorts: dict[str, Cohort] = {}
        self.local_queues: dict[str, LocalQueueFacts] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        """Namespace -> labels."""
        self.nodes: dict[str, QueueNode] = {}
        self.held: dict[str, Held] = {}
        self.cycles: set[str] = set()
        """Cohorts that are their own ancestor."""
        self.homeless: dict[str, tuple[WorkloadFacts, float]] = {}
        """Workloads that hold quota of a cluster queue that is not there, and their stamps."""
        self.use_generation = 0
        """Moves when weights or told use of local queues change."""
        self.generation = 0
        """Moves when queues, quotas or flavors change."""
        self.nodes_generation = 0
        self._cohort_facts: dict[str, CohortFacts] = {}
        self._forests: dict[str, Forest] = {}
        self.short_of_nodes: set[Node] = set()
        """Trees in which somebody was turned away for want of nodes since nodes were freed last."""
        self.when_empty: dict[bytes, dict[str, TopologyAssignment] | Misfit] = {}
        """Requests -> their places if no workload used anything: a question of nodes and flavors alone."""
        self._stale = True

    # What is there

    def put(self, fact: Fact) -> None:
        """Learn a fact, or that it changed; what is known already is no news."""
        if self._known(fact) == fact:
            return
        match fact:
            case FlavorFacts():
                self.flavors[fact.name] = fact
                self._forget_forests()
            case TopologyLevels():
                self.topologies[fact.name] = fact
                self._forget_forests()
            case CheckFacts():
                self.checks[fact.name] = fact
            case ClusterQueueFacts():
                found = self.cluster_queues.get(fact.name)
                if found is None:
                    self.cluster_queues[fact.name] = ClusterQueue(fact)
                else:
                    found.adopt(fact)
            case CohortFacts():
                self._cohort_facts[fact.name] = fact
            case LocalQueueFacts():
                known = self.local_queues.get(fact.key)
                self.local_queues[fact.key] = fact
                self.use_generation += 1
                if known is not None and _without_use(fact) == _without_use(known):
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

    def drop(self, kind: type[Fact], name: str) -> None:
        """Forget a fact. Who holds quota of a queue that is gone holds it again should the queue come back."""
        if kind is QueueNode:
            self._nodes_changed()
            self.nodes.pop(name, None)
            return
        if kind is ClusterQueueFacts:
            gone = self.cluster_queues.pop(name, None)
            for key in list(gone.held) if gone is not None else ():
                held = self.held.pop(key)
                self.homeless[key] = (held.facts, held.stamp_s)
        elif kind is CohortFacts:
            self._cohort_facts.pop(name, None)
        elif kind is FlavorFacts:
            self.flavors.pop(name, None)
        elif kind is TopologyLevels:
            self.topologies.pop(name, None)
        elif kind is CheckFacts:
            self.checks.pop(name, None)
        else:
            self.local_queues.pop(name, None)
        self._forget_forests()
        self._stale = True

    def refresh(self) -> None:
        """Make trees and sums true after facts changed."""
        if not self._stale:
            return
        self._stale = False
        self.generation += 1
        self.short_of_nodes.clear()
        self._grow()
        self._sum()
        self._judge()
        for key, (facts, stamp_s) in list(self.homeless.items()):
            if facts.admission is not None and facts.admission.cluster_queue in self.cluster_queues:
                del self.homeless[key]
                self.hold(facts, stamp_s)

    # Who holds what

    def hold(self, facts: WorkloadFacts, stamp_s: float) -> Held | None:
        """A workload has its quota reserved; None where its cluster queue is not known."""
        admission = facts.admission
        queue = self.cluster_queues.get(admission.cluster_queue) if admission is not None else None
        if admission is None:
            return None
        if queue is None:
            self.homeless[facts.key] = (facts, stamp_s)
            return None
        if facts.key in self.held:
            self.release(facts.key)
        held = Held(facts, admission, queue, usage_of(admission), stamp_s, facts.evicted_s is not None)
        self.held[facts.key] = held
        self.seat(held)
        return held

    def release(self, key: str) -> Held | None:
        """It holds nothing any more."""
        self.homeless.pop(key, None)
        held = self.held.pop(key, None)
        if held is not None:
            self.unseat(held)
        return held

    def seat(self, held: Held) -> None:
        """Charge what it holds: quota and topology."""
        held.queue.held[held.key] = held
        held.queue.add_all(held.usage)
        if held.topology_flavors:
            self._charge_topology(held, 1)

    def unseat(self, held: Held) -> None:
        """The inverse of `seat`; `held` of the whole still knows it, so that a trial can put it back."""
        del held.queue.held[held.key]
        held.queue.remove_all(held.usage)
        if held.topology_flavors:
            self._charge_topology(held, -1)

    def unseat_all(self, helds: Iterable[Held]) -> list[Held]:
        """Those of them that were seated, in order; `seat_all` puts them back."""
        gone = []
        for held in helds:
            if held.key in held.queue.held:
                self.unseat(held)
                gone.append(held)
        return gone

    def seat_all(self, gone: list[Held]) -> None:
        """The inverse of `unseat_all`."""
        for held in reversed(gone):
            self.seat(held)

    def forest(self, flavor: str) -> Forest | None:
        """The domains of a flavor with a topology, with what is used in them; None without topology."""
        found = self._forests.get(flavor)
        if found is not None:
            return found
        facts = self.flavors.get(flavor)
        levels = self.topologies.get(facts.topology) if facts is not None and facts.topology else None
        if facts is None or levels is None:
            return None
        forest = Forest(facts, levels.levels, self.nodes.values())
        for held in self.held.values():
            if held.key in held.queue.held:
                _charge(forest, flavor, held, 1)
        self._forests[flavor] = forest
        return forest

    def leaves_of(self, root: Node) -> Iterable[ClusterQueue]:
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

    # Inside

    def _known(self, fact: Fact) -> Fact | None:
        match fact:
            case FlavorFacts():
                return self.flavors.get(fact.name)
            case TopologyLevels():
                return self.topologies.get(fact.name)
            case CheckFacts():
                return self.checks.get(fact.name)
            case ClusterQueueFacts():
                queue = self.cluster_queues.get(fact.name)
                return None if queue is None else queue.facts
            case CohortFacts():
                return self._cohort_facts.get(fact.name)
            case LocalQueueFacts():
                return self.local_queues.get(fact.key)
            case QueueNode():
                return self.nodes.get(fact.name)

    def _nodes_changed(self) -> None:
        self.nodes_generation += 1
        self._forget_forests()

    def _forget_forests(self) -> None:
        self._forests.clear()
        self.when_empty.clear()

    def _charge_topology(self, held: Held, sign: int) -> None:
        for flavor in held.topology_flavors:
            forest = self._forests.get(flavor)
            if forest is not None:
                _charge(forest, flavor, held, sign)

    def _grow(self) -> None:
        """Cohorts that are named or written down, each below its parent."""
        names = {facts.cohort for facts in (queue.facts for queue in self.cluster_queues.values()) if facts.cohort}
        names |= set(self._cohort_facts) | {facts.parent for facts in self._cohort_facts.values() if facts.parent}
        self.cohorts = {name: Cohort(name) for name in sorted(names)}
        for name, facts in sorted(self._cohort_facts.items()):
            cohort = self.cohorts[name]
            cohort.weight = facts.weight
            cohort.set_quotas(facts.groups)
            cohort.parent = self.cohorts.get(facts.parent) if facts.parent else None
        self._cut_cycles()
        for cohort in self.cohorts.values():
            if cohort.parent is not None:
                cohort.parent.children.append(cohort)
        for queue in self.cluster_queues.values():
            parent = self.cohorts.get(queue.facts.cohort)
            queue.parent = parent
            if parent is not None:
                parent.children.append(queue)

    def _cut_cycles(self) -> None:
        self.cycles = set()
        for cohort in self.cohorts.values():
            seen = [cohort.name]
            above = cohort.parent
            while above is not None and above.name not in seen:
                seen.append(above.name)
                above = above.parent
            if above is not None:
                self.cycles.update(seen)
        for name in self.cycles:
            self.cohorts[name].parent = None

    def _sum(self) -> None:
        """Quotas from the leaves up, then the use of everybody who holds anything."""
        for cohort in self.cohorts.values():
            if cohort.parent is None:
                _sum_below(cohort)
        for queue in self.cluster_queues.values():
            queue.sum_quotas(())
            queue.generation = self.generation
        for cohort in self.cohorts.values():
            cohort.usage = {}
        for queue in self.cluster_queues.values():
            queue.usage = {}
            for held in queue.held.values():
                queue.add_all(held.usage)

    def _judge(self) -> None:
        """Which cluster queues admit nobody, and why."""
        for queue in self.cluster_queues.values():
            queue.closed = self._why_closed(queue)

    def _why_closed(self, queue: ClusterQueue) -> tuple[str, str] | None:
        facts = queue.facts
        if facts.stop != "None":
            return "Stopped", "is stopped"
        if facts.cohort in self.cycles:
            return "CohortCycle", f"belongs to cohort {facts.cohort}, which is its own ancestor"
        used = dict.fromkeys(flavor.name for group in facts.groups for flavor in group.flavors)
        missing = [name for name in used if name not in self.flavors]
        if missing:
            return "FlavorNotFound", f"uses ResourceFlavor {', '.join(missing)}, which is not there"
        if "TopologyAwareScheduling" in self.settings.gates:
            for name in used:
                topology = self.flavors[name].topology
                if topology and topology not in self.topologies:
                    return "TopologyNotFound", f"uses Topology {topology}, which is not there"
        for check in facts.checks:
            known = self.checks.get(check.name)
            if known is None:
                return "AdmissionCheckNotFound", f"demands AdmissionCheck {check.name}, which is not there"
            if not known.active:
                return "AdmissionCheckInactive", f"demands AdmissionCheck {check.name}, which is not active"
        return None


def _without_use(local: LocalQueueFacts) -> LocalQueueFacts:
    return replace(local, weight=1.0, used=None, consumed={}, used_s=0.0)


def _sum_below(cohort: Cohort) -> None:
    for child in cohort.children:
        if isinstance(child, Cohort):
            _sum_below(child)
        else:
            child.sum_quotas(())
    cohort.sum_quotas(cohort.children)


def _charge(forest: Forest, flavor: str, held: Held, sign: int) -> None:
    wanted = {pod_set.name: pod_set for pod_set in held.facts.pod_sets}
    for pod_set in held.admission.pod_sets:
        if pod_set.topology is not None and flavor in pod_set.flavors.values() and pod_set.name in wanted:
            forest.charge(pod_set.topology, wanted[pod_set.name].on_node, sign)
