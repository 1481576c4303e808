"""Runs the scheduler as a controller."""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.embedded.scheduler.scheduler import MAX_WRITES, Scheduler

DEFAULT_NAME = "default-scheduler"


def default_scheduler(context: Context, max_writes: int = MAX_WRITES) -> Controller:
    """The scheduler for pods with the default `schedulerName`."""
    return Scheduler(context, frozenset({DEFAULT_NAME}), max_writes)
