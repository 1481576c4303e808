"""Proves quota and placement together: a workload is admitted only if its pods have places, which it then gets.

The pods of an admission are put in line and placed on the ledger, all or none. Where it fails nothing is left of the
trial. Where no node of the flavors is known there is nothing to try: quota alone decides, and the message says so.

Rejected: counting free GPUs per flavor. Fragmented nodes, devices, taints and neighbours are what makes a gang wait
for hours behind a quota that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain
from typing import Protocol

from shoal.engine.cluster import Cluster
from shoal.engine.events import PodArrived, PodGone
from shoal.engine.facts import PODS
from shoal.engine.fitter import Fitter
from shoal.engine.gangs.attempt import place_gang
from shoal.engine.intake import Intake
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Place
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.state import Queues
from shoal.engine.reasons import Code

_MOST_PODS = 150_000
"""Of one workload: more than that no cluster has."""
PodsOf = Callable[[WorkloadFacts, QuotaAssignment], list[PodArrived]]
"""The pods that an admission lets loose, with what its flavors and its topology demand of nodes."""
RunningOf = Callable[[str], Collection[str]]
"""The pods that a workload has on nodes."""
TerminatingPods = Callable[[], Collection[str]]
"""Pods of workloads that gave their quota back: what they still hold comes free by itself."""


class Proven(Enum):
    """The result of a trial."""

    PLACED = auto()
    """Every pod has a place, and keeps it."""
    UNKNOWN = auto()
    """No node of its flavors is known."""
    LATER = auto()
    """There are places for all once pods have ended whose workloads hold nothing any more."""
    NO_CAPACITY = auto()


Claim = tuple[WorkloadFacts, QuotaAssignment]
"""A workload for which others are on their way out, and what it will get."""


class Prover(Protocol):
    """Finds places for the pods of an admission; `Proof` is the real one."""

    def admit(self, facts: WorkloadFacts, admission: QuotaAssignment, claims: Sequence[Claim] = ()) -> Proven:
        """Take places for all pods, or none; what others claim stays possible."""
        ...

    def would_fit(
        self, facts: WorkloadFacts, admission: QuotaAssignment, ended: Iterable[str], claims: Sequence[Claim] = ()
    ) -> bool:
        """Whether there would be places without some workloads, besides what others claim."""
        ...


@dataclass(slots=True)
class Proof:
    """Runs trials on one cluster. The placement was renewed at the start of the cycle."""

    queues: Queues
    intake: Intake
    placement: Placement
    pods_of: PodsOf
    running_of: RunningOf
    seed: int = 0
    terminating: TerminatingPods = tuple
    placed: list[Place] = field(default_factory=list)
    """The placements since this list was taken."""

    def admit(self, facts: WorkloadFacts, admission: QuotaAssignment, claims: Sequence[Claim] = ()) -> Proven:
        """Place all pods of the admission, or none."""
        if not self.is_known(admission):
            return Proven.UNKNOWN
        if not self._has_slots(facts, admission):
            return Proven.NO_CAPACITY
        ledger = Ledger(self.cluster)
        pods = self._add_pending(facts, admission)
        fits = False
        try:
            fits = self._place_all(ledger, pods) and self._leaves_capacity(ledger, claims)
        finally:
            # Also of a trial that breaks nothing is left.
            if not fits:
                ledger.rollback()
                self._take_out(pods)
        if not fits:
            is_later = bool(self.terminating()) and self.would_fit(facts, admission, (), claims)
            return Proven.LATER if is_later else Proven.NO_CAPACITY
        names, allocations = self.cluster.names, self.cluster.pods
        for pod in ledger.placed_since(0):
            self.placed.append(Place(pod, names[allocations[pod].row], allocations[pod].grant))
        ledger.commit()
        return Proven.PLACED

    def would_fit(
        self, facts: WorkloadFacts, admission: QuotaAssignment, ended: Iterable[str], claims: Sequence[Claim] = ()
    ) -> bool:
        """Whether all pods would have places without some workloads. Nothing is left of the trial."""
        if not self.is_known(admission):
            return True
        return self._all_fit(Ledger(self.cluster), [*claims, (facts, admission)], ended)

    def _leaves_capacity(self, ledger: Ledger, claims: Sequence[Claim]) -> bool:
        """Whether workloads that wait for terminating pods would fit after these have gone."""
        going = [key for key, held in self.queues.held.items() if held.evicted]
        return not claims or self._all_fit(ledger, claims, going)

    def _all_fit(self, ledger: Ledger, claims: Sequence[Claim], ended: Iterable[str]) -> bool:
        """Whether all would have places together; the ledger is as before."""
        mark, brought, fits = ledger.mark(), list[str](), True
        try:
            for pod in chain(self.terminating(), chain.from_iterable(map(self.running_of, ended))):
                if pod in self.cluster.pods:
                    ledger.evict(pod)
            for facts, admission in claims:
                if not fits or not self.is_known(admission):
                    continue
                fits = self._has_slots(facts, admission)
                if fits:
                    pods = self._add_pending(facts, admission)
                    brought += pods
                    fits = self._place_all(ledger, pods)
        finally:
            ledger.rollback(mark)
            self._take_out(brought)
        return fits

    def is_known(self, admission: QuotaAssignment) -> bool:
        """Whether nodes of every flavor of the admission are known."""
        flavors = {flavor for each in admission.pod_sets if each.count for flavor in each.flavors.values()}
        return bool(flavors) and all(map(self._has_nodes, flavors))

    def _has_slots(self, facts: WorkloadFacts, admission: QuotaAssignment) -> bool:
        """Whether the nodes can hold so many pods at all: else they are not even counted one by one. Users may write
        a number of two billion."""
        wanted = sum(each.count - facts.reclaimable.get(each.name, 0) for each in admission.pod_sets)
        return wanted <= min(int(self.cluster.total[:, PODS].sum()), _MOST_PODS)

    @property
    def cluster(self) -> Cluster:
        return self.intake.cluster

    def _has_nodes(self, name: str) -> bool:
        flavor = self.queues.flavors.get(name)
        if flavor is None:
            return False
        wanted = flavor.labels.items()
        return any(wanted <= node.labels.items() for node in self.queues.nodes.values())

    def _add_pending(self, facts: WorkloadFacts, admission: QuotaAssignment) -> list[str]:
        pods = self.pods_of(facts, admission)
        keys = [pod.key for pod in pods]
        try:
            for pod in pods:
                self.intake.apply(pod)
        except Exception:
            self._take_out(keys)
            raise
        return keys

    def _take_out(self, pods: list[str]) -> None:
        for pod in pods:
            self.intake.apply(PodGone(pod))

    def _place_all(self, ledger: Ledger, pods: list[str]) -> bool:
        """The most demanding first: what asks for much has the fewest places to go."""
        cluster = self.cluster
        fitter = Fitter(self.placement, ledger, self.seed)
        if any(pod not in cluster.pending for pod in pods):
            return False
        # A stable sort: pods that ask for the same keep their order.
        largest_first = sorted(pods, key=lambda pod: -cluster.pending[pod].charge.ask.gpu_milli)
        return all(pod not in cluster.pending or self._place(fitter, pod) for pod in largest_first)

    def _place(self, fitter: Fitter, pod: str) -> bool:
        """Place a pod, or as much of its gang as has to go together."""
        gang = self.cluster.gangs.find(self.cluster.pending[pod].who.group)
        if gang is None or gang.facts is None:
            return fitter.pod(pod)
        while pod in self.cluster.pending:
            if place_gang(fitter, gang) is not Code.PLACED:
                return False
        return True
