"""The scheduler as a controller among others."""

from __future__ import annotations

from shoal.controllers.default_scheduler.scheduler import Scheduler
from shoal.store.live.context import Context, Controller

DEFAULT_NAME = "default-scheduler"


def default_scheduler(context: Context) -> Controller:
    """For pods that do not say who schedules them."""
    return Scheduler(context, frozenset({DEFAULT_NAME}))
