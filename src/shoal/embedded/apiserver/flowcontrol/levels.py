"""A priority level: how many requests it executes at once, and which one of those that wait is next.

Each flow has a queue of its own, where Kubernetes deals flows to shared queues: a server with few users need not.
The flow that was charged the least processor time is served next, since processor time is what flows compete for in a
server that executes one request at a time. Charges count from the moment when requests begin to wait; a flow that
begins to wait later starts at the charge of the flow served last, so that a pause gives no credit.

One flow executes `FLOW_SEATS` requests at most, whatever is free: requests that wait for a webhook then keep only the
requests of their own flow waiting, and the requests of one flow that are ready together delay others by milliseconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

FLOW_SEATS = 32


class Limits(NamedTuple):
    """What a PriorityLevelConfiguration allows."""

    seats: int
    """Requests that are executed at once; 0: there is no limit (exempt)."""
    queue_length: int
    """Requests of one flow that may wait; 0: none, they are refused."""
    most_waiting: int
    """Requests that may wait in all."""


class Flow:
    """The requests of one user (or namespace) in one FlowSchema."""

    __slots__ = ("charged_s", "contention", "headers", "is_exempt", "level", "seats", "waiting")

    def __init__(self, level: PriorityLevel, headers: dict[str, str]) -> None:
        self.level = level
        self.headers = headers
        """Sent with each answer: the FlowSchema and the priority level by their UIDs."""
        self.is_exempt = not level.limits.seats
        self.seats = 0
        self.waiting: deque[asyncio.Future[None]] = deque()
        self.charged_s = 0.0
        self.contention = 0
        """In which contention of the level the charge was made."""


class PriorityLevel:
    __slots__ = ("_contention", "_served_s", "_waiting", "dispatched", "limits", "name", "rejected", "seats", "uid")

    def __init__(self, name: str, uid: str, limits: Limits) -> None:
        self.name = name
        self.uid = uid
        self.limits = limits
        self.seats = 0
        """Taken now."""
        self.dispatched = 0
        self.rejected = 0
        self._waiting: set[Flow] = set()
        self._contention = 0
        self._served_s = 0.0
        """The charge of the flow that was served last."""

    def waiting(self) -> int:
        return sum(len(flow.waiting) for flow in self._waiting)

    def takes(self, flow: Flow) -> bool:
        """Whether a request of the flow may begin at once; it has a seat then."""
        if self.seats >= self.limits.seats or flow.seats >= FLOW_SEATS or flow.waiting:
            return False
        self._seat(flow)
        return True

    def queued(self, flow: Flow) -> asyncio.Future[None] | None:
        """Done when the request has a seat; None if it is refused."""
        limits = self.limits
        if len(flow.waiting) >= limits.queue_length or self.waiting() >= limits.most_waiting:
            self.rejected += 1
            return None
        if not self._waiting:
            self._contention += 1
            self._served_s = 0.0
        if flow.contention != self._contention:
            flow.contention = self._contention
            flow.charged_s = self._served_s
        elif not flow.waiting:
            flow.charged_s = max(flow.charged_s, self._served_s)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        flow.waiting.append(turn)
        self._waiting.add(flow)
        return turn

    def leave(self, flow: Flow, used_s: float) -> None:
        """A request is executed and used so much processor time."""
        self.seats -= 1
        flow.seats -= 1
        self.charge(flow, used_s)
        if self._waiting:
            self.dispatch()

    def charge(self, flow: Flow, used_s: float) -> None:
        if flow.contention == self._contention:
            flow.charged_s += used_s

    def withdraw(self, flow: Flow, turn: asyncio.Future[None]) -> None:
        """A request does not wait any longer."""
        if turn.done() and not turn.cancelled():
            self.leave(flow, 0.0)
            return
        if turn in flow.waiting:
            flow.waiting.remove(turn)
        if not flow.waiting:
            self._waiting.discard(flow)

    def dispatch(self) -> None:
        # A level may have become exempt while requests waited.
        while not self.limits.seats or self.seats < self.limits.seats:
            ready = [flow for flow in self._waiting if flow.seats < FLOW_SEATS]
            if not ready:
                return
            flow = min(ready, key=lambda one: one.charged_s)
            turn = flow.waiting.popleft()
            if not flow.waiting:
                self._waiting.discard(flow)
            if not turn.done():
                self._served_s = flow.charged_s
                self._seat(flow)
                turn.set_result(None)

    def _seat(self, flow: Flow) -> None:
        self.seats += 1
        flow.seats += 1
        self.dispatched += 1
