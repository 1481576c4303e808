"""Runs the scheduler as a controller."""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.embedded.scheduler.scheduler import Scheduler

DEFAULT_NAME = "default-scheduler"


def default_scheduler(context: Context) -> Controller:
    """The scheduler for pods with the default `schedulerName`."""
    return Scheduler(context, frozenset({DEFAULT_NAME}))
