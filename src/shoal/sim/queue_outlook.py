"""Computes what the queues would decide now about all waiting workloads, by quota alone and with no workload ending.

Found by letting the discipline decide on facts of its own. `decide` computes placements; this module
answers "why is this one not running" for quotas.
"""

from __future__ import annotations

from shoal.engine.queues.kueue import Kueue
from shoal.views.decision import Reason
from shoal.views.queue_workloads import ADMISSIBLE
from shoal.views.waits import wait_reason

MOST_CYCLES = 10_000


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
    for waiting in kueue.states():
        local = kueue.queues.local_queues.get(waiting.queue)
        queue = None if local is None else kueue.queues.cluster_queues.get(local.cluster_queue)
        behind = ""
        if queue is not None and queue.facts.strategy == "StrictFIFO" and waiting.state != "none":
            head = heads.setdefault(queue.name, waiting.workload)
            behind = head if head != waiting.workload else ""
        reasons[waiting.workload] = wait_reason(waiting, behind)
    return reasons
