"""Writes `nominatedNodeName` of pending pods while their nomination holds.

The engine renews each nomination in every cycle. Only differences from the pod are written, and a nomination that a
complete cycle did not renew is removed. No state is needed across restarts, because the pod has its nomination.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from shoal.client.context import Context
from shoal.client.refusals import NotFoundError
from shoal.controllers.scheduler.pod_conditions import PodConditionWriter
from shoal.controllers.scheduler.pod_protocols import PodViews
from shoal.controllers.scheduler.write_pool import WritePool
from shoal.units.errors import ConflictError


class Nominations:
    def __init__(self, context: Context, watched: PodViews, pool: WritePool) -> None:
        self._watched = watched
        self._pool = pool
        self._reporter = PodConditionWriter(context)
        self._wanted: dict[str, str] = {}
        """Pod -> node; empty where a nomination was removed that the pod may still have."""
        self._writing: set[str] = set()

    def take(self, nominated: Mapping[str, str], placed: Collection[str], *, is_cut: bool) -> list[str]:
        """Called after each cycle; returns the pods with a new nomination."""
        if not nominated and not self._wanted:
            return []
        fresh = [pod for pod, node in nominated.items() if self._wanted.get(pod) != node]
        # A cycle that was cut short has not tried all pods.
        kept = self._wanted if is_cut else dict.fromkeys(self._wanted, "")
        wanted = {pod: node for pod, node in {**kept, **nominated}.items() if pod not in placed}
        self._wanted = {pod: node for pod, node in wanted.items() if self._look(pod, node)}
        return fresh

    def take_back(self, pod: str) -> None:
        """The pod was refused: a nomination by an earlier process does not hold either."""
        view = self._watched.view(pod)
        if view is not None and view.nominated and pod not in self._wanted:
            self._wanted[pod] = ""
            self._look(pod, "")

    def _look(self, pod: str, node: str) -> bool:
        """Returns whether the entry must be kept."""
        view = self._watched.view(pod)
        if view is None or view.node:
            return False
        if view.nominated == node:
            return bool(node)
        if pod not in self._writing:
            self._writing.add(pod)
            self._pool.add(partial(self._write, pod))
        return True

    async def _write(self, pod: str) -> None:
        """Write until the pod has the current nomination."""
        written: str | None = None
        try:
            while (node := self._wanted.get(pod)) is not None and node != written:
                view = self._watched.view(pod)
                if view is None or view.node or view.nominated == node:
                    return
                await self._reporter.nominated(view, node)
                written = node
        except (NotFoundError, ConflictError):
            # The pod was deleted, or another pod has its name.
            return
        finally:
            self._writing.discard(pod)
