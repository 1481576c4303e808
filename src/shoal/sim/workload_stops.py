"""Tells which workloads have to be preempted before a waiting one is admitted: until then it is not admitted by now."""

from __future__ import annotations

from shoal.engine.queues.decisions import Preempted
from shoal.engine.queues.quota_tree import CohortNode
from shoal.sim.queue_rounds import QueueRecord, QueueRounds
from shoal.sim.remedies import Objects
from shoal.sim.rounds import Rounds
from shoal.views.enumeration import few
from shoal.views.explanation import Explanation

_MOST_NAMES = 4


class WorkloadStops:
    """The preemptions of the rounds so far, in order."""

    def __init__(self) -> None:
        self._all: list[Preempted] = []
        self._before: dict[str, int] = {}

    def see(self, record: QueueRecord) -> None:
        """Workloads are admitted before others are preempted in a round."""
        for each in record.admitted:
            self._before[each.workload] = len(self._all)
        self._all += record.preempted

    def before(self, workload: str) -> list[Preempted]:
        """Those before the workload was admitted last."""
        return self._all[: self._before.get(workload, 0)]


def tell_stops(explanation: Explanation, rounds: Rounds, stops: WorkloadStops, key: str, objects: Objects) -> None:
    """Adds what was preempted for it, and for others of its cohort."""
    if not isinstance(rounds, QueueRounds):
        return
    workload = key if key in rounds.workloads else rounds.pods.workload_of(key) or ""
    own, others = [], []
    for each in stops.before(workload):
        victim = objects.workload_words(each.workload)
        if each.beneficiary == workload:
            own.append(victim)
        elif _root(rounds, each.workload) is _root(rounds, workload):
            others.append(f"{victim} is preempted for {objects.workload_words(each.beneficiary)}")
    explanation.add("preempted", few(own, _MOST_NAMES))
    explanation.add("after", few(others, _MOST_NAMES))


def _root(rounds: QueueRounds, workload: str) -> CohortNode | None:
    queues, facts = rounds.kueue.queues, rounds.workloads.get(workload)
    local = None if facts is None else queues.local_queues.get(facts.queue)
    queue = None if local is None else queues.cluster_queues.get(local.cluster_queue)
    return None if queue is None else queue.root
