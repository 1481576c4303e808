"""What the desk asks of those around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from shoal.engine.cluster import Cluster
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.store.watched.sights import PodSight


class Sights(Protocol):
    def sight(self, key: str) -> PodSight | None: ...


class Brain(Protocol):
    """What the desk asks of whoever holds it."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def intake(self) -> Intake: ...
    @property
    def placement(self) -> Placement: ...
    @property
    def world(self) -> Sights: ...

    def wake(self) -> None: ...


class Presence(Protocol):
    """Whether KAI itself runs here; then its queues are its own."""

    is_there: bool

    async def look(self) -> None: ...
    async def run(self, moved: Callable[[], None]) -> None: ...
