"""Victim selection on its own: flavors and modes are given, who has to go is asked."""

from __future__ import annotations

from collections.abc import Callable

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource, Usage, WorkloadFacts
from shoal.engine.queues.flavors.assigner import assign
from shoal.engine.queues.readiness import stamp_of
from shoal.engine.queues.state import Queues
from shoal.engine.queues.tas.place import TopologyRefusal, place
from shoal.engine.queues.victims.search import PreemptionRequest, find_victims, oracle
from shoal.engine.queues.workloads import totals_of

from .answers import Answer
from .case import Case, Given
from .facts import queues_of
from .line import local_use_of
from .places import requests_of
from .workloads import cluster_queue_of, hold_all, waiting_of

_FITS = "Fit"


def decide(case: Case) -> Answer:
    queues = queues_of(case)
    hold_all(case, queues)
    (facts, *_) = waiting_of(case)
    queue = cluster_queue_of(queues, case, facts)
    stamp_s = stamp_of(queues.settings, facts)
    local_use = local_use_of(queues)
    usage, needs = _given(case.assignment_given, facts)
    if not case.assignment_given:
        found = assign(queues, queue, facts, totals_of(facts), oracle(queues, stamp_s, local_use))
        usage, needs = found.usage, found.to_preempt
    want = PreemptionRequest(
        queue=queue,
        facts=facts,
        usage=usage,
        needs=needs,
        stamp_s=stamp_s,
        fits=_proof(queues, queue, facts, {flavor for flavor, _ in usage}),
        local_usage=local_use,
    )
    victims = find_victims(queues, want)
    fresh = {victim.held.key: victim.reason.value for victim in victims if not victim.held.evicted}
    return {
        "preempted": list(fresh),
        "preemptionReasons": fresh,
        # Somebody who has been told already is waited for, and not told again.
        "preemptionTargetCount": len(victims),
    }


def _given(given: dict[str, dict[str, Given]], facts: WorkloadFacts) -> tuple[Usage, frozenset[FlavorResource]]:
    """What the assignment uses, and the part of it for which somebody has to go."""
    usage: Usage = {}
    needs = set()
    for total in totals_of(facts):
        for resource, choice in given.get(total.pod_set.name, {}).items():
            fr = (choice.flavor, resource)
            usage[fr] = usage.get(fr, 0) + total.requests.get(resource, 0)
            if choice.mode != _FITS:
                needs.add(fr)
    return usage, frozenset(needs)


def _proof(queues: Queues, queue: ClusterQueue, facts: WorkloadFacts, flavors: set[str]) -> Callable[[], bool] | None:
    """Where a flavor with a topology is used, its domains have to hold the pods as well."""
    requests = [each for each in requests_of(queues, queue, facts) if each.flavor in flavors]
    return (lambda: not isinstance(place(queues, requests), TopologyRefusal)) if requests else None
