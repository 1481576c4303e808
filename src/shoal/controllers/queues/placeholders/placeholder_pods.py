"""Keeps places on nodes for the pods of an admission with placeholder pods, until these pods exist.

A placeholder is a pod of the facts that the API server does not have: `<workload>#<pod set>#<n>`, made from the
Workload's template with what its flavors and its topology domain add. The proof of an admission places the placeholders
of a Workload all or none; no other pod gets their places, and a pod of the Workload that arrives replaces one of them.

Guarantees: a placeholder is never preempted and is never pending when places are assigned; places are kept for five
minutes after the admission, whatever happens to this process meanwhile.

Rejected: admission without kept places. Between the admission of a gang and the arrival of its pods another pod would
take the free capacity, and the gang would hold quota and wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count

import msgspec
import numpy as np
from msgspec import structs

from shoal.api.kueue import Workload
from shoal.controllers.queues.placeholders.pod_set_templates import AskOf, PodRanks, PodSetTemplates, unrelated
from shoal.engine.cluster import Cluster
from shoal.engine.events import GroupGone, GroupSeen, PodArrived, PodGone
from shoal.engine.fitter import Fitter
from shoal.engine.from_api import Priorities
from shoal.engine.groups import GroupFacts
from shoal.engine.intake import Intake
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Place
from shoal.engine.pods import PodAllocation
from shoal.engine.queues.facts import PodSetAdmission, QuotaAssignment, WorkloadFacts
from shoal.engine.queues.pod_set_constraints import flavors_of, with_pod_set_constraints
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topology_facts import TopologyAssignment

KEPT_S = 300.0


class Placeholder(msgspec.Struct, frozen=True):
    key: str
    pod_set: str

    @property
    def workload(self) -> str:
        return self.key.rsplit("#", 2)[0]

    @property
    def number(self) -> int:
        return int(self.key.rpartition("#")[2])


class Placeholders:
    """`staying` counts the pods of a Workload that have a node and are not terminating, by pod set."""

    def __init__(
        self,
        intake: Intake,
        workload_of: Callable[[str], Workload | None],
        ask_of: AskOf,
        staying: Callable[[str], Mapping[str, int]],
    ) -> None:
        self._intake = intake
        self._workload_of = workload_of
        self._staying = staying
        self._kept: dict[str, dict[str, str]] = {}
        """Workload -> key of the placeholder -> pod set."""
        self._templates = PodSetTemplates(workload_of, ask_of)
        self._groups: dict[str, None] = {}

    # -- proving ---------------------------------------------------------------------------------------------

    def missing_pods(
        self, queues: Queues, priorities: Priorities, facts: WorkloadFacts, admission: QuotaAssignment
    ) -> list[PodArrived]:
        """Placeholders for the pods of an admission that have neither a node nor a placeholder."""
        templates = self._templates.of(facts, priorities)
        kept = self._kept.get(facts.key, {})
        # Pods of a Workload that is not admitted yet belong to an earlier admission and are terminating.
        staying = self._staying(facts.key) if facts.admission is not None else {}
        pods: list[PodArrived] = []
        for each in admission.pod_sets:
            template = templates.get(each.name)
            if template is None:
                continue
            there = staying.get(each.name, 0)
            most = each.count - facts.reclaimable.get(each.name, 0)
            missing = max(most - there - sum(pod_set == each.name for pod_set in kept.values()), 0)
            # The existing pods are assumed to be in the first of the topology's domains.
            free = [
                index
                for index in (*range(there, each.count), *range(there))
                if _key(facts.key, each.name, index) not in kept
            ]
            domains = _domains(each)
            for index in free[:missing]:
                ask = with_pod_set_constraints(template.ask, flavors_of(queues, each), domains[index])
                key = _key(facts.key, each.name, index)
                pods.append(PodArrived(key, ask, template.priority, who=template.who))
        if len(pods) > 1:
            group = f"{facts.key}#"
            self._groups[group] = None
            self._intake.apply(
                GroupSeen(GroupFacts(name=group, minimum=len(pods), preempts=False, is_preemptible=False))
            )
            pods = [structs.replace(pod, who=structs.replace(pod.who, group=group)) for pod in pods]
        return pods

    def keep(self, placed: Iterable[Place]) -> None:
        """Keep these places, which a proof assigned."""
        for place in placed:
            workload, pod_set, _ = place.pod.rsplit("#", 2)
            self._kept.setdefault(workload, {})[place.pod] = pod_set

    def keep_place(self, workload: str, pod_set: str, node: str, lost_pod: PodAllocation, placement: Placement) -> str:
        """Keep the place of a lost pod with a placeholder and return its key; empty if the node cannot take it."""
        row, kept = self.cluster.row_of.get(node), self._kept.get(workload, {})
        if row is None or lost_pod.charge.ask.claims:
            # The pod's replacement gets claims of its own.
            return ""
        key = next(key for index in count(len(kept)) if (key := _key(workload, pod_set, index)) not in kept)
        who = unrelated(lost_pod.who)
        self._intake.apply(PodArrived(key, lost_pod.charge.ask, lost_pod.priority, who=who))
        ledger = Ledger(self.cluster)
        for pod in [pod for pod in self.cluster.nominated if self.cluster.pods[pod].row == row]:
            # The pod is nominated for capacity that other pods free; this place does not become free.
            ledger.withdraw(pod)
        if not Fitter(placement, ledger, 0).pod(key, np.array([row])):
            ledger.rollback()
            self._intake.apply(PodGone(key))
            return ""
        ledger.commit()
        self._kept.setdefault(workload, {})[key] = pod_set
        return key

    def drop_unfit(self, nodes: Collection[str], placement: Placement) -> list[str]:
        """Drop all places of the Workloads that have one on these nodes where no pod may be placed any more."""
        rows = {self.cluster.row_of.get(node, -1) for node in nodes}
        found = [
            workload
            for workload, kept in self._kept.items()
            if any(self._is_unfit(key, rows, placement) for key in kept)
        ]
        for workload in found:
            self.drop(workload)
        return found

    def _is_unfit(self, key: str, rows: set[int], placement: Placement) -> bool:
        allocation = self.allocation(key)
        if allocation is None or allocation.row not in rows:
            return False
        ledger = Ledger(self.cluster)
        ledger.evict(key)
        is_unfit = placement.choose(allocation.charge, 0, allocation.who, np.array([allocation.row])) is None
        ledger.rollback()
        return is_unfit

    def tidy(self) -> None:
        """Forget what only trials needed."""
        self._templates.forget()
        for group in [name for name in self._groups if name[:-1] not in self._kept]:
            del self._groups[group]
            self._intake.apply(GroupGone(group))

    # -- keeping ---------------------------------------------------------------------------------------------

    def of(self, workload: str) -> list[Placeholder]:
        return [Placeholder(key, pod_set) for key, pod_set in self._kept.get(workload, {}).items()]

    def ranks(self, workload: str) -> PodRanks:
        return PodRanks(self._workload_of(workload))

    def keys(self, workload: str) -> Iterable[str]:
        return self._kept.get(workload, ())

    def workloads(self) -> list[str]:
        return list(self._kept)

    def count(self, workload: str) -> int:
        return len(self._kept.get(workload, ()))

    def allocation(self, placeholder: str) -> PodAllocation | None:
        return self._intake.cluster.pods.get(placeholder)

    def drop(self, workload: str, placeholders: Iterable[str] | None = None) -> int:
        """Drop these placeholders, or all of the Workload's; returns how many there were."""
        kept = self._kept.get(workload)
        if kept is None:
            return 0
        gone = [key for key in (list(kept) if placeholders is None else placeholders) if key in kept]
        for key in gone:
            del kept[key]
            self._intake.apply(PodGone(key))
        if not kept:
            del self._kept[workload]
        return len(gone)

    def release_one(self, workload: str, pod_set: str, node: str) -> None:
        """A pod of the Workload was bound to a node outside this process: drop one placeholder, if possible of that
        node."""
        kept = [placeholder for placeholder in self.of(workload) if not pod_set or placeholder.pod_set == pod_set]
        names = self.cluster.names
        for placeholder in kept:
            allocation = self.allocation(placeholder.key)
            if allocation is not None and names[allocation.row] == node:
                self.drop(workload, [placeholder.key])
                return
        if kept:
            self.drop(workload, [kept[-1].key])

    def drop_without_node(self) -> list[str]:
        """Drop all places of the Workloads that lost one with its node; they need new places."""
        pending = self.cluster.pending
        found = [workload for workload, kept in self._kept.items() if any(key in pending for key in kept)]
        for workload in found:
            self.drop(workload)
        return found

    @property
    def cluster(self) -> Cluster:
        return self._intake.cluster


def _key(workload: str, pod_set: str, index: int) -> str:
    return f"{workload}#{pod_set}#{index}"


def _domains(each: PodSetAdmission) -> list[Mapping[str, str]]:
    """One domain for each pod."""
    topology: TopologyAssignment | None = each.topology
    if topology is None:
        return [{}] * each.count
    return [
        dict(zip(topology.levels, values, strict=False)) for values, count in topology.domains for _ in range(count)
    ]
