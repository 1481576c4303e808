"""An Api that reports its requests: their results and durations, bindings, and requests that RBAC refused.

It is next to the server, below the caches, so that each request counts once. Rejected: counting inside the
transport. A client in the process of the embedded server has none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from time import perf_counter
from types import TracebackType

import msgspec

from shoal.client.clock import Clock
from shoal.client.item import Item, Listed, Obj
from shoal.client.kind import PODS, Kind
from shoal.client.port import EVERYTHING, GENTLY, Api, Batches, Deletion, Patch, Select, ServedKind
from shoal.client.refusals import NO_ANSWER, BusyError, ForbiddenError, RefusedError
from shoal.telemetry.forbidden import ForbiddenReporter
from shoal.telemetry.observers import SchedulingObserver
from shoal.telemetry.requests import RequestMetrics
from shoal.telemetry.traces import Spans
from shoal.units.errors import ShoalError

_BINDING = "binding"
_CREATED, _OK = "201", "200"
_RBAC_VERBS = {"apply": "patch", "binding": "create", "eviction": "create", "token": "create"}


class Observers(msgspec.Struct, frozen=True):
    """The observers; each may be missing."""

    requests: RequestMetrics | None = None
    forbidden: ForbiddenReporter | None = None
    scheduling: Callable[[], SchedulingObserver | None] = lambda: None
    """Called at each binding: a process that becomes leader again has a new scheduling loop."""
    spans: Spans | None = None


class ObservedApi:
    def __init__(self, api: Api, clock: Clock, observers: Observers) -> None:
        self._api = api
        self._clock = clock
        self._requests = observers.requests
        self._forbidden = observers.forbidden
        self._scheduling = observers.scheduling
        self.spans = observers.spans

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        with self._measured("get", kind):
            return await self._api.get(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        with self._measured("list", kind):
            return await self._api.list(kind, namespace, select)

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        try:
            batches = self._api.watch(kind, since, namespace, select)
            async with aclosing(batches):
                async for batch in batches:
                    self._allowed("watch", kind)
                    yield batch
        except ShoalError as error:
            self.failed("watch", error)
            raise
        self._counted("watch", _OK)

    async def create(self, kind: Kind, obj: Obj) -> Item:
        with self._measured("create", kind, "", _CREATED):
            return await self._api.create(kind, obj)

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        with self._measured("update", kind, subresource):
            return await self._api.update(kind, obj, subresource)

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        with self._measured("apply" if patch.how == "apply" else "patch", kind, subresource):
            return await self._api.patch(kind, namespace, name, patch, subresource)

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        with self._measured("delete", kind):
            return await self._api.delete(kind, namespace, name, how)

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        scheduling = self._scheduling() if subresource == _BINDING and kind == PODS else None
        with self._measured(subresource, kind, subresource, _CREATED):
            if scheduling is None:
                return await self._api.post(kind, namespace, name, subresource, obj)
            return await self._bind(scheduling, namespace, name, obj)

    async def _bind(self, scheduling: SchedulingObserver, namespace: str, name: str, obj: Obj) -> Obj:
        key = f"{namespace}/{name}"
        scheduling.binding()
        try:
            answer = await self._api.post(PODS, namespace, name, _BINDING, obj)
        except BaseException as error:
            scheduling.not_bound(key, is_refused=isinstance(error, RefusedError))
            raise
        scheduling.bound(key, self._clock.seconds())
        return answer

    async def served(self) -> tuple[ServedKind, ...]:
        return await self._api.served()

    async def close(self) -> None:
        await self._api.close()

    # internals

    def _measured(self, verb: str, kind: Kind, subresource: str = "", code: str = _OK) -> _MeasuredRequest:
        return _MeasuredRequest(self, verb, kind, subresource, code)

    def answered(self, verb: str, kind: Kind, subresource: str, code: str, seconds: float) -> None:
        if self._requests is not None:
            self._requests.done(verb, code, seconds)
        if self._forbidden:
            self._allowed(verb, kind, subresource)

    def _allowed(self, verb: str, kind: Kind, subresource: str = "") -> None:
        """A request that RBAC refused before is allowed now."""
        if self._forbidden:
            asked = _RBAC_VERBS.get(verb, verb)
            self._forbidden.allowed(asked, kind.group, f"{kind.plural}/{subresource}" if subresource else kind.plural)

    def failed(self, verb: str, error: ShoalError) -> None:
        if isinstance(error, ForbiddenError) and self._forbidden is not None:
            self._forbidden.report(error, self._clock.seconds())
            error.is_reported = bool(error.verb)
        if isinstance(error, BusyError) and error.reason == NO_ANSWER and self._forbidden is not None:
            self._forbidden.unanswered(self._clock.seconds())
        code = error.code if isinstance(error, RefusedError | BusyError) else 0
        self._counted(verb, str(code) if code else "none")

    def _counted(self, verb: str, code: str) -> None:
        if self._requests is not None:
            self._requests.requests.of(verb, code).inc()


class _MeasuredRequest:
    """Measures one request. A class and no generator: thousands of requests are measured per second."""

    __slots__ = ("_api", "_began", "_code", "_kind", "_subresource", "_verb")

    def __init__(self, api: ObservedApi, verb: str, kind: Kind, subresource: str, code: str) -> None:
        self._api, self._verb, self._kind, self._subresource, self._code = api, verb, kind, subresource, code

    def __enter__(self) -> None:
        self._began = perf_counter()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        seconds = perf_counter() - self._began
        if self._api.spans is not None:
            attributes = {"k8s.verb": self._verb, "k8s.group": self._kind.group, "k8s.resource": self._resource()}
            self._api.spans.done(f"{self._verb} {self._resource()}", seconds, attributes, str(error or ""))
        if error is None:
            self._api.answered(self._verb, self._kind, self._subresource, self._code, seconds)
        elif isinstance(error, ShoalError):
            self._api.failed(self._verb, error)

    def _resource(self) -> str:
        return f"{self._kind.plural}/{self._subresource}" if self._subresource else self._kind.plural
