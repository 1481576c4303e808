"""Flow control by the FlowSchemas and PriorityLevelConfigurations that are stored.

A request is classified once it is known who asks for what. It executes at once while its priority level has a free
seat, waits in the queue of its flow if not, and is refused with 429 if the queue is full or the wait too long. Changes
of the configuration count for the requests that come afterwards.

Seats are divided as in Kubernetes, by nominalConcurrencyShares. Nothing is borrowed between levels: in a server that
executes one request at a time, seats only bound how many wait for the disk or for webhooks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from functools import partial
from math import ceil
from time import perf_counter
from types import coroutine
from typing import Any, TypeVar

from multidict import istr

from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.flowcontrol.large_requests import LargeRequests
from shoal.embedded.apiserver.flowcontrol.levels import Flow, Limits, PriorityLevel
from shoal.embedded.apiserver.flowcontrol.schemas import Schema, read_schemas
from shoal.embedded.apiserver.large_work import TOO_MANY
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.status import too_many_requests

T = TypeVar("T")
GROUP = "flowcontrol.apiserver.k8s.io"
_SCHEMAS, _LEVELS = "flowschemas", "prioritylevelconfigurations"
SEATS = 600
"""Of all levels together: Kubernetes' default of 400 reading and 200 writing requests."""
LONGEST_WAIT_S = 15.0
"""In a queue: a quarter of the time that a request may take, as in Kubernetes."""
_MOST_FLOWS = 10_000
_MOST_KINDS_OF_REQUEST = 20_000
_NO_LIMIT = Limits(0, 0, 0)
_NO_HEADERS: dict[str, str] = {}
_RETRY_S = 1
_SCHEMA_HEADER, _LEVEL_HEADER = istr("X-Kubernetes-PF-FlowSchema-UID"), istr("X-Kubernetes-PF-PriorityLevel-UID")


class Seat:
    """The right of one request to be executed, until it is released."""

    __slots__ = ("_flow", "_is_taken", "_released", "used_s")

    def __init__(self, flow: Flow, released: Callable[[], None] | None = None) -> None:
        self._flow = flow
        self._is_taken = True
        self._released = released
        self.used_s = 0.0
        """Processor time."""

    def charge(self, used_s: float) -> None:
        """Of the worker thread, for the request: also for what is left to do when the seat is given back."""
        if self._is_taken:
            self.used_s += used_s
        else:
            self._flow.level.charge(self._flow, used_s)

    def release(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._flow.level.leave(self._flow, self.used_s)
            if self._released is not None:
                self._released()


class FlowControl:
    def __init__(self, reader: Reader, seats: int = SEATS, longest_wait_s: float = LONGEST_WAIT_S) -> None:
        self._large = LargeRequests()
        self._reader = reader
        self._seats = seats
        self._longest_wait_s = longest_wait_s
        self._stamps = (-1, -1)
        self._schemas: tuple[Schema, ...] = ()
        self._levels: dict[str, PriorityLevel] = {}
        self._flows: dict[tuple[str, str], Flow] = {}
        self._classified: dict[tuple[Any, ...], Flow] = {}

    def flow_of(self, actor: Actor, asked: RequestInfo) -> Flow:
        """Where the request belongs."""
        reader = self._reader
        stamps = (reader.stamp(GROUP, _SCHEMAS), reader.stamp(GROUP, _LEVELS))
        if stamps != self._stamps:
            self._read()
            self._stamps = stamps
        key = (
            actor.name,
            actor.groups,
            asked.verb,
            asked.group,
            asked.resource,
            asked.subresource,
            asked.namespace,
            asked.path,
        )
        found = self._classified.get(key)
        if found is None:
            found = self._classify(actor, asked)
            if len(self._classified) >= _MOST_KINDS_OF_REQUEST:
                self._classified.clear()
            self._classified[key] = found
        return found

    async def seat(self, flow: Flow, large_of: str = "") -> Seat:
        """A seat for one request of a flow that is not exempt, as soon as there is one; or 429.

        `large_of`: the user, if the request is large.
        """
        if not large_of:
            await self._seated(flow)
            return Seat(flow)
        try:
            async with asyncio.timeout(self._longest_wait_s):
                await self._large.enter(large_of)
        except TimeoutError:
            flow.level.rejected += 1
            raise too_many_requests(TOO_MANY, _RETRY_S) from None
        try:
            await self._seated(flow)
        except BaseException:
            self._large.leave(large_of)
            raise
        return Seat(flow, partial(self._large.leave, large_of))

    async def _seated(self, flow: Flow) -> None:
        if flow.level.takes(flow):
            return
        turn = flow.level.queued(flow)
        if turn is None:
            raise too_many_requests(TOO_MANY, _RETRY_S)
        try:
            async with asyncio.timeout(self._longest_wait_s):
                await turn
        except TimeoutError:
            flow.level.withdraw(flow, turn)
            flow.level.rejected += 1
            raise too_many_requests(TOO_MANY, _RETRY_S) from None
        except asyncio.CancelledError:
            flow.level.withdraw(flow, turn)
            raise

    def metrics(self) -> Iterator[str]:
        """Under the names that Kubernetes' API server uses."""
        for name, kind, words, value in (
            ("current_executing_seats", "gauge", "Requests that are executed now.", lambda level: level.seats),
            ("current_inqueue_requests", "gauge", "Requests that wait in a queue now.", PriorityLevel.waiting),
            ("dispatched_requests_total", "counter", "Requests that were executed.", lambda level: level.dispatched),
            ("rejected_requests_total", "counter", "Requests that were refused.", lambda level: level.rejected),
        ):
            yield f"# HELP apiserver_flowcontrol_{name} {words}"
            yield f"# TYPE apiserver_flowcontrol_{name} {kind}"
            for level in self._levels.values():
                yield f'apiserver_flowcontrol_{name}{{priority_level="{level.name}"}} {value(level)}'

    def _read(self) -> None:
        objects = {obj["metadata"]["name"]: obj for obj in self._reader.all(GROUP, _LEVELS)}
        specs = {name: obj.get("spec") or {} for name, obj in objects.items()}
        shares = sum(_shares(spec) for spec in specs.values())
        levels: dict[str, PriorityLevel] = {}
        for name, spec in specs.items():
            limits = _limits(spec, self._seats, shares)
            level = self._levels.get(name) or PriorityLevel(name, "", limits)
            level.uid = objects[name]["metadata"].get("uid", "")
            level.limits = limits
            levels[name] = level
        # Flows of levels that are gone keep them until their requests are served.
        self._levels = levels
        self._schemas = read_schemas(self._reader.all(GROUP, _SCHEMAS), levels)
        self._classified.clear()
        self._flows.clear()
        for level in levels.values():
            level.dispatch()

    def _classify(self, actor: Actor, asked: RequestInfo) -> Flow:
        for schema in self._schemas:
            if schema.matches(actor, asked):
                key = (schema.name, schema.flow_of(actor, asked))
                found = self._flows.get(key)
                if found is None:
                    if len(self._flows) >= _MOST_FLOWS:
                        self._forget()
                    level = self._levels[schema.level]
                    found = self._flows[key] = Flow(level, _headers(schema, level))
                return found
        # Without the objects that every cluster has, nothing is limited.
        return Flow(PriorityLevel("", "", _NO_LIMIT), _NO_HEADERS)

    def _forget(self) -> None:
        self._classified.clear()
        self._flows = {key: flow for key, flow in self._flows.items() if flow.seats or flow.waiting}


@coroutine
def metered(work: Coroutine[Any, Any, T], seat: Seat) -> Generator[Any, Any, T]:
    """The result of `work`; the seat is charged the time of each of its steps.

    A step ends where the work begins to wait, so that its time is processor time. What the worker thread does for the
    request comes by `Seat.charge`. Rejected: the clock of the thread. To
    read it is a system call, ten times as slow.
    """
    value: Any = None
    fault: BaseException | None = None
    while True:
        began = perf_counter()
        try:
            if fault is None:
                waits_for = work.send(value)
            else:
                thrown: BaseException = fault
                fault = None
                waits_for = work.throw(thrown)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            seat.used_s += perf_counter() - began
        try:
            value = yield waits_for
        except BaseException as caught:  # noqa: BLE001 - handed on: it is meant for the work
            fault = caught


def _shares(spec: Mapping[str, Any]) -> int:
    part = spec.get("limited") or spec.get("exempt") or {}
    shares = part.get("nominalConcurrencyShares", 30 if "limited" in spec else 0)
    return int(shares)


def _limits(spec: Mapping[str, Any], seats: int, shares: int) -> Limits:
    if spec.get("type") == "Exempt":
        return _NO_LIMIT
    response = (spec.get("limited") or {}).get("limitResponse") or {}
    queuing = response.get("queuing") or {} if response.get("type") == "Queue" else {}
    length = queuing.get("queueLengthLimit", 50) if queuing else 0
    own = max(1, ceil(seats * _shares(spec) / max(1, shares)))
    return Limits(own, length, length * queuing.get("queues", 64))


def _headers(schema: Schema, level: PriorityLevel) -> dict[str, str]:
    return {_SCHEMA_HEADER: schema.uid, _LEVEL_HEADER: level.uid}
