"""Computes what the queues would decide now about all waiting workloads: by quota, with no workload ending, and then
whether the pods of those that would be admitted find places on nodes.

Found by letting the discipline decide on facts of its own. `decide` computes placements; this module
answers "why is this one not running" for quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait
from shoal.sim.queue_limits import QueueLimits
from shoal.sim.queue_rounds import QueueRecord, QueueRounds
from shoal.sim.rounds import Rounds
from shoal.sim.workload_explanation import most_of
from shoal.views.decision import Reason
from shoal.views.queue_workloads import ADMISSIBLE
from shoal.views.waits import wait_reason

MOST_CYCLES = 10_000
_HAS_PLACES = "It would be admitted now: its quota is free, and its pods find places."


def outlook(kueue: Kueue, now_s: float) -> dict[str, Reason]:
    """By workload. The discipline is used up: it holds afterwards what it has admitted."""
    before = set(kueue.queues.held)
    reasons = {}
    for _ in range(MOST_CYCLES):
        kueue.cycle(now_s)
        if kueue.is_idle:
            break
    for key in kueue.queues.held:
        if key not in before:
            reasons[key] = Reason(ADMISSIBLE, "By quota alone it would be admitted now.", "")
    heads: dict[str, str] = {}
    limits = QueueLimits(kueue)
    for waiting in kueue.states():
        local = kueue.queues.local_queues.get(waiting.queue)
        queue = None if local is None else kueue.queues.cluster_queues.get(local.cluster_queue)
        behind = ""
        if queue is not None and queue.facts.strategy == "StrictFIFO" and waiting.state != "none":
            head = heads.setdefault(queue.name, waiting.workload)
            behind = head if head != waiting.workload else ""
        reasons[waiting.workload] = wait_reason(waiting, behind, limits=limits.of(waiting))
    return reasons


def with_places(reasons: Mapping[str, Reason], rounds: Rounds, go_on: Callable[[], bool]) -> dict[str, Reason]:
    """The reasons, with what the rounds decide of workloads that quota alone would admit, as `shoal why` has it. The
    rounds are used up. `go_on`: whether to decide further rounds; without a decision a reason stays as it is."""
    found = dict(reasons)
    admissible = {key for key, reason in reasons.items() if reason.code == ADMISSIBLE}
    if not admissible:
        return found
    waiting: dict[str, StillWaiting] = {}
    admitted: set[str] = set()
    at_once: set[str] = set()
    """Admitted before any other had to end."""
    has_ended = False
    for record in rounds.each(most_of(rounds)):
        if isinstance(record, QueueRecord):
            admitted.update(each.workload for each in record.admitted)
            at_once.update(() if has_ended else admitted)
            has_ended = has_ended or bool(record.ended or record.evicted or record.preempted or record.stopped)
            waiting.update((each.workload, each) for each in record.waiting)
            admitted -= {each.workload for each in record.preempted}
        if not go_on():
            break
    if not isinstance(rounds, QueueRounds):
        return found
    unproven, limits = rounds.unproven(), QueueLimits(rounds.kueue)
    for key in admissible:
        if key in admitted:
            found[key] = found[key] if unproven or key not in at_once else Reason(ADMISSIBLE, _HAS_PLACES, "")
        elif key in waiting and waiting[key].why is not Wait.PENDING:
            found[key] = wait_reason(waiting[key], unproven=unproven, limits=limits.of(waiting[key]))
    return found
