"""The flavor assigner on its own: what preemption could do is answered by the case, not found out."""

from __future__ import annotations

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource, WorkloadFacts
from shoal.engine.queues.flavors.assigner import assign
from shoal.engine.queues.flavors.assignment import PodSetChoice
from shoal.engine.queues.flavors.modes import Mode, Oracle
from shoal.engine.queues.flavors.modes import PreemptionPossibility as Possibility
from shoal.engine.queues.topologies import Topologies
from shoal.engine.queues.workloads import totals_of

from .answers import Answer, admission_answer
from .case import Case
from .facts import queues_of
from .workloads import cluster_queue_of, hold_all, waiting_of

_POSSIBILITIES = {"nocandidates": Mode.NO_CANDIDATES, "preempt": Mode.PREEMPT, "reclaim": Mode.RECLAIM}
_MODES = {Mode.FIT: "Fit", Mode.NO_FIT: "NoFit"}
"""The others all need somebody to go, which is `Preempt`."""


def decide(case: Case) -> Answer:
    queues = queues_of(case)
    hold_all(case, queues)
    (facts, *_) = waiting_of(case)
    queue = cluster_queue_of(queues, case, facts)
    assignment = assign(queues, queue, facts, totals_of(facts), oracle_of(case))
    Topologies(queues).complete(queue, facts, assignment)
    answer: Answer = {
        "assignmentMode": mode_name(assignment.mode),
        "borrowingLevel": assignment.borrow,
        "assignment": {each.total.pod_set.name: _pod_set(each) for each in assignment.pod_sets},
        "admitted": {},
        "inadmissible_or_pending": [],
    }
    if assignment.mode is Mode.FIT:
        answer["admitted"] = {facts.key: admission_answer(assignment.admission(queue.name))}
    else:
        answer["inadmissible_or_pending"] = [facts.key]
    return answer


def oracle_of(case: Case) -> Oracle:
    """The case's answers. What it does not list, and all where everything is possible: somebody would go, from other
    queues as long as the workload's own stays within its quota."""
    given = case.preemption_oracle
    listed: dict[FlavorResource, Possibility] = {}
    for_all = None
    if isinstance(given, str):
        for_all = _POSSIBILITIES.get(_plain(given))
    else:
        for each in given or ():
            mode = _POSSIBILITIES[_plain(each.possibility)]
            listed[each.flavor, each.resource] = Possibility(mode, each.borrowing_level_after)

    def answer(queue: ClusterQueue, _: WorkloadFacts, fr: FlavorResource, amount: int) -> Possibility:
        likely = Mode.PREEMPT if queue.borrows_with(fr, amount) else Mode.RECLAIM
        return listed.get(fr) or Possibility(likely if for_all is None else for_all, 0)

    return answer


def _plain(possibility: str) -> str:
    return possibility.lower().replace("-", "")


def mode_name(mode: Mode) -> str:
    return _MODES.get(mode, "Preempt")


def _pod_set(choice: PodSetChoice) -> Answer:
    return {
        "count": choice.total.count,
        "flavors": {
            resource: {"flavor": each.flavor, "mode": mode_name(each.mode)} for resource, each in choice.flavors.items()
        },
    }
