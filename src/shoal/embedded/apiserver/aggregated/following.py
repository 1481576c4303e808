"""APIServices kept true: their condition, what they add to discovery, and the ones of this server's own groups.

A change of an APIService, a Service or its endpoints has every APIService that it may concern judged again at once;
the rest is asked every half minute, since a server can fail without a write. Nothing runs, and nothing
is asked, while there are only local ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.aggregated.availability import judged
from shoal.embedded.apiserver.aggregated.local import (
    GROUP,
    HOME,
    MANAGED,
    available,
    condition,
    is_available,
    local_services,
)
from shoal.embedded.apiserver.aggregated.server import Server, Servers, server_of
from shoal.embedded.apiserver.calls import SERVER, Call
from shoal.embedded.apiserver.rest.changing import change
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.creating import creation
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.record import Write

Obj = dict[str, Any]
_ROUND_S = 30.0
_SERVICES = frozenset({("", "services"), ("", "endpoints"), ("discovery.k8s.io", "endpointslices")})
_DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")
_log = logging.getLogger("shoal.cluster")


class AggregatedDiscovery(Protocol):
    def set_foreign(self, items: list[Obj]) -> None: ...


class FollowedServices:
    """Starts with `start`, once everything is stored that is there from the start, and ends with `close`."""

    def __init__(self, context: ServerContext, servers: Servers, discovery: AggregatedDiscovery) -> None:
        self._context = context
        self._servers = servers
        self._discovery = discovery
        self._foreign: dict[str, Server] = {}
        self._last = b"[]"
        self._reported: dict[str, Obj] = {}
        """What each available server reported for its version."""
        self._wake = asyncio.Event()
        self._is_local_due = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._read()
        self._is_local_due = True
        self._wake.set()
        self._context.state.on_commit(self._committed)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def server(self, group: str, version: str) -> tuple[Server, bool] | None:
        """The server of a group version, and whether it can be reached; None if there is none."""
        name = f"{version}.{group}"
        found = self._foreign.get(name)
        if found is None:
            return None
        obj = self._context.state.reader.get(*HOME, "", name)
        return found, obj is not None and is_available(obj)

    def _committed(self, events: Sequence[Event]) -> None:
        for event in events:
            home = event.record.ref.home
            if home == HOME:
                self._read()
                self._is_local_due = True
                self._wake.set()
            elif home == _DEFINITIONS:
                self._is_local_due = True
                self._wake.set()
            elif self._foreign and home in _SERVICES:
                self._wake.set()

    def _read(self) -> None:
        found = {}
        for obj in self._context.state.reader.all(*HOME):
            server = server_of(obj)
            if server is not None:
                found[str(obj["metadata"]["name"])] = server
        self._foreign = found

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _ROUND_S if self._foreign else None)
            self._wake.clear()
            try:
                if self._is_local_due:
                    self._is_local_due = False
                    await self._follow_local()
                await asyncio.gather(*(self._judge(name, one) for name, one in list(self._foreign.items())))
                self._report()
            except status.ApiError as error:
                _log.warning("the APIServices could not be kept: %s", error)
            except Exception:  # noqa: BLE001 - told in the log; the next round may do better
                # One bad object must not end the loop that all others depend on.
                _log.exception("the APIServices could not be kept")

    async def _follow_local(self) -> None:
        """Those of custom resources come and go; those of groups that this version does not have any more go."""
        context = self._context
        wanted = {one.ref.name: one for one in local_services(context.catalog, context.clock.text())}
        writes = [
            creation(context, one.ref, one.obj)
            for one in wanted.values()
            if one.obj["metadata"]["labels"][MANAGED] == "true" and context.state.get(one.ref) is None
        ]
        writes += [
            Write(record.ref, None, record, record.uid, record.labels, record.fields)
            for record in context.state.list(HOME, None).records
            if record.labels.get(MANAGED) and record.ref.name not in wanted
        ]
        for write in writes:
            async with context.state.lock(write.ref):
                if context.state.get(write.ref) is write.before:
                    await context.state.commit([write])

    async def _judge(self, name: str, server: Server) -> None:
        found = await judged(server, self._servers)
        reported = await self._servers.discovered(server) if found.status == "True" else None
        if reported is not None:
            self._reported[name] = reported
        elif name in self._reported:
            # What was there is still told of, and marked as old: clients then know that it exists.
            self._reported[name] = {**self._reported[name], "freshness": "Stale"}
        now = self._context.clock.text()
        await self._write(name, lambda present: _with(present, condition(*found, now)))

    async def _write(self, name: str, changed: Callable[[Obj], Obj]) -> None:
        present = self._context.state.reader.get(*HOME, "", name)
        resource = self._context.catalog.find(GROUP, "v1", HOME.plural)
        if present is None or resource is None or changed(present) == present:
            return

        async def make(now: Obj | None) -> Obj:
            return changed(now or {})

        call = Call("update", resource, SERVER, name=name, subresource="status", field_manager="kube-apiserver")
        try:
            await change(self._context, call, make)
        except status.ApiError as error:
            if error.code not in (404, 409):
                raise

    def _report(self) -> None:
        """Give discovery what other servers reported, by group, in the order of their priorities."""
        self._reported = {name: one for name, one in self._reported.items() if name in self._foreign}
        reader = self._context.state.reader
        ranked: list[tuple[int, int, str]] = []
        for name in self._reported:
            spec = (reader.get(*HOME, "", name) or {}).get("spec") or {}
            ranked.append((-spec.get("groupPriorityMinimum", 0), -spec.get("versionPriority", 0), name))
        groups: dict[str, list[Obj]] = {}
        for _, _, name in sorted(ranked):
            groups.setdefault(self._foreign[name].group, []).append(self._reported[name])
        items = [{"metadata": {"name": group}, "versions": versions} for group, versions in groups.items()]
        encoded = msgspec.json.encode(items)
        if encoded != self._last:
            self._last = encoded
            self._discovery.set_foreign(items)


def _with(service: Obj, wanted: Obj) -> Obj:
    """The service with the condition; when nothing else changed the time of the change stays."""
    before = available(service)
    if before is not None and before.get("status") == wanted["status"]:
        wanted = {**wanted, "lastTransitionTime": before.get("lastTransitionTime", wanted["lastTransitionTime"])}
    others = [one for one in (service.get("status") or {}).get("conditions") or () if one.get("type") != "Available"]
    return {**service, "status": {**(service.get("status") or {}), "conditions": [*others, wanted]}}
