"""Evicts the pods of nodes in the background, one task for each node.

An eviction that is in progress is not started again. Its result is kept until the state of the node is written, so that
a failed write does not repeat it. After a restart of the process, the state of the node starts it again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Sequence

import msgspec

from shoal.client.clock import Clock
from shoal.client.draining import Eviction
from shoal.client.item import Item
from shoal.client.port import Api
from shoal.operator.upgrades.decision import NodeAction
from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.upgrades")
_AGAIN_S = 5.0
"""The delay before a failed request is tried again."""


class RemovalRequest(msgspec.Struct, frozen=True):
    action: NodeAction
    pods: tuple[Item, ...]
    nodes: tuple[str, ...]
    """The nodes on which these pods run."""
    timeout_s: int
    """0: without a limit."""


class RemovalResult(msgspec.Struct, frozen=True):
    succeeded: bool
    reason: str


class PodRemovals:
    def __init__(self, api: Api, clock: Clock, ended: Callable[[], None]) -> None:
        self._api = api
        self._clock = clock
        self._ended = ended
        self._tasks: dict[str, tuple[NodeAction, asyncio.Task[None]]] = {}
        self._results: dict[str, tuple[NodeAction, RemovalResult]] = {}

    def is_known(self, node: str, action: NodeAction) -> bool:
        """Whether this action is in progress there, or has ended and its result was not taken yet."""
        return any(node in known and known[node][0] is action for known in (self._tasks, self._results))

    def result(self, node: str, action: NodeAction) -> RemovalResult | None:
        known = self._results.get(node)
        return known[1] if known is not None and known[0] is action else None

    def start(self, node: str, request: RemovalRequest) -> None:
        self.forget(node)
        task = asyncio.ensure_future(self._run(node, request))
        self._tasks[node] = (request.action, task)

    def refuse(self, node: str, action: NodeAction, reason: str) -> None:
        """The result of an action that cannot start."""
        self.forget(node)
        self._results[node] = (action, RemovalResult(succeeded=False, reason=reason))

    def forget(self, node: str) -> None:
        """Also ends an action that is in progress."""
        self._results.pop(node, None)
        known = self._tasks.pop(node, None)
        if known is not None:
            known[1].cancel()

    def keep_only(self, nodes: Collection[str]) -> None:
        """End the actions on all other nodes: another client has changed their state."""
        for node in [*self._tasks, *self._results]:
            if node not in nodes:
                self.forget(node)

    async def close(self) -> None:
        tasks = [task for _, task in self._tasks.values()]
        for node in tuple(self._tasks):
            self.forget(node)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, node: str, request: RemovalRequest) -> None:
        ends_s = self._clock.seconds() + request.timeout_s if request.timeout_s else math.inf
        left: Sequence[str]
        while True:
            eviction = Eviction(self._api, self._clock, lambda line: _log.info("node %s: %s", node, line))
            try:
                left = await eviction.run(request.nodes, request.pods, ends_s - self._clock.seconds())
                break
            except ShoalError as error:
                if self._clock.seconds() >= ends_s:
                    left = [str(error)]
                    break
                _log.info("node %s: %s; the eviction is tried again", node, error)
                await self._clock.sleep(_AGAIN_S)
        what = f"{len(request.pods)} pods have left" if request.pods else "no pod has to leave"
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        reason = f"after {request.timeout_s} s {left[0]}{more}" if left else what
        self._tasks.pop(node, None)
        self._results[node] = (request.action, RemovalResult(not left, reason))
        self._ended()
