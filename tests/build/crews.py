"""All that lives beside a server, as processes that can be killed and started again: controllers, scheduler, nodes.

Each speaks as its own user, through weather of its own, and knows nothing at its start but what the server tells it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from uuid import UUID

from build.small_clusters import Make, SmallCluster
from build.stormy_api import CALM, StormyApi, Weather
from shoal.client.context import Context
from shoal.client.informers import Informers
from shoal.client.recorder import Recorder
from shoal.client.write_through import WriteThroughApi
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.kubelets.fleet import Fleet
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.embedded.machines.machine import Machine
from shoal.wiring.controller_makers import make
from shoal.wiring.controllers import CONTROLLERS, own_controllers

_SCHEDULER = "default-scheduler"
_EVERYBODY = "system:authenticated"
_ACCOUNTS = "system:serviceaccounts"


class Process:
    """Some parts with caches of their own, all killed together."""

    def __init__(self, crew: Crew, parts: Sequence[tuple[str, str, Make]]) -> None:
        self._crew = crew
        self.contexts: list[Context] = []
        self.parts: list[object] = []
        self._informers = Informers(crew.way_in("system:shoal:caches", "caches"), crew.cluster.clock, crew.draw)
        runs = [self._informers.run()]
        for name, user, maker in parts:
            context = self._context(name, crew.way_in(user, name))
            part = maker(context)
            self.contexts.append(context)
            self.parts.append(part)
            runs += [part.run(), context.events.run()]
        self.tasks = [asyncio.ensure_future(run) for run in runs]

    def _context(self, name: str, api: StormyApi) -> Context:
        crew = self._crew
        recorder = Recorder(api, crew.cluster.clock, name)
        learning = WriteThroughApi(api, self._informers)
        return Context(name, learning, self._informers, crew.cluster.clock, crew.draw, recorder)

    @property
    def informers(self) -> Informers:
        return self._informers

    async def kill(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def broken(self) -> list[BaseException | None]:
        return [task.exception() for task in self.tasks if task.done() and not task.cancelled()]


class Crew:
    def __init__(
        self,
        cluster: SmallCluster,
        machines: Iterable[Machine],
        draw: random.Random,
        *,
        weather: Weather = CALM,
        settings: FleetSettings | None = None,
        without: Iterable[str] = (),
    ) -> None:
        self.cluster = cluster
        self.draw = draw
        self.weather = weather
        self.happened: dict[str, int] = {}
        self._machines = tuple(machines)
        self._settings = settings or FleetSettings()
        self._without = frozenset(without)
        self._makers: dict[str, Callable[[], Process]] = {
            "controllers": self._controllers,
            "scheduler": self._scheduler,
            "nodes": self._nodes,
        }
        self._apis: list[StormyApi] = []
        self.processes = {name: start() for name, start in self._makers.items()}

    # -- processes ----------------------------------------------------------------------------------------------------

    async def kill(self, name: str) -> None:
        process = self.processes.pop(name, None)
        if process is not None:
            broken = process.broken()
            assert not broken, broken
            await process.kill()

    def start(self, name: str) -> None:
        if name not in self.processes:
            self.processes[name] = self._makers[name]()

    def names(self) -> tuple[str, ...]:
        return tuple(self._makers)

    @property
    def fleet(self) -> Fleet:
        (fleet,) = self.processes["nodes"].parts
        assert isinstance(fleet, Fleet)
        return fleet

    def change_weather(self, weather: Weather) -> None:
        self.weather = weather
        for api in self._apis:
            api.weather = weather

    async def end(self) -> None:
        for process in self.processes.values():
            await process.kill()

    def broken(self) -> list[BaseException | None]:
        return [error for process in self.processes.values() for error in process.broken()]

    # -- who they are -------------------------------------------------------------------------------------------------

    def way_in(self, user: str, agent: str) -> StormyApi:
        api = StormyApi(InsideApi(self.cluster.plane, _actor(user), agent), self.cluster.clock, self.draw, self.weather)
        api.happened = self.happened
        self._apis.append(api)
        return api

    def _controllers(self) -> Process:
        parts: list[tuple[str, str, Make]] = [
            (name, row.user, partial(make, name))
            for name, row in CONTROLLERS.items()
            if name != _SCHEDULER and name not in self._without
        ]
        parts += [(name, user, maker) for name, (user, maker) in own_controllers(self.cluster.plane).items()]
        return Process(self, parts)

    def _scheduler(self) -> Process:
        return Process(self, [(_SCHEDULER, CONTROLLERS[_SCHEDULER].user, partial(make, _SCHEDULER))])

    def _nodes(self) -> Process:
        def fleet(context: Context) -> Fleet:
            return Fleet(context, self._machines, self._settings)

        return Process(self, [("kubelet", "system:shoal:fleet", fleet)])


def name_alike(cluster: SmallCluster, seed: int) -> None:
    """What the server names and numbers is the seed's too, so that a storm can be seen again."""
    draw = random.Random(seed)
    cluster.plane.context.new_uid = lambda: str(UUID(int=draw.getrandbits(128), version=4))
    cluster.plane.context.new_suffix = lambda: "".join(draw.choices("bcdfghjklmnpqrstvwxz2456789", k=5))


def _actor(user: str) -> Actor:
    if ":" in user:
        return Actor(user, (_EVERYBODY,))
    return Actor(f"system:serviceaccount:kube-system:{user}", (_ACCOUNTS, f"{_ACCOUNTS}:kube-system", _EVERYBODY))
