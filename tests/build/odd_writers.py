"""What is made ready before a pod is bound, as a test wants it: held up, or broken.

writer = Waiting("p")
scheduler = start_scheduler(cluster, prepare=writing_by(writer))
writer.go_on("n1")
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from build.live_schedulers import LiveScheduler, Prepare
from shoal.controllers.scheduler.executor import SchedulerExecutor
from shoal.controllers.scheduler.pod_protocols import Writer
from shoal.engine.plan import Place
from shoal.store.watched.pod_views import PodView
from shoal.units.errors import ConflictError

_LOOK_S = 0.25


def writing_by(writer: Writer) -> Prepare:
    """PlanExecutor that make ready by this, instead of the usual ones."""

    def prepare(one: LiveScheduler) -> None:
        one.loop.executors = (SchedulerExecutor(one.context, one.loop, one.loop.watched, writer),)

    return prepare


class _Plain:
    """Nothing is made ready, and nothing is taken back."""

    async def free(self, sight: PodView, /) -> None: ...


class Waiting(_Plain):
    """Pods whose names begin so wait on their node until they may go on, as for a volume that is being made."""

    def __init__(self, start: str) -> None:
        self.nodes: list[str] = []
        """Where somebody has waited, in order."""
        self.at_once = self.most_at_once = 0
        self._start = start
        self._open: set[str] = set()

    def go_on(self, node: str) -> None:
        self._open.add(node)

    async def prepare(self, sight: PodView, place: Place, is_wanted: Callable[[], bool], /) -> Mapping[str, str]:
        if not sight.name.startswith(self._start):
            return {}
        self.nodes.append(place.node)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            while place.node not in self._open:
                if not is_wanted():
                    raise ConflictError("nobody wants it there")
                await asyncio.sleep(_LOOK_S)
        finally:
            self.at_once -= 1
        return {}


class Deaf(Waiting):
    """The same, and does not notice that it is not wanted any more."""

    async def prepare(self, sight: PodView, place: Place, is_wanted: Callable[[], bool], /) -> Mapping[str, str]:
        return await super().prepare(sight, place, lambda: True)


class Broken(_Plain):
    """Raises at the first calls, so many."""

    def __init__(self, times: int, error: Exception) -> None:
        self.calls = 0
        self._times = times
        self._error = error

    async def prepare(self, _view: PodView, _place: Place, _is_wanted: Callable[[], bool], /) -> Mapping[str, str]:
        self.calls += 1
        if self.calls <= self._times:
            raise self._error
        return {}
