"""Topology placement on its own: no quota, no flavors to choose."""

from __future__ import annotations

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import PODS, PodSetAdmission, QuotaAssignment, WorkloadFacts
from shoal.engine.queues.flavors.eligibility import asks_for_topology
from shoal.engine.queues.state import Queues
from shoal.engine.queues.tas.place import Request, TopologyRefusal, place
from shoal.engine.queues.tas.replace import replace
from shoal.engine.queues.topology_facts import TopologyAssignment
from shoal.engine.queues.workloads import Total, totals_of

from .answers import Answer, admission_answer, domains_of
from .case import Case
from .facts import queues_of
from .workloads import cluster_queue_of, hold_all, waiting_of


def decide(case: Case) -> Answer:
    queues = queues_of(case)
    hold_all(case, queues)
    (facts, *_) = waiting_of(case)
    queue = cluster_queue_of(queues, case, facts)
    requests = requests_of(queues, queue, facts)
    found = place(queues, requests)
    if isinstance(found, TopologyRefusal):
        return {
            "admitted": {},
            "inadmissible_or_pending": [facts.key],
            "failure": _failure(found),
            "partialPodSetAssignments": _partial(queues, requests, found),
        }
    admission = QuotaAssignment(queue.name, tuple(_admitted(each, found) for each in requests))
    return {
        "admitted": {facts.key: admission_answer(admission)},
        "inadmissible_or_pending": [],
        "failure": {},
        "partialPodSetAssignments": {},
    }


def replaced(case: Case) -> Answer:
    """Who holds domains on failed nodes, and where it goes instead."""
    queues = queues_of(case)
    hold_all(case, queues)
    admitted, evicted = {}, []
    for held in [held for held in queues.held.values() if held.facts.unhealthy_nodes]:
        found = replace(queues, held)
        if isinstance(found, str):
            evicted.append(held.key)
        else:
            admitted[held.key] = admission_answer(found)
    return {"admitted": admitted, "reassigned": list(admitted), "evicted": dict.fromkeys(evicted, "NodeFailures")}


def requests_of(queues: Queues, queue: ClusterQueue, facts: WorkloadFacts) -> list[Request]:
    """Pod sets go to the queue's first flavor with a topology; who asks for none is spread wherever there is room."""
    names = (flavor.name for group in queue.facts.groups for flavor in group.flavors)
    flavor = next((name for name in names if queues.forest(name) is not None), None)
    if flavor is None:
        return []
    return [
        Request(each, flavor, each.count, implied=not asks_for_topology(each.pod_set.topology))
        for each in totals_of(facts)
    ]


def _failure(found: TopologyRefusal) -> Answer:
    return {"podSet": found.pod_set, "fits": found.fits, "wanted": found.wanted, "unit": found.unit}


def _partial(queues: Queues, requests: list[Request], misfit: TopologyRefusal) -> Answer:
    """Where the pod sets before the one that found no place would have gone."""
    names = [each.total.pod_set.name for each in requests]
    before = requests[: names.index(misfit.pod_set)] if misfit.pod_set in names else []
    found = place(queues, before) if before else {}
    return {} if isinstance(found, TopologyRefusal) else {name: domains_of(each) for name, each in found.items()}


def _admitted(request: Request, found: dict[str, TopologyAssignment]) -> PodSetAdmission:
    total: Total = request.total
    resources = [name for name in total.requests if name != PODS]
    return PodSetAdmission(
        name=total.pod_set.name,
        count=request.count,
        flavors=dict.fromkeys(resources, request.flavor),
        usage={name: total.requests[name] for name in resources},
        topology=found.get(total.pod_set.name),
    )
