"""Measures the work that is lost where pods are stopped: the last criterion among victims that a discipline of KAI or
Volcano treats as equal.

Rejected: a setting. These disciplines choose among equals by name, which means nothing to users.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.engine.pods import PodAllocation


def lost_work(pods: Iterable[PodAllocation], now_s: float) -> int:
    """Milliseconds since the work was saved times GPU thousandths. A pod of which no start is known loses nothing."""
    return sum(round(1000 * pod.who.lost_s(now_s)) * max(pod.charge.gpu_milli, 1) for pod in pods if pod.who.since_s)
