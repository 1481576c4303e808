"""Applies the present faults of one server: `before` to every request, `refuse` to those that arrive over HTTP.

Delays are time of the machine, not of the cluster: a cluster whose clock runs sixty times as fast has the same network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.server_faults.refused_requests import RefusedRequests
from shoal.embedded.apiserver.server_faults.slow_api import SlowApi

Obj = dict[str, Any]


class FaultCounts(msgspec.Struct):
    """What happened since the server started."""

    slow_api: int = 0
    expire_watches: int = 0
    delayed_requests: int = 0
    refused_requests: int = 0


class Faults:
    def __init__(self, expire: Callable[[], None], draw: Callable[[], float]) -> None:
        """`expire` makes every watch lose its place; `draw` gives numbers between 0 and 1."""
        self._expire = expire
        self._draw = draw
        self._slow: SlowApi | None = None
        self._ends_s = 0.0
        self._refused: RefusedRequests | None = None
        self._left = 0
        self.counts = FaultCounts()

    async def before(self, verb: str) -> None:
        """Called before a request is served: waits as long as it has to."""
        slow = self._present()
        if slow is None:
            return
        delay_s = slow.delay_s(verb, self._draw())
        if delay_s:
            self.counts.delayed_requests += 1
            await asyncio.sleep(delay_s)

    def check(self, asked: RequestInfo) -> None:
        """Raise the refusal of a request from a client over HTTP, if a fault refuses it."""
        refused = self._refused
        if refused is None or not refused.matches(asked):
            return
        self._left -= 1
        if self._left == 0:
            self._refused = None
        self.counts.refused_requests += 1
        raise refused.error(asked)

    def refuse(self, refused: RefusedRequests) -> None:
        """Refuse matching requests from now on; replaces a present fault of this kind."""
        self._refused = refused if refused.count else None
        self._left = refused.count

    def slow_down(self, how: SlowApi) -> None:
        """In place of what slows it down already."""
        if how.is_none:
            self.end()
            return
        self._slow = how
        self._ends_s = asyncio.get_running_loop().time() + how.seconds
        self.counts.slow_api += 1

    def expire_watches(self) -> None:
        self.counts.expire_watches += 1
        self._expire()

    def end(self) -> None:
        """End all faults. Requests that are already delayed continue to wait."""
        self._slow = None
        self._refused = None

    def shown(self) -> Obj:
        """What is on, and what was."""
        slow = self._present()
        found: Obj = {"slow-api": None, "refuse-requests": None, "counts": msgspec.to_builtins(self.counts)}
        if slow is not None:
            left_s = self._ends_s - asyncio.get_running_loop().time()
            found["slow-api"] = {**msgspec.to_builtins(slow), "seconds_left": round(left_s, 1)}
        if self._refused is not None:
            found["refuse-requests"] = {**msgspec.to_builtins(self._refused), "count_left": self._left}
        return found

    def metrics(self) -> list[str]:
        """For the server's own `/metrics`."""
        counts = self.counts
        return [
            "# HELP shoal_faults_total Faults that were asked for.",
            "# TYPE shoal_faults_total counter",
            f'shoal_faults_total{{fault="slow-api"}} {counts.slow_api}',
            f'shoal_faults_total{{fault="expire-watches"}} {counts.expire_watches}',
            "# HELP shoal_faults_delayed_requests_total Requests that a fault made wait.",
            "# TYPE shoal_faults_delayed_requests_total counter",
            f"shoal_faults_delayed_requests_total {counts.delayed_requests}",
            "# HELP shoal_faults_refused_requests_total Requests that a fault refused.",
            "# TYPE shoal_faults_refused_requests_total counter",
            f"shoal_faults_refused_requests_total {counts.refused_requests}",
        ]

    def _present(self) -> SlowApi | None:
        if self._slow is not None and asyncio.get_running_loop().time() >= self._ends_s:
            self._slow = None
        return self._slow
