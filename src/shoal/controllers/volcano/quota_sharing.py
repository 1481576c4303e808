"""Decides which groups may use quota and which have to return some, by what their queues deserve.

The decisions come from the quota tree of the engine (`engine/queues`), with the queues converted by `queue_quotas.py`.
A unit that gets quota was tried on the nodes and takes its nodes at once. If the nodes are too fragmented for it, the
scheduler looks for nodes as for any pod, and the unit keeps its quota meanwhile. A preemption was simulated to help,
and always covers a whole unit.

Rejected: ordering groups by the share of their queues and evicting the pods in the way. Without one ledger for granting
and reclaiming quota, the evicted pods would be the first to be admitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.events import Event, NodeFacts, NodeGone, NodeSeen, PodArrived, PodGone
from shoal.engine.plan import Evict, Place
from shoal.engine.queues.disciplines.volcano.admission_units import AdmissionUnit, split_by_own_quota
from shoal.engine.queues.disciplines.volcano.optional_placement import OptionalPlacementProof
from shoal.engine.queues.disciplines.volcano.queue_quotas import QueueQuotas, total_capacity
from shoal.engine.queues.disciplines.volcano.queue_tree import QueueTree
from shoal.engine.queues.facts import LocalQueueFacts, QuotaAssignment, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.proof import Proof
from shoal.engine.queues.state import Fact, Queues
from shoal.engine.queues.topology_facts import QueueNode

_MAX_CYCLES = 32
RETRY_EVICTION_S = 30.0
"""The time after which an eviction without effect is repeated."""


class SharingResult(msgspec.Struct):
    """The decisions of one round."""

    placed: list[Place] = []
    released: list[str] = []
    """Pods that may be scheduled."""
    evicted: list[Evict] = []
    to_requeue: list[str] = []
    """Preempted groups that have no node yet."""
    stuck: set[str] = set()
    """Queues with waiting units."""


class _PutUnit(msgspec.Struct, frozen=True):
    unit: AdmissionUnit
    evicted_s: float | None = None
    is_preemptible: bool = True


class QuotaSharing:
    def __init__(self, scheduling: SchedulerState, event_of: Callable[[str], PodArrived | None]) -> None:
        """`event_of` returns the event of a held pod."""
        self._scheduling = scheduling
        self._event_of = event_of
        self._nodes: dict[str, NodeFacts] = {}
        self._tree: QueueTree | None = None
        self._quotas: QueueQuotas | None = None
        self._is_stale = True
        """Whether nodes changed since the quotas were computed."""
        self._kueue: Kueue | None = None
        self._proof: OptionalPlacementProof | None = None
        self._units: dict[str, AdmissionUnit] = {}
        self._put_units: dict[str, _PutUnit] = {}
        """What the quota tree knows of each unit."""
        self._put_facts: dict[tuple[type[Fact], str], Fact] = {}
        self._evicting: dict[str, tuple[float, str]] = {}
        """Preempted unit -> since when, and for which group."""

    def hear(self, event: Event) -> bool:
        """Returns whether the capacity of the cluster changed."""
        if isinstance(event, NodeSeen):
            before = self._nodes.get(event.node.name)
            self._nodes[event.node.name] = event.node
            is_changed = before is None or (before.allocatable, before.gpus) != (
                event.node.allocatable,
                event.node.gpus,
            )
        elif isinstance(event, NodeGone):
            is_changed = self._nodes.pop(event.name, None) is not None
        else:
            return False
        self._is_stale = self._is_stale or is_changed
        return is_changed

    def quotas(self, tree: QueueTree) -> QueueQuotas | None:
        """None if no queue declares how quota is shared."""
        if tree is not self._tree or self._is_stale:
            self._tree, self._is_stale = tree, False
            self._quotas = QueueQuotas(tree, total_capacity(self._nodes.values()))
            if self._quotas.is_configured:
                self._put_queues(self._quotas)
            else:
                self._kueue = None
        return self._quotas if self._kueue is not None else None

    def has_queue(self, queue: str) -> bool:
        return self._kueue is not None and queue in self._kueue.queues.cluster_queues

    def round(self, quotas: QueueQuotas, units: Iterable[AdmissionUnit], now_s: float, found: SharingResult) -> None:
        """Adds each decision to `found` as soon as it is made, so that a fault does not lose it."""
        kueue = self._kueue
        if kueue is None:
            return
        self._scheduling.placement.renew()
        within_own, others = self._update(kueue, quotas, {unit.key: unit for unit in units}, now_s)
        if within_own:
            # Units that borrow are considered after all units within their own quota.
            for unit in others:
                self._drop_unit(kueue, unit.key, now_s)
            self._put_waiting(kueue, quotas, within_own, now_s)
            self._run_cycles(kueue, now_s, found)
        self._put_waiting(kueue, quotas, others, now_s)
        self._run_cycles(kueue, now_s, found)
        for key, (since_s, beneficiary) in list(self._evicting.items()):
            if now_s >= since_s + RETRY_EVICTION_S:
                self._evict(key, beneficiary, now_s, found)

    def is_preempted(self, pod: str) -> bool:
        """Whether the pod was preempted and still exists."""
        return any(pod in self._units[key].active for key in self._evicting if key in self._units)

    def next_s(self) -> float | None:
        return min((since_s + RETRY_EVICTION_S for since_s, _ in self._evicting.values()), default=None)

    def rebuild(self, fault_s: float) -> None:
        """Rebuilds the quota tree after a fault at `fault_s`. Placements that were not returned are undone, and
        evictions since then are repeated, because the scheduler may not have received them."""
        for place in self._proof.take() if self._proof is not None else ():
            self._scheduling.intake.apply(PodGone(place.pod))
        for key, (since_s, beneficiary) in self._evicting.items():
            if since_s >= fault_s:
                self._evicting[key] = fault_s - RETRY_EVICTION_S, beneficiary
        self._tree = self._quotas = self._kueue = self._proof = None

    # internals

    def _run_cycles(self, kueue: Kueue, now_s: float, found: SharingResult) -> None:
        for _ in range(_MAX_CYCLES):
            if kueue.is_idle:
                break
            decisions = kueue.cycle(now_s, self._proof if self._nodes else None)
            placed = self._proof.take() if self._proof is not None else []
            found.placed += placed
            placed_pods = {place.pod for place in placed}
            for admitted in decisions.admitted:
                found.released += [pod for pod in self._units[admitted.workload].waiting if pod not in placed_pods]
            for preempted in decisions.preempted:
                beneficiary = self._units.get(preempted.beneficiary)
                self._evict(preempted.workload, beneficiary.group if beneficiary is not None else "", now_s, found)
            for waiting in decisions.waiting:
                if (unit := self._units.get(waiting.workload)) is not None:
                    found.stuck.add(unit.queue)

    def _put_waiting(self, kueue: Kueue, quotas: QueueQuotas, units: Iterable[AdmissionUnit], now_s: float) -> None:
        for unit in units:
            self._put_unit(kueue, quotas, _PutUnit(unit), now_s)

    def _update(
        self, kueue: Kueue, quotas: QueueQuotas, units: Mapping[str, AdmissionUnit], now_s: float
    ) -> tuple[list[AdmissionUnit], list[AdmissionUnit]]:
        """Updates the active units; returns the units waiting within their queue's own quota, and the others."""
        for key in self._units.keys() - units.keys():
            self._drop_unit(kueue, key, now_s)
            self._evicting.pop(key, None)
        self._units = dict(units)
        for unit in units.values():
            if not unit.active:
                self._evicting.pop(unit.key, None)
                continue
            since_s = self._evicting[unit.key][0] if unit.key in self._evicting else None
            self._put_unit(kueue, quotas, _PutUnit(unit, since_s, self._is_preemptible(quotas, unit)), now_s)
        return split_by_own_quota(quotas, units.values())

    def _put_unit(self, kueue: Kueue, quotas: QueueQuotas, now: _PutUnit, now_s: float) -> None:
        key = now.unit.key
        if self._put_units.get(key) != now:
            self._put_units[key] = now
            kueue.put_workload(now.unit.facts(quotas, now.evicted_s, is_preemptible=now.is_preemptible), now_s)

    def _drop_unit(self, kueue: Kueue, key: str, now_s: float) -> None:
        self._put_units.pop(key, None)
        kueue.drop_workload(key, now_s)

    def _is_preemptible(self, quotas: QueueQuotas, unit: AdmissionUnit) -> bool:
        pods = self._scheduling.cluster.pods
        return quotas.is_reclaimable(unit.queue) and all(
            pods[pod].who.is_preemptible for pod in unit.active if pod in pods
        )

    def _evict(self, key: str, beneficiary: str, now_s: float, found: SharingResult) -> None:
        """Evicts the unit; with the minimum of a group, all its other pods are evicted, too."""
        unit, pods = self._units[key], self._scheduling.cluster.pods
        evicted_units = [
            one for one in self._units.values() if one.active and (one is unit or (key == unit.group == one.group))
        ]
        for one in evicted_units:
            self._evicting[one.key] = now_s, beneficiary
            active = [pod for pod in one.active if pod in pods]
            found.evicted += [Evict(pod, beneficiary) for pod in active if not pods[pod].is_terminating]
        if not any(pod in pods for one in evicted_units for pod in one.active):
            found.to_requeue.append(unit.group)

    def _put_queues(self, quotas: QueueQuotas) -> None:
        kueue = self._kueue
        if kueue is None or kueue.queues.settings != quotas.settings:
            kueue = self._kueue = Kueue(Queues(quotas.settings))
            scheduling = self._scheduling
            proof = Proof(kueue.queues, scheduling.intake, scheduling.placement, self._pods_of, self._running_of)
            self._proof = OptionalPlacementProof(proof)
            self._put_units, self._put_facts = {}, {}
        found: list[Fact] = [*(QueueNode(name) for name in self._nodes), *quotas.facts()]
        named = {(type(fact), fact.key if isinstance(fact, LocalQueueFacts) else fact.name): fact for fact in found}
        for kind, name in self._put_facts.keys() - named.keys():
            kueue.queues.drop(kind, name)
        for at, fact in named.items():
            if self._put_facts.get(at) != fact:
                kueue.queues.put(fact)
        self._put_facts = named
        # The usage of each unit depends on the resources that are shared.
        self._put_units.clear()

    def _pods_of(self, facts: WorkloadFacts, _: QuotaAssignment) -> list[PodArrived]:
        unit = self._units.get(facts.key)
        events = (self._event_of(pod) for pod in unit.waiting) if unit is not None else ()
        return [event for event in events if event is not None]

    def _running_of(self, workload: str) -> Sequence[str]:
        unit = self._units.get(workload)
        return unit.active if unit is not None else ()
