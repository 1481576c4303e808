"""One process of Shoal as it is really put together, behind a lease, in weather of its own; and ways for it to die.

    replica = Replica(crew, "one")
    replica.start()
    await replica.kill(is_hard=True)

Killed hard it gives nothing back and says nothing more; killed gently it lets go of its lease as at SIGTERM. What was
being written at that moment is done or not.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from build.storm_crews import ShoalCrew
from build.stormy_api import StormyApi, Weather
from shoal.api.run_configuration import RunConfiguration
from shoal.client.election import LeaderElection
from shoal.client.informers import Informers
from shoal.client.lease_lock import Lock
from shoal.client.port import Api
from shoal.engine.cycle import STEPS
from shoal.engine.profile import DEFAULT_POLICY, POLICIES
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import RunChoice
from shoal.wiring.shoal import start_shoal

_PARTS = ("scheduler", "queues", "jobs", "pods", "gatekeeper")
_SILENCE = Weather(refused=1.0)


class Replica:
    def __init__(self, crew: ShoalCrew, name: str, api: Api | None = None, parts: Sequence[str] = _PARTS) -> None:
        """`api`: what all of its parts write through, but for the lease."""
        self.name = name
        self._parts = tuple(parts)
        self._api = api
        self._crew = crew
        self._born = 0
        self._task: asyncio.Task[None] | None = None
        self._lock_api: StormyApi | None = None
        self._apis: list[StormyApi] = []

    @property
    def is_alive(self) -> bool:
        return self._task is not None

    def start(self) -> None:
        if self._task is None:
            self._born += 1
            self._apis = []
            self._task = asyncio.ensure_future(self._live(f"{self.name}-{self._born}"))

    async def kill(self, *, is_hard: bool) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        assert not task.done(), task.exception()
        if is_hard:
            for api in self._apis:
                self._crew.silence(api)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for api in self._apis:
            self._crew.silence(api)

    def lose_lease(self) -> None:
        """Nothing is heard of the lease any more until `find_lease`: everything else goes on."""
        if self._lock_api is not None:
            self._lock_api.weather = _SILENCE

    def find_lease(self) -> None:
        if self._lock_api is not None and self._task is not None:
            self._lock_api.weather = self._crew.weather

    # Inside

    def _way_in(self, agent: str) -> Api:
        return self._api or self._own_way_in(agent)

    def _own_way_in(self, agent: str) -> StormyApi:
        api = self._crew.way_in("system:shoal", f"{self.name}/{agent}")
        self._apis.append(api)
        return api

    async def _live(self, identity: str) -> None:
        self._lock_api = self._own_way_in("lease")
        lock = Lock("kube-system", "shoal", identity)
        election = LeaderElection(self._lock_api, self._crew.cluster.clock, self._crew.draw, lock)
        while True:
            try:
                await election.run(self._lead)
            except Exception as error:  # noqa: BLE001 - as `ProcessTasks` has it: what broke starts again, and the test hears of it
                self._crew.hear(error)
                await asyncio.sleep(1)

    async def _lead(self) -> None:
        """As `wiring/run.py` has it."""
        clock = self._crew.cluster.clock
        self._crew.leads(self.name)
        life = ProcessTasks(self._way_in("life"), self._way_in("caches"), clock)
        life.random = random.Random(self._crew.draw.getrandbits(32))
        life.informers = Informers(self._way_in("caches"), clock, life.random)
        own = RunConfiguration()
        choice = RunChoice(own=own, builder=POLICIES[DEFAULT_POLICY], steps=STEPS, controllers=self._parts)
        try:
            await start_shoal(life, self._way_in, choice)
            life.start("caches", life.informers.run)
            await asyncio.Event().wait()
        finally:
            await life.end()
            self._crew.leaders.remove(self.name)
