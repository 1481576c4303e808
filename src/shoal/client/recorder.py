"""Records Events about objects in the background; equal Events are counted instead of repeated.

Recording never fails: an Event that the server rejects is dropped. Equal Events (same object, reason and message from
the same reporter) of the last ten minutes become one with a count. While other work has priority, few Events are
written, and the rest afterwards.

An action (`Deed`) is recorded with the fields of kube-scheduler's Events: the action, the related object, the exact
time and the reporting process. It is counted like other Events, in the fields that all readers support.

Rejected: writing those through events.k8s.io. It accepts neither a count nor the times by which older readers sort.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import re
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Literal
from zlib import crc32

import msgspec

from shoal.client.clock import Clock
from shoal.client.item import Obj
from shoal.client.kind import EVENTS
from shoal.client.port import Api, Patch
from shoal.client.refusals import AlreadyExistsError, BusyError, RefusedError
from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.events")
_REMEMBERED = 4096
_MOST_WAITING = 50_000
_SAME_S = 600.0
_LONGEST_MESSAGE = 1024
"""The maximum length of a message in bytes."""
_LONGEST_NAME, _LONGEST_INSTANCE = 253, 128
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""The server accepts an exact time only from reporters with such names."""
_TO_THE_SECOND = len("2026-11-21T10:00:00")
_TRIES = 64
_FULL, _TRIES_WHEN_FULL = 429, 5
_APART_S = 0.05
"""The time between two Events while other work has priority."""


class Deed(msgspec.Struct, frozen=True):
    """The action of an Event: `Binding`, `Scheduling`, `Preempting`."""

    action: str
    related: tuple[tuple[str, str], ...] = ()
    """The fields of a reference to the related object."""


def reference_of(obj: Obj) -> tuple[tuple[str, str], ...]:
    """The reference to an object with kind, apiVersion and metadata."""
    meta = obj["metadata"]
    fields = {"kind": obj["kind"], "apiVersion": obj["apiVersion"]}
    fields |= {key: meta[key] for key in ("name", "namespace", "uid") if meta.get(key)}
    return tuple(fields.items())


BINDING, SCHEDULING = Deed("Binding"), Deed("Scheduling")


class Recorder:
    """One reporter (`component`: `default-scheduler`, `kubelet`). `host`: the name of its node, if it acts for one."""

    def __init__(self, api: Api, clock: Clock, component: str, pen: EventWriter | None = None) -> None:
        self._pen = pen or EventWriter(api, clock, component)
        self._component = component

    def named(self, component: str) -> Recorder:
        """The same writer for another reporter."""
        return Recorder(self._pen.api, self._pen.clock, component, self._pen)

    def record(
        self,
        about: Obj,
        reason: str,
        message: str,
        *,
        type_: Literal["Normal", "Warning"] = "Normal",
        host: str = "",
        field: str = "",
        deed: Deed | None = None,
    ) -> None:
        """`about` needs kind, apiVersion and metadata (name, namespace, uid). `field`: `spec.containers{main}`."""
        meta = about["metadata"]
        involved = {
            "kind": about["kind"],
            "apiVersion": about["apiVersion"],
            "name": meta["name"],
            "namespace": meta.get("namespace", ""),
            "uid": meta.get("uid", ""),
            "resourceVersion": meta.get("resourceVersion", ""),
        }
        if field:
            involved["fieldPath"] = field
        self._pen.write(involved, (reason, _cut(message), type_, self._component, host, deed))

    def give_way(self, is_busy: Callable[[], bool]) -> None:
        """Few Events are written while `is_busy` returns True."""
        self._pen.is_to_wait = is_busy

    @property
    def gives_way(self) -> bool:
        """Whether what is more urgent is going on now."""
        return self._pen.is_to_wait()

    async def run(self) -> None:
        """Writes recorded Events until cancelled."""
        await self._pen.run()

    async def settled(self) -> None:
        """Returns when all recorded Events are written."""
        await self._pen.settled()


Said = tuple[str, str, str, str, str, Deed | None]
_Same = tuple[str, str, str, str, Said]


class EventWriter:
    """Writes Events in order from a bounded queue: when too many are recorded, the oldest are dropped."""

    def __init__(self, api: Api, clock: Clock, owner: str) -> None:
        """`owner`: distinguishes the Events that several writers create for one object at the same time."""
        self.api = api
        self.clock = clock
        self.is_to_wait: Callable[[], bool] = lambda: False
        self._mark = crc32(owner.encode()) & 0xFFFF
        self._machine = platform.node()
        self._numbers = count()
        self._waiting: deque[tuple[_Same, Obj, str]] = deque(maxlen=_MOST_WAITING)
        self._known: OrderedDict[_Same, tuple[str, str, int, float]] = OrderedDict()
        """Name, first time, count and last time of each Event."""
        self._wakeup = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def write(self, involved: Obj, said: Said) -> None:
        same = (involved["kind"], involved["namespace"], involved["name"], involved["uid"], said)
        self._waiting.append((same, involved, self.clock.text() if said[-1] is None else self.clock.micro_text()))
        self._idle.clear()
        self._wakeup.set()

    async def settled(self) -> None:
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            while self._waiting:
                if self.is_to_wait():
                    await self.clock.sleep(_APART_S)
                same, involved, now = self._waiting.popleft()
                try:
                    await self._write_patiently(same, involved, now)
                except ShoalError as error:
                    _log.debug("an event was not written: %s", error)
                except Exception:  # noqa: BLE001 - an error for one Event must not stop the others
                    _log.exception("an event about %s %s was not written", involved["kind"], involved["name"])
            self._idle.set()
            self._wakeup.clear()
            await self._wakeup.wait()

    async def _write_patiently(self, same: _Same, involved: Obj, now: str) -> None:
        """An overloaded server gets no Events at first. Only a write that it did not accept is retried."""
        for _ in range(_TRIES_WHEN_FULL):
            try:
                await self._write(same, involved, now)
            except BusyError as error:
                await self.clock.sleep(error.delay_s)
                if error.code == _FULL:
                    continue
            return

    async def _write(self, same: _Same, involved: Obj, moment: str) -> None:
        """`moment`: the time of the record; the write may come much later."""
        known, now = self._known.get(same), f"{moment[:_TO_THE_SECOND]}Z"
        seconds = self.clock.seconds()
        namespace = involved["namespace"] or "default"
        if known is not None and seconds - known[3] < _SAME_S:
            name, first, count, _ = known
            body = {"count": count + 1, "lastTimestamp": now}
            try:
                await self.api.patch(EVENTS, namespace, name, Patch("merge", body))
            except RefusedError:
                self._known.pop(same, None)
            else:
                self._known[same] = (name, first, count + 1, seconds)
                self._known.move_to_end(same)
                return
        reason, message, type_, component, host, deed = same[4]
        source = {"component": component} | ({"host": host} if host else {})
        event: Obj = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"namespace": namespace},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "reason": reason,
            "message": message,
            "source": source,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": type_,
            "reportingComponent": component,
            "reportingInstance": host,
        }
        if deed is not None:
            event |= self._done(deed, component, moment)
        name = await self._create(event, seconds)
        self._known[same] = (name, now, 1, seconds)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def _done(self, deed: Deed, component: str, moment: str) -> Obj:
        instance = f"{component}-{self._machine}"[:_LONGEST_INSTANCE]
        fields: Obj = {"action": deed.action, "reportingInstance": instance}
        if deed.related:
            fields["related"] = dict(deed.related)
        if _QUALIFIED.fullmatch(component):
            fields["eventTime"] = moment
        return fields

    async def _create(self, event: Obj, seconds: float) -> str:
        """Returns the name of the Event; with the next number if another writer of the same owner used the name for the
        same time.
        """
        for _ in range(_TRIES):
            end = f".{int(seconds * 1e6):x}{self._mark:04x}{next(self._numbers) % 4096:03x}"
            name: str = event["involvedObject"]["name"][: _LONGEST_NAME - len(end)].rstrip("-.") + end
            meta = {"name": name, "namespace": event["metadata"]["namespace"]}
            with suppress(AlreadyExistsError):
                await self.api.create(EVENTS, {**event, "metadata": meta})
                return name
        raise AlreadyExistsError(f"{_TRIES} events of this name were there already")


def _cut(message: str) -> str:
    if len(message) * 4 <= _LONGEST_MESSAGE:
        # A plain `str`, also for subclasses: a server inside this process checks the type.
        return message[:]
    return message.encode()[:_LONGEST_MESSAGE].decode(errors="ignore")
