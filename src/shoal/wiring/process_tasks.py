"""The tasks of a process beside an API server: caches, and controllers that are restarted when they fail."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from shoal.api.meta import ObjectMeta
from shoal.api.partial import MetadataOf, PartialNode
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
    """`api` is the client of the caller; each controller has its own."""

    def __init__(self, api: Api, caches: Api, clock: Clock) -> None:
        self.api = api
        self.clock = clock
        self.random = random.Random()
        self.informers = Informers(caches, clock, self.random)
        self._contexts: list[Context] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._ends: list[Callable[[], Awaitable[None]]] = []

    def start(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run it until these tasks end. A task that fails is started again, and the others go on."""
        self._tasks.append(asyncio.ensure_future(supervised(self.clock, name, run)))

    def at_end(self, end: Callable[[], Awaitable[None]]) -> None:
        self._ends.append(end)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # What was opened last may use what was opened earlier.
        for end in reversed(self._ends):
            try:
                await end()
            except Exception:  # noqa: BLE001 - the others must be closed as well
                _log.exception("closing a task failed")

    def context(self, name: str, api: Api) -> Context:
        """The context of a controller that writes as the user of `api`; the caches are shared."""
        recorder = Recorder(api, self.clock, name)
        self.start(f"events of {name}", recorder.run)
        made = Context(name, WriteThroughApi(api, self.informers), self.informers, self.clock, self.random, recorder)
        self._contexts.append(made)
        return made

    def waiting(self) -> list[tuple[str, int]]:
        """The number of objects in the work queues of each controller."""
        return [(one.name, sum(map(len, one.lines))) for one in self._contexts if one.lines]

    def is_urgent(self) -> bool:
        """Whether a controller does what other work has to wait for."""
        return any(one.events.gives_way for one in self._contexts)

    def inner(self, enter: Callable[[ProcessTasks], Api]) -> ProcessTasks:
        """Tasks with a shorter life time and caches of their own, with the same server. `enter` makes their client,
        which is closed with them."""
        made = ProcessTasks(self.api, self.api, self.clock)
        made.informers = Informers(enter(made), made.clock, made.random, self.informers.outage)
        return made

    def start_controllers(self, names: Iterable[str], as_: Callable[[str, str], Api]) -> None:
        """`as_` makes the client of a user, with the name of the controller as the field manager."""
        # Imported here: it imports all controllers.
        from shoal.wiring.controller_makers import make

        for name in names:
            self.start_controller(name, as_(CONTROLLERS[name].user, name), partial(make, name))

    def start_controller(self, name: str, api: Api, maker: Callable[[Context], Controller]) -> None:
        self.start(name, maker(self.context(name, api)).run)

    async def nodes_ready(self, names: Sequence[str], patience_s: float, *, has_lifecycle: bool = False) -> None:
        """Returns when all these nodes are Ready, or after a timeout. `has_lifecycle`: a node lifecycle controller
        runs, which removes the taint of new nodes."""
        done = asyncio.Event()
        left = set(names)

        def look(_: Item | None, after: Item | None) -> None:
            if after is not None and after.name in left and _is_ready(after, has_lifecycle):
                left.discard(after.name)
                if not left:
                    done.set()

        self.informers.of(NODES).on_change(look)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), patience_s)

    def node_labels(self, name: str) -> Mapping[str, str]:
        item = self.informers.of(NODES).get("", name)
        return item.read(MetadataOf[ObjectMeta]).metadata.labels if item is not None else {}


def _is_ready(item: Item, has_lifecycle: bool) -> bool:
    node = item.read(PartialNode)
    if has_lifecycle and any(taint.key == _NOT_READY for taint in node.spec.taints):
        return False
    return node.is_ready()
