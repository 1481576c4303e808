"""The scheduler as a controller among others, for the pods of one scheduler name or of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shoal.controllers.default_scheduler.scheduler import Scheduler
from shoal.store.live.context import Context, Controller

DEFAULT_NAME = "default-scheduler"


def default_scheduler(context: Context) -> Controller:
    """For pods that do not say who schedules them."""
    return Scheduler(context, frozenset({DEFAULT_NAME}))


def scheduler_for(names: Iterable[str]) -> Callable[[Context], Controller]:
    """A maker of one scheduler for the pods of all these names; Events come in the name that the pod gives."""
    chosen = frozenset(names)
    return lambda context: Scheduler(context, chosen)
