"""What lives beside Shoal in its storms: the nodes, and those of Kubernetes' own controllers that pods of jobs need."""

from __future__ import annotations

import random
from collections.abc import Iterable

from build.crews import Crew, Process
from build.small_clusters import SmallCluster
from build.stormy_api import CALM, StormyApi, Weather
from shoal.embedded.machines.machine import Machine
from shoal.units.errors import TemporaryError
from shoal.wiring.controllers import CONTROLLERS, own_controllers

NEEDED = ("job", "garbagecollector", "nodelifecycle", "taint-eviction", "podgc", "disruption", "resourceclaim")
_SILENCE = Weather(refused=1.0)


class ShoalCrew(Crew):
    def __init__(
        self,
        cluster: SmallCluster,
        machines: Iterable[Machine],
        draw: random.Random,
        weather: Weather = CALM,
        *,
        needed: Iterable[str] = NEEDED,
        takes_events: bool = True,
    ) -> None:
        self._takes_events = takes_events
        self.heard: list[BaseException] = []
        """What no part of Shoal should have let through."""
        self.leaders: list[str] = []
        unneeded = (set(CONTROLLERS) | set(own_controllers(cluster.plane))) - set(needed)
        super().__init__(cluster, machines, draw, weather=weather, without=unneeded)

    def way_in(self, user: str, agent: str) -> StormyApi:
        api = super().way_in(user, agent)
        api.takes_events = self._takes_events
        return api

    def silence(self, api: StormyApi) -> None:
        """Of a process that is dead, for good."""
        api.weather = _SILENCE
        if api in self._apis:
            self._apis.remove(api)

    def leads(self, name: str) -> None:
        self.leaders.append(name)
        if len(self.leaders) > 1:
            self.heard.append(AssertionError(f"at once lead {self.leaders}"))

    def hear(self, error: BaseException) -> None:
        if not isinstance(error, TemporaryError):
            self.heard.append(error)

    def _scheduler(self) -> Process:
        """Shoal's replicas are that."""
        return Process(self, [])
