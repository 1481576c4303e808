"""Reads the pods of jobs, and the amounts of the cluster, from the facts of the engine when a session opens."""

from __future__ import annotations

from collections.abc import Container

from shoal.api.resources import PODS
from shoal.engine.asks import counted
from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import MigTiles
from shoal.engine.dra.requests import ClaimAsk, ClaimRef
from shoal.engine.facts import GPU_MILLI
from shoal.engine.pods import PodAllocation, PodState, Waiting
from shoal.engine.queues.disciplines.lost_work import lost_work
from shoal.engine.queues.disciplines.volcano.amounts import GPU, Figures, is_nothing
from shoal.engine.queues.disciplines.volcano.jobs import JobState, PodOfJob

DEVICE_CLASS = "deviceclass/"
"""What the name of a quota of devices of a class begins with."""


class SessionFacts:
    """The reader of one session; requests of equal pods are one object."""

    def __init__(self, cluster: Cluster, now_s: float, protected: Container[str] = ()) -> None:
        """`protected`: queues of which no pod is evicted."""
        self._cluster = cluster
        self._now_s = now_s
        self._protected = protected
        self._amounts: dict[Charge, Figures] = {}
        self.pods: dict[str, PodOfJob] = {}

    def read(self, job: JobState) -> None:
        """Sorts the pods of a job by state."""
        cluster, group = self._cluster, job.gang.facts
        yields = job.queue not in self._protected and (group is None or group.is_preemptible)
        preempts = group is None or group.preempts
        for key in job.gang.running:
            job.total += 1
            if key not in cluster.terminating:
                allocation = cluster.pods[key]
                pod = self.pods[key] = self._running(job.name, key, allocation, yields=yields)
                job.add_ready(pod)
                job.ran += 1
                job.lost_work += lost_work((allocation,), self._now_s)
        for key in job.gang.waiting:
            job.total += 1
            pod = self.pods[key] = self._waiting(job.name, key, cluster.pending[key], yields=yields, preempts=preempts)
            (job.best_effort if pod.is_best_effort else job.pending)[key] = pod
        if job.facts.priority is None:
            job.priority = self._priority(job)

    def _priority(self, job: JobState) -> int:
        group, cluster = job.gang.facts, self._cluster
        if group is not None and group.priority is not None:
            return group.priority
        priorities = [cluster.pods[key].priority for key in job.gang.running]
        return max([*priorities, *(cluster.pending[key].priority for key in job.gang.waiting)], default=0)

    def _running(self, job: str, key: str, allocation: PodAllocation, *, yields: bool) -> PodOfJob:
        who = allocation.who
        amounts = self.amounts_of(allocation.charge)
        yields = yields and who.is_preemptible
        return PodOfJob(
            key,
            job,
            amounts,
            allocation.charge,
            allocation.priority,
            who.order,
            allocation.turn or 0,
            who.role,
            is_preemptible=yields and allocation.state in (PodState.ASSUMED, PodState.BOUND),
            yields=yields,
            is_best_effort=is_nothing(amounts),
            since_s=who.since_s,
        )

    def _waiting(self, job: str, key: str, waiting: Waiting, *, yields: bool, preempts: bool) -> PodOfJob:
        who = waiting.who
        amounts = self.amounts_of(waiting.charge)
        return PodOfJob(
            key,
            job,
            amounts,
            waiting.charge,
            waiting.priority,
            who.order,
            waiting.turn,
            who.role,
            is_preemptible=False,
            yields=yields and who.is_preemptible,
            preempts=preempts and who.preempts,
            is_best_effort=is_nothing(amounts),
        )

    def amounts_of(self, charge: Charge) -> Figures:
        """What a pod is charged for in its queue, including one of the resource `pods`."""
        found = self._amounts.get(charge)
        if found is None:
            ask = charge.ask
            amounts = {name: amount for name, amount in counted(ask).items() if amount}
            if charge.gpu_milli and not isinstance(ask.devices, MigTiles):
                amounts[GPU] = charge.gpu_milli
            for claim in ask.claims:
                self._add_claim(amounts, claim)
            amounts[PODS] = 1
            found = self._amounts[charge] = amounts
        return found

    def _add_claim(self, amounts: dict[str, int], claim: ClaimRef) -> None:
        """Each device that a claim of the pod requests counts for its class; a shared claim counts for every pod."""
        asked: ClaimAsk | None = claim.own
        if asked is None:
            shared = self._cluster.dra.shared.find(claim.shared)
            asked = shared.facts.ask if shared is not None and shared.facts is not None else None
        for request in asked.requests if asked is not None else ():
            option = request.options[0]
            if option.admin:
                continue
            name = DEVICE_CLASS + class_of(option.matching)
            amounts[name] = amounts.get(name, 0) + (option.count or 1)

    def total(self) -> dict[str, float]:
        """What the nodes offer together."""
        cluster = self._cluster
        sums = cluster.total[: cluster.rows][cluster.alive[: cluster.rows]].sum(axis=0).tolist()
        total: dict[str, float] = {name: sums[column] for column, name in cluster.resources.names.items()}
        total[GPU] = sums[GPU_MILLI]
        return total


def class_of(matching: str) -> str:
    """The device class that the name of a set of devices begins with."""
    return matching.removeprefix("class ").partition(" ")[0]
