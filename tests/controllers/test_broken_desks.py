"""A desk that breaks beside others: what they decided is handed out, what they hear is heard, and it is asked again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from shoal.client.clock import WallClock
from shoal.controllers.scheduling_loop.disciplines import Disciplines
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


def _disciplines() -> tuple[Disciplines, Brittle, list[Steady]]:
    disciplines, brittle, steady = Disciplines(Intake(Cluster()), WallClock()), Brittle(), [Steady(), Steady()]
    for one in (steady[0], brittle, steady[1]):
        disciplines.add(lambda _, one=one: one)  # type: ignore[misc]
    return disciplines, brittle, steady


def test_what_the_others_decided_is_handed_out(caplog: pytest.LogCaptureFixture) -> None:
    disciplines, _, _ = _disciplines()
    assert [place.pod for place in disciplines.round(7) if isinstance(place, Place)] == ["p", "p"]
    assert "Brittle" in caplog.text


def test_it_is_asked_again_a_moment_later_and_not_at_once() -> None:
    disciplines, brittle, _ = _disciplines()
    disciplines.round(7)
    assert disciplines.is_idle
    assert disciplines.next_s() == 8.0
    brittle.is_broken = False
    assert len(disciplines.round(8)) == 3
    assert disciplines.next_s() is None
    assert not disciplines.is_idle


def test_what_it_cannot_take_in_is_heard_by_those_after_it_and_left_to_the_facts() -> None:
    disciplines, _, (_, last) = _disciplines()
    arrived = PodArrived("default/a", Ask())
    assert not disciplines.hear(arrived)
    assert last.heard == [arrived]
