"""Assigns domains to workloads that hold quota already: nodes were created for them, or one of their nodes failed.

They come before all heads, because what they hold is charged anyway. The domains that a workload leaves stay charged
until the cycle ends: its pods may still be there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import structs

from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.decisions import Admitted, Decisions, Stopped
from shoal.engine.queues.facts import Amounts, PodSetAdmission, QuotaAssignment
from shoal.engine.queues.flavors.eligibility import asks_for_topology
from shoal.engine.queues.quota_tree import CohortNode
from shoal.engine.queues.state import Queues
from shoal.engine.queues.tas.flavor_topology import FlavorTopology
from shoal.engine.queues.tas.place import Request, TopologyRefusal, place
from shoal.engine.queues.tas.replace import replace
from shoal.engine.queues.topology_facts import TopologyAssignment
from shoal.engine.queues.workloads import Total

NODE_FAILURES = "NodeFailures"
_FAIL_FAST = "TASFailedNodeReplacementFailFast"


class SecondPass:
    """The passes of one cycle."""

    def __init__(self, queues: Queues, decisions: Decisions, now_s: float) -> None:
        self._queues = queues
        self._decisions = decisions
        self._now_s = now_s
        self.stuck: list[str] = []
        """Workloads without capacity at present."""
        self.touched: set[CohortNode] = set()
        """Roots of trees in which a workload got domains."""
        self._left: list[tuple[FlavorTopology, TopologyAssignment, Amounts]] = []
        """The domains that moved workloads left, which are charged."""

    def run(self, keys: Iterable[str]) -> list[str]:
        """Look at some workloads; those that were helped and need more are returned."""
        known = self._queues.held
        due = [known[key] for key in keys if key in known and is_due(known[key]) and not known[key].evicted]
        due.sort(key=lambda held: (-held.priority, held.stamp_s, held.facts.uid, held.key))
        # Who could be helped before the others were is not given up for having lost to them.
        hopeless = {held.key: why for held in due if (why := self._why_hopeless(held))}
        self.stuck = [held.key for held in due if not self._is_settled(held, hopeless.get(held.key, ""))]
        helped = [known[held.key] for held in due if held.key in known and held.key not in self.stuck]
        return [held.key for held in helped if is_due(held) and not held.evicted]

    def release(self) -> bool:
        """The cycle has ended: domains that were left are free. Returns whether there are some."""
        left, self._left = self._left, []
        for forest, where, per_pod in left:
            forest.charge(where, per_pod, -1)
        return bool(left)

    def _why_hopeless(self, held: AdmittedWorkload) -> str:
        """Why no other node does for one that failed; empty where one does, or none failed."""
        if not is_broken(held):
            return ""
        found = replace(self._queues, held)
        return "" if isinstance(found, QuotaAssignment) else found

    def _is_settled(self, held: AdmittedWorkload, why_hopeless: str) -> bool:
        if not is_broken(held):
            return self._place(held)
        found = why_hopeless or replace(self._queues, held)
        if isinstance(found, QuotaAssignment):
            self._adopt(held, found)
            return True
        if not why_hopeless or _FAIL_FAST not in self._queues.settings.gates:
            self._decisions.unplaced[held.key] = found
            return False
        held.stop(self._now_s, NODE_FAILURES)
        self._decisions.stopped.append(Stopped(held.key, NODE_FAILURES, found))
        return True

    def _place(self, held: AdmittedWorkload) -> bool:
        wanted = {pod_set.name: pod_set for pod_set in held.facts.pod_sets}
        requests = []
        for each in held.admission.pod_sets:
            flavor = self._topology_flavor(each)
            if each.delayed != "Pending" or flavor is None or each.name not in wanted:
                continue
            pod_set = wanted[each.name]
            implied = not asks_for_topology(pod_set.topology)
            requests.append(Request(Total.of(pod_set, each.count), flavor, each.count, None, implied))
        found = place(self._queues, requests)
        if isinstance(found, TopologyRefusal):
            self._decisions.unplaced[held.key] = f"couldn't assign flavors to pod set {found.pod_set}: {found.message}"
            return False
        pod_sets = tuple(
            structs.replace(each, topology=found[each.name], delayed="Ready") if each.name in found else each
            for each in held.admission.pod_sets
        )
        self._adopt(held, structs.replace(held.admission, pod_sets=pod_sets))
        return True

    def _topology_flavor(self, each: PodSetAdmission) -> str | None:
        known = self._queues.flavors
        return next((name for name in each.flavors.values() if name in known and known[name].topology), None)

    def _adopt(self, held: AdmittedWorkload, admission: QuotaAssignment) -> None:
        facts = structs.replace(
            held.facts,
            admission=admission,
            unhealthy_nodes=held.facts.unhealthy_nodes[1:],
            admitted=True,
            admitted_s=held.facts.admitted_s or self._now_s,
        )
        self.touched.add(held.queue.root)
        self._queues.hold(facts, held.stamp_s)
        self._keep_left(held, admission)
        self._decisions.admitted.append(Admitted(held.key, facts.queue, admission, again=True))

    def _keep_left(self, held: AdmittedWorkload, admission: QuotaAssignment) -> None:
        """Charge the domains that it held before, as far as it does not hold them now."""
        now = {each.name: each.topology for each in admission.pod_sets}
        wanted = {pod_set.name: pod_set for pod_set in held.facts.pod_sets}
        for each in held.admission.pod_sets:
            flavor, after = self._topology_flavor(each), now.get(each.name)
            forest = self._queues.forest(flavor) if flavor is not None else None
            if forest is None or each.topology is None or after is None or each.name not in wanted:
                continue
            left = tuple((Counter(dict(each.topology.domains)) - Counter(dict(after.domains))).items())
            if left:
                where = TopologyAssignment(each.topology.levels, left)
                forest.charge(where, wanted[each.name].on_node, 1)
                self._left.append((forest, where, wanted[each.name].on_node))


def is_broken(held: AdmittedWorkload) -> bool:
    """Whether some of its pods were on nodes that failed."""
    failed = {(name,) for name in held.facts.unhealthy_nodes}
    return bool(failed) and any(
        values[-1:] in failed
        for each in held.admission.pod_sets
        if each.topology is not None
        for values, _ in each.topology.domains
    )


def is_due(held: AdmittedWorkload) -> bool:
    """Whether a workload waits for domains only: its checks are passed."""
    if is_broken(held):
        return True
    if not any(each.delayed == "Pending" for each in held.admission.pod_sets):
        return False
    flavors = {flavor for each in held.admission.pod_sets for flavor in each.flavors.values()}
    return all(held.facts.checks.get(use.name) == "Ready" for use in held.queue.facts.checks if use.concerns(flavors))
