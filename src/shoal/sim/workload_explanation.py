"""Explains a workload, and its pods until they are admitted: its requests, whether it was admitted and with what, what
was preempted, and why it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.facts import WorkloadFacts
from shoal.sim.queue_limits import QueueLimits
from shoal.sim.queue_rounds import QueueRecord, QueueRounds
from shoal.sim.queued_help import tell_queued_help
from shoal.sim.remedies import NO_OBJECTS, Objects
from shoal.sim.rounds import MOST_ROUNDS, Record, Rounds
from shoal.views.asks import amount_words
from shoal.views.explanation import Explanation
from shoal.views.waits import unproven_sentence, wait_reason

GoOn = Callable[[], bool]


def queue_names(rounds: Rounds) -> set[str]:
    """Workloads and their pods."""
    if not isinstance(rounds, QueueRounds):
        return set()
    return {*rounds.workloads, *(pod for name in rounds.workloads for pod in rounds.pods.each_of(name))}


def most_of(rounds: Rounds) -> int:
    """How many rounds it may take."""
    return rounds.enough if isinstance(rounds, QueueRounds) else MOST_ROUNDS


def explain_workload(
    rounds: Rounds, last: Record | None, key: str, go_on: GoOn, objects: Objects = NO_OBJECTS
) -> Explanation | None:
    """None where the pods tell the story themselves. `go_on`: whether to look for more that would help."""
    if not isinstance(rounds, QueueRounds) or key in rounds.cluster.pods or key in rounds.cluster.pending:
        return None
    workload = key if key in rounds.workloads else rounds.pods.workload_of(key)
    if workload is None:
        return None
    facts = rounds.workloads[workload]
    title = f"workload {workload}" if workload == key else f"{key} of workload {workload}"
    held = rounds.kueue.queues.held.get(workload)
    if held is not None:
        explanation = Explanation(title, "is admitted" if held.facts.admitted else "has quota and waits for its checks")
        _tell_ask(explanation, facts)
        explanation.add("holds", *_holding(held))
        explanation.add("proof", unproven_sentence(rounds.unproven()) if rounds.unproven() else "")
        explanation.add("pods", objects.pod_names(rounds.pods.running_of(workload)))
        return explanation
    stand = last.waiting if isinstance(last, QueueRecord) else []
    waiting = next((each for each in stand if each.workload == workload), None)
    if waiting is None:
        return Explanation(title, "is gone")
    explanation = _waiting(title, facts, waiting, rounds)
    tell_queued_help(explanation, rounds, facts, go_on, objects)
    return explanation


def _waiting(title: str, facts: WorkloadFacts, waiting: StillWaiting, rounds: QueueRounds) -> Explanation:
    reason = wait_reason(waiting, unproven=rounds.unproven(), limits=QueueLimits(rounds.kueue).of(waiting))
    explanation = Explanation(title, "waits", reason.code)
    _tell_ask(explanation, facts)
    when = "in the order of its queue" if waiting.state == "active" else "when something changes"
    explanation.add("turn", f"priority {facts.priority:,}; is tried again {when}")
    explanation.add("short", reason.message)
    explanation.add("outlook", reason.help)
    return explanation


def _tell_ask(explanation: Explanation, facts: WorkloadFacts) -> None:
    explanation.add("queue", facts.queue or "none")
    explanation.add("asks", *_asks(facts))


def _asks(facts: WorkloadFacts) -> Iterator[str]:
    for each in facts.pod_sets:
        amounts = ", ".join(amount_words(name, amount) for name, amount in sorted(each.requests.items()))
        least = f" (at least {each.min_count:,})" if each.min_count is not None else ""
        yield f"{each.count:,} x {each.name}{least}, each {amounts or 'nothing'}"


def _holding(held: AdmittedWorkload) -> Iterator[str]:
    for each in held.admission.pod_sets:
        flavors = ", ".join(sorted(set(each.flavors.values()))) or "no flavor"
        yield f"{each.count:,} x {each.name} of {flavors} in {held.admission.cluster_queue}"
