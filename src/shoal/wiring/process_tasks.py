"""What runs beside a server (or against one): caches, parts that are kept up, and how they all end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from shoal.client.clock import Clock
from shoal.client.context import Context, Controller
from shoal.client.informers import Informers
from shoal.client.item import Item
from shoal.client.kind import NODES
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.supervise import supervised
from shoal.client.write_through import WriteThroughApi
from shoal.wiring.controllers import CONTROLLERS

_log = logging.getLogger("shoal")
_NOT_READY = "node.kubernetes.io/not-ready"


class ProcessTasks:
    """`api` is the caller's client; each part has one of its own."""

    def __init__(self, api: Api, caches: Api, clock: Clock) -> None:
        self.api = api
        self.clock = clock
        self.draw = random.Random()
        self.informers = Informers(caches, clock, self.draw)
        self._contexts: list[Context] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._ends: list[Callable[[], Awaitable[None]]] = []

    def start(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """For as long as this lives. A part that breaks is started again: the others need not end with it."""
        self._tasks.append(asyncio.ensure_future(supervised(self.clock, name, run)))

    def at_end(self, end: Callable[[], Awaitable[None]]) -> None:
        self._ends.append(end)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # What was opened last may use what was opened before it.
        for end in reversed(self._ends):
            try:
                await end()
            except Exception:  # noqa: BLE001 - what else has to be closed must be closed all the same
                _log.exception("a part did not end well")

    def context(self, name: str, api: Api) -> Context:
        """For a part that writes as the user behind `api`; the caches are shared."""
        recorder = Recorder(api, self.clock, name)
        self.start(f"events of {name}", recorder.run)
        made = Context(name, WriteThroughApi(api, self.informers), self.informers, self.clock, self.draw, recorder)
        self._contexts.append(made)
        return made

    def waiting(self) -> list[tuple[str, int]]:
        """How many objects wait to be looked at, by the names of the parts that look at objects."""
        return [(one.name, sum(map(len, one.lines))) for one in self._contexts if one.lines]

    def inner(self, enter: Callable[[ProcessTasks], Api]) -> ProcessTasks:
        """A shorter one beside the same server, with caches of its own: what `enter` opens for it is closed with it."""
        made = ProcessTasks(self.api, self.api, self.clock)
        made.informers = Informers(enter(made), made.clock, made.draw, self.informers.outage)
        return made

    def start_controllers(self, names: Iterable[str], as_: Callable[[str, str], Api]) -> None:
        """`as_`: the way in of a user, who signs its writes with the controller's name."""
        # Imported here: it imports all controllers.
        from shoal.wiring.controller_makers import make

        for name in names:
            self.start_controller(name, as_(CONTROLLERS[name].user, name), partial(make, name))

    def start_controller(self, name: str, api: Api, maker: Callable[[Context], Controller]) -> None:
        self.start(name, maker(self.context(name, api)).run)

    async def nodes_ready(self, names: Sequence[str], patience_s: float, *, are_tended: bool = False) -> None:
        """Returns when all these nodes are Ready, or after a timeout. `are_tended`: a node lifecycle controller removes
        the taint of new nodes."""
        done = asyncio.Event()
        left = set(names)

        def look(_: Item | None, after: Item | None) -> None:
            if after is not None and after.name in left and _is_ready(after, are_tended):
                left.discard(after.name)
                if not left:
                    done.set()

        self.informers.of(NODES).on_change(look)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), patience_s)

    def node_labels(self, name: str) -> Mapping[str, str]:
        item = self.informers.of(NODES).get("", name)
        return item.read(_Node).metadata.labels if item is not None else {}


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: Sequence[_Condition] = ()


class _Metadata(msgspec.Struct):
    labels: Mapping[str, str] = {}


class _Taint(msgspec.Struct):
    key: str


class _Spec(msgspec.Struct):
    taints: Sequence[_Taint] | None = None


class _Node(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


def _is_ready(item: Item, are_tended: bool) -> bool:
    node = item.read(_Node)
    if are_tended and any(taint.key == _NOT_READY for taint in node.spec.taints or ()):
        return False
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
