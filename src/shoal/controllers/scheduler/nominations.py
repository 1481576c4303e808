"""Nominations: the node that a waiting pod was promised, written on the pod as long as the promise holds.

The engine gives every promise anew in every round; only what differs from the pod is written, and a promise that a
whole round did not renew is taken back. Nothing is remembered across restarts, because the pod says what it was told.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from shoal.client.context import Context
from shoal.client.refusals import NotFoundError
from shoal.controllers.scheduler.known import PodViews
from shoal.controllers.scheduler.pod_conditions import PodReporter
from shoal.controllers.scheduler.write_pool import WritePool
from shoal.units.errors import ConflictError


class Nominations:
    def __init__(self, context: Context, world: PodViews, pool: WritePool) -> None:
        self._world = world
        self._pool = pool
        self._teller = PodReporter(context)
        self._wanted: dict[str, str] = {}
        """Pod -> node; empty where a promise was taken back and the pod may still say otherwise."""
        self._writing: set[str] = set()

    def take(self, nominated: Mapping[str, str], placed: Collection[str], *, is_cut: bool) -> list[str]:
        """After each round; the pods that were promised something which they were not promised before."""
        if not nominated and not self._wanted:
            return []
        fresh = [pod for pod, node in nominated.items() if self._wanted.get(pod) != node]
        # A round that was cut has not got to everybody.
        kept = self._wanted if is_cut else dict.fromkeys(self._wanted, "")
        wanted = {pod: node for pod, node in {**kept, **nominated}.items() if pod not in placed}
        self._wanted = {pod: node for pod, node in wanted.items() if self._look(pod, node)}
        return fresh

    def take_back(self, pod: str) -> None:
        """There is no place for it: what an earlier process promised it does not hold either."""
        sight = self._world.sight(pod)
        if sight is not None and sight.nominated and pod not in self._wanted:
            self._wanted[pod] = ""
            self._look(pod, "")

    def _look(self, pod: str, node: str) -> bool:
        """Whether there is anything left to remember."""
        sight = self._world.sight(pod)
        if sight is None or sight.node:
            return False
        if sight.nominated == node:
            return bool(node)
        if pod not in self._writing:
            self._writing.add(pod)
            self._pool.add(partial(self._write, pod))
        return True

    async def _write(self, pod: str) -> None:
        """Until the pod says what holds by then."""
        written: str | None = None
        try:
            while (node := self._wanted.get(pod)) is not None and node != written:
                sight = self._world.sight(pod)
                if sight is None or sight.node or sight.nominated == node:
                    return
                await self._teller.nominated(sight, node)
                written = node
        except (NotFoundError, ConflictError):
            # Gone, or another pod has its name.
            return
        finally:
            self._writing.discard(pod)
