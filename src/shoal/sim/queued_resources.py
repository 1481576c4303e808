"""Tries a similar resource for a queued workload that requests one which its ClusterQueue does not cover.

Guarantees: the change is a remedy only if the workload is then admitted and its pods find places on the nodes. A
resource that a node has is not taken for a misspelled one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from msgspec import structs

from shoal.engine.events import PodGone
from shoal.engine.queues.facts import PodSet, WorkloadFacts
from shoal.engine.queues.remedies import Remedy as QuotaRemedy
from shoal.engine.queues.remedies import RemedyKind, admission_with_quota, is_admitted_as
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.remedies import Objects, RemedyTrial, WaitingSubject
from shoal.sim.remedies.resource_candidates import renaming_remedy, with_resource_renamed
from shoal.units.near_texts import nearest_name
from shoal.views.remedies import Remedy

_NOT_COVERED = "coveredResources"


class QueuedResource:
    """A resource of a workload, and the nearest that its queue covers."""

    def __init__(
        self, rounds: QueueRounds, facts: WorkloadFacts, objects: Objects, found: Sequence[QuotaRemedy]
    ) -> None:
        self._rounds = rounds
        self._facts = facts
        self._objects = objects
        queues = rounds.kueue.queues
        local = queues.local_queues.get(facts.queue)
        queue = None if local is None else queues.cluster_queues.get(local.cluster_queue)
        changes = found[0].changes if found and found[0].kind is RemedyKind.CORRECT else ()
        absent = [str(change.after) for change in changes if change.field == _NOT_COVERED]
        self.name = absent[0] if len(absent) == 1 and queue is not None else ""
        offered = {name for node in objects.node_facts.values() for name, amount in node.allocatable.items() if amount}
        self.near = ""
        self._queue = queue.name if queue is not None else ""
        if queue is not None and self.name and self.name not in offered:
            self.near = nearest_name(self.name, queue.group_of)

    def words(self) -> str:
        """Facts."""
        return f"ClusterQueue {self._queue} has no quota of {self.name}, and no node has it; did you mean {self.near}?"

    def tried(self, trial: RemedyTrial) -> list[Remedy]:
        kueue, rounds = self._rounds.kueue, self._rounds
        pod_sets = tuple(_renamed(each, self.name, self.near) for each in self._facts.pod_sets)
        corrected = structs.replace(self._facts, pod_sets=pod_sets)
        if not is_admitted_as(kueue, self._facts.key, corrected, now_s=rounds.now_s):
            return []
        pods = tuple(rounds.pods.each_of(self._facts.key))[:1] or (f"{self._facts.key}/0",)
        if not self._finds_places(corrected, trial):
            return []
        self._objects.adopt(self._facts.key, pods)
        return [renaming_remedy(self._objects, pods, self.name, self.near)]

    def _finds_places(self, corrected: WorkloadFacts, trial: RemedyTrial) -> bool:
        kueue, rounds = self._rounds.kueue, self._rounds
        with ExitStack() as stack:
            kueue.put_workload(corrected, rounds.now_s)
            stack.callback(kueue.put_workload, self._facts, rounds.now_s)
            admission = admission_with_quota(kueue, self._facts.key, rounds.now_s)
            if admission is None:
                return False
            loose = rounds.pods.let_loose(corrected, admission)
            for pod in loose:
                ask = with_resource_renamed(pod.ask, self.name, self.near)
                rounds.apply(structs.replace(pod, ask=ask))
                stack.callback(rounds.apply, PodGone(pod.key))
            rounds.placement.renew()
            stack.callback(rounds.placement.renew)
            keys = tuple(pod.key for pod in loose)
            return bool(keys) and trial.runs(WaitingSubject(keys[0], keys, is_whole=True))


def _renamed(pod_set: PodSet, old: str, new: str) -> PodSet:
    def renamed(amounts: dict[str, int]) -> dict[str, int]:
        return {new if name == old else name: amount for name, amount in amounts.items()}

    on_node = None if pod_set.node_requests is None else renamed(pod_set.node_requests)
    return structs.replace(pod_set, requests=renamed(pod_set.requests), node_requests=on_node)
