"""Resolves minimum runtimes on the tree of queues: how long a job runs before work may yield for others.

Counted from the job's last start. A protected job may still give up what it has above its minimum.
"""

from __future__ import annotations

from shoal.engine.queues.disciplines.kai.fair_queues import QueueNode, meeting_point


def preempt_min_runtime_s(victim: QueueNode, default_s: float = 0.0) -> float:
    """Of jobs of the same queue: the nearest value on the way up, or else the default."""
    return next((s for node in victim.path if (s := node.facts.preempt_min_runtime_s) is not None), default_s)


def reclaim_min_runtime_s(
    claimant: QueueNode, victim: QueueNode, default_s: float = 0.0, *, of_victim: bool = False
) -> float:
    """Of jobs of different queues: the value of the victim's ancestor just below the lowest common one, or of that
    ancestor's ancestors, or else the default; `of_victim`: from the victim's own queue upwards."""
    start = victim if of_victim else meeting_point(claimant, victim)[1]
    return next((s for node in start.path if (s := node.facts.reclaim_min_runtime_s) is not None), default_s)
