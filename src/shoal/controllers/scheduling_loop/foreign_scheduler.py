"""Holds back pods that name the scheduler of another project while that project runs in the cluster.

Pods of manifests for Volcano or KAI are scheduled by Shoal where neither runs. Where the project runs, or is installed
later, its pods are not in the facts, so that two schedulers do not place the same pod; when it is removed they are
added.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.events import Event, PodArrived, PodBound, PodGone, PodRejected
from shoal.engine.plan import Evict, Place


class ForeignSchedulerGuard:
    def __init__(
        self, scheduling: SchedulerState, scheduler: str, is_there: Callable[[], bool], onward: Callable[[Event], None]
    ) -> None:
        """`onward` receives pods that are no longer held."""
        self._scheduling = scheduling
        self._scheduler = scheduler
        self._is_there = is_there
        self._was_there = False
        self._is_to_look = False
        """Whether the queue may contain pods of the other project."""
        self._onward = onward
        self._kept: dict[str, PodArrived] = {}

    async def synced(self) -> None:
        """Needs no caches; the next discipline checks whether the project runs."""

    def hear(self, event: Event) -> bool:
        if isinstance(event, PodArrived):
            if self._is_there() and self._is_theirs(event.key):
                self._kept[event.key] = event
                self._is_to_look |= self._is_in_facts(event.key)
                return True
            self._kept.pop(event.key, None)
        elif isinstance(event, PodRejected):
            self._is_to_look = self._is_to_look or self._is_there()
        elif isinstance(event, PodBound | PodGone):
            self._kept.pop(event.key, None)
        return False

    def round(self, now_s: float) -> Sequence[Place | Evict]:  # noqa: ARG002 - the signature is the protocol's
        is_there = self._is_there()
        if is_there and (self._is_to_look or not self._was_there):
            self._take_out()
        elif not is_there and self._kept:
            kept, self._kept = self._kept, {}
            for event in kept.values():
                self._onward(event)
        self._was_there, self._is_to_look = is_there, False
        return ()

    def next_s(self) -> float | None:
        return None

    @property
    def is_idle(self) -> bool:
        return self._is_there() == self._was_there and not self._is_to_look

    async def run(self) -> None:
        """Writes nothing."""
        await asyncio.Event().wait()

    # internals

    def _is_theirs(self, pod: str) -> bool:
        view = self._scheduling.watched.view(pod)
        return view is not None and view.scheduler == self._scheduler

    def _is_in_facts(self, pod: str) -> bool:
        return pod in self._scheduling.cluster.pending or pod in self._scheduling.cluster.nominated

    def _take_out(self) -> None:
        """Remove the pending pods, including those that wait for preemptions; decided placements are still carried
        out.
        """
        cluster = self._scheduling.cluster
        for pod in [pod for pod in (*cluster.pending.in_order(), *cluster.nominated) if self._is_theirs(pod)]:
            view = self._scheduling.watched.view(pod)
            if view is not None and isinstance(view.event, PodArrived):
                self._scheduling.intake.apply(PodGone(pod))
                self._kept[pod] = view.event
