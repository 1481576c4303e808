"""Places kept for the pods of an admission until the pods are there.

A ghost is a pod of the facts that nobody has created: `<workload>#<pod set>#<n>`, made from the workload's template
with what its flavors and its domain add. The proof of an admission places ghosts, all or none; they hold their places
against everybody else, and a pod that comes takes the place of one.

Promises: a ghost never yields, and none waits in line when places are given out; what is kept is kept for five minutes
from the admission, whatever happens to this process meanwhile.

Rejected: admitting on a promise that there is room. Between the admission of a gang and the arrival of its pods
somebody else would take it, and the gang would hold quota and wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count

import msgspec
import numpy as np
from msgspec import structs

from shoal.api.kueue import Workload
from shoal.controllers.queues.moulds import AskOf, Moulds, standing_aside
from shoal.controllers.queues.ranks import Ranks
from shoal.engine.cluster import Cluster
from shoal.engine.events import GroupGone, GroupSeen, PodArrived, PodGone
from shoal.engine.fitter import Fitter
from shoal.engine.from_api import Priorities
from shoal.engine.groups import GroupFacts
from shoal.engine.intake import Intake
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Place
from shoal.engine.pods import Holding
from shoal.engine.queues.facts import Admission, PodSetAdmission, WorkloadFacts
from shoal.engine.queues.flavored import flavored, flavors_of
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topology_facts import TopologyAssignment

KEPT_S = 300.0


class Ghost(msgspec.Struct, frozen=True):
    key: str
    pod_set: str

    @property
    def workload(self) -> str:
        return self.key.rsplit("#", 2)[0]

    @property
    def number(self) -> int:
        return int(self.key.rpartition("#")[2])


class Ghosts:
    """`present` counts the pods of a workload that are there, by pod set."""

    def __init__(
        self,
        intake: Intake,
        whole: Callable[[str], Workload | None],
        ask_of: AskOf,
        present: Callable[[str], Mapping[str, int]],
    ) -> None:
        self._intake = intake
        self._whole = whole
        self._present = present
        self._kept: dict[str, dict[str, str]] = {}
        """Workload -> ghost -> pod set."""
        self._moulds = Moulds(whole, ask_of)
        self._groups: dict[str, None] = {}

    # -- proving ---------------------------------------------------------------------------------------------

    def pods_of(
        self, queues: Queues, priorities: Priorities, facts: WorkloadFacts, admission: Admission
    ) -> list[PodArrived]:
        """The pods that an admission lets loose and that are not there, nor kept a place for."""
        moulds = self._moulds.of(facts, priorities)
        kept = self._kept.get(facts.key, {})
        # Of one that is not admitted yet all pods are of an earlier time, and on their way out.
        present = self._present(facts.key) if facts.admission is not None else {}
        pods: list[PodArrived] = []
        for each in admission.pod_sets:
            mould = moulds.get(each.name)
            if mould is None:
                continue
            there = present.get(each.name, 0)
            most = each.count - facts.reclaimable.get(each.name, 0)
            missing = max(most - there - sum(pod_set == each.name for pod_set in kept.values()), 0)
            # Those that came last are the last of a topology's domains, as far as anybody knows.
            free = [
                index
                for index in (*range(there, each.count), *range(there))
                if _key(facts.key, each.name, index) not in kept
            ]
            domains = _domains(each)
            for index in free[:missing]:
                ask = flavored(mould.ask, flavors_of(queues, each), domains[index])
                key = _key(facts.key, each.name, index)
                pods.append(PodArrived(key, ask, mould.priority, who=mould.who))
        if len(pods) > 1:
            group = f"{facts.key}#"
            self._groups[group] = None
            self._intake.apply(GroupSeen(GroupFacts(name=group, minimum=len(pods), preempts=False, yields=False)))
            pods = [structs.replace(pod, who=structs.replace(pod.who, group=group)) for pod in pods]
        return pods

    def keep(self, placed: Iterable[Place]) -> None:
        """These were placed by a proof."""
        for place in placed:
            workload, pod_set, _ = place.pod.rsplit("#", 2)
            self._kept.setdefault(workload, {})[place.pod] = pod_set

    def stand_in(self, workload: str, pod_set: str, node: str, lost: Holding, placement: Placement) -> str:
        """Keep the place that a pod of it had; empty where the place is none any more."""
        row, kept = self.cluster.row_of.get(node), self._kept.get(workload, {})
        if row is None or lost.charge.ask.claims:
            # Claims of one pod are not its successor's.
            return ""
        key = next(key for index in count(len(kept)) if (key := _key(workload, pod_set, index)) not in kept)
        who = standing_aside(lost.who)
        self._intake.apply(PodArrived(key, lost.charge.ask, lost.priority, who=who))
        ledger = Ledger(self.cluster)
        for pod in [pod for pod in self.cluster.promised if self.cluster.pods[pod].row == row]:
            # It was promised what others leave; this does not become free.
            ledger.withdraw(pod)
        if not Fitter(placement, ledger, 0).pod(key, np.array([row])):
            ledger.rollback()
            self._intake.apply(PodGone(key))
            return ""
        ledger.commit()
        self._kept.setdefault(workload, {})[key] = pod_set
        return key

    def unfit(self, nodes: Collection[str], placement: Placement) -> list[str]:
        """Workloads with places on some of these nodes where nobody may be placed by now: they keep none."""
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
        holding = self.holding(key)
        if holding is None or holding.row not in rows:
            return False
        ledger = Ledger(self.cluster)
        ledger.evict(key)
        is_unfit = placement.spot(holding.charge, 0, holding.who, np.array([holding.row])) is None
        ledger.rollback()
        return is_unfit

    def tidy(self) -> None:
        """Nothing is left of trials."""
        self._moulds.forget()
        for group in [name for name in self._groups if name[:-1] not in self._kept]:
            del self._groups[group]
            self._intake.apply(GroupGone(group))

    # -- keeping ---------------------------------------------------------------------------------------------

    def of(self, workload: str) -> list[Ghost]:
        return [Ghost(key, pod_set) for key, pod_set in self._kept.get(workload, {}).items()]

    def ranks(self, workload: str) -> Ranks:
        return Ranks(self._whole(workload))

    def keys(self, workload: str) -> Iterable[str]:
        return self._kept.get(workload, ())

    def workloads(self) -> list[str]:
        return list(self._kept)

    def count(self, workload: str) -> int:
        return len(self._kept.get(workload, ()))

    def holding(self, ghost: str) -> Holding | None:
        return self._intake.cluster.pods.get(ghost)

    def drop(self, workload: str, ghosts: Iterable[str] | None = None) -> int:
        """Give places back: these, or all of the workload's; how many there were."""
        kept = self._kept.get(workload)
        if kept is None:
            return 0
        gone = [key for key in (list(kept) if ghosts is None else ghosts) if key in kept]
        for key in gone:
            del kept[key]
            self._intake.apply(PodGone(key))
        if not kept:
            del self._kept[workload]
        return len(gone)

    def give_way(self, workload: str, pod_set: str, node: str) -> None:
        """A pod of it is on a node that others chose: one place is not needed any more."""
        kept = [ghost for ghost in self.of(workload) if not pod_set or ghost.pod_set == pod_set]
        names = self.cluster.names
        for ghost in kept:
            holding = self.holding(ghost.key)
            if holding is not None and names[holding.row] == node:
                self.drop(workload, [ghost.key])
                return
        if kept:
            self.drop(workload, [kept[-1].key])

    def homeless(self) -> list[str]:
        """Workloads some of whose places are gone with their nodes: they keep none, and need new ones."""
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
    """One for each pod."""
    topology: TopologyAssignment | None = each.topology
    if topology is None:
        return [{}] * each.count
    return [
        dict(zip(topology.levels, values, strict=False)) for values, count in topology.domains for _ in range(count)
    ]
