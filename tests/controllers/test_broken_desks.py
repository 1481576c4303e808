"""A desk that breaks beside others: what they decided is handed out, what they hear is heard, and it is asked again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from shoal.client.clock import WallClock
from shoal.controllers.brain.desks import Desks
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, PodArrived
from shoal.engine.intake import Intake
from shoal.engine.plan import Place


class Brittle:
    """Breaks whenever it is asked while `is_broken`, and would never be idle."""

    is_idle = False

    def __init__(self) -> None:
        self.is_broken = True

    def _do(self) -> None:
        if self.is_broken:
            raise KeyError("one odd fact")

    def hear(self, _event: Event) -> bool:
        self._do()
        return False

    def round(self, now_s: float) -> Sequence[Place]:
        self._do()
        return [Place("late", f"{now_s:g}", None)]

    def next_s(self) -> float | None:
        return None

    async def run(self) -> None: ...
    async def synced(self) -> None: ...


class Steady:
    is_idle = True

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def hear(self, event: Event) -> bool:
        self.heard.append(event)
        return False

    def round(self, now_s: float) -> Sequence[Place]:
        return [Place("p", f"{now_s:g}", None)]

    def next_s(self) -> float | None:
        return None

    async def run(self) -> None: ...
    async def synced(self) -> None: ...


def _desks() -> tuple[Desks, Brittle, list[Steady]]:
    desks, brittle, steady = Desks(Intake(Cluster()), WallClock()), Brittle(), [Steady(), Steady()]
    for one in (steady[0], brittle, steady[1]):
        desks.add(lambda _, one=one: one)  # type: ignore[misc]
    return desks, brittle, steady


def test_what_the_others_decided_is_handed_out(caplog: pytest.LogCaptureFixture) -> None:
    desks, _, _ = _desks()
    assert [place.pod for place in desks.round(7) if isinstance(place, Place)] == ["p", "p"]
    assert "Brittle" in caplog.text


def test_it_is_asked_again_a_moment_later_and_not_at_once() -> None:
    desks, brittle, _ = _desks()
    desks.round(7)
    assert desks.is_idle
    assert desks.next_s() == 8.0
    brittle.is_broken = False
    assert len(desks.round(8)) == 3
    assert desks.next_s() is None
    assert not desks.is_idle


def test_what_it_cannot_take_in_is_heard_by_those_after_it_and_left_to_the_facts() -> None:
    desks, _, (_, last) = _desks()
    arrived = PodArrived("default/a", Ask())
    assert not desks.hear(arrived)
    assert last.heard == [arrived]
