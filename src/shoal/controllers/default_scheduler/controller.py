"""Runs the scheduler as a controller."""

from __future__ import annotations

from shoal.controllers.default_scheduler.scheduler import Scheduler
from shoal.store.live.context import Context, Controller

DEFAULT_NAME = "default-scheduler"


def default_scheduler(context: Context) -> Controller:
    """The scheduler for pods with the default `schedulerName`."""
    return Scheduler(context, frozenset({DEFAULT_NAME}))
