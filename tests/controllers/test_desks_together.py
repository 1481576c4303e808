"""Several desks as one: a pod goes by each of them, and what one lets go is offered to those after it."""

from __future__ import annotations

from shoal.client.clock import WallClock
from shoal.controllers.scheduling_loop.disciplines import Disciplines, Onward
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, PodArrived, PodGone
from shoal.engine.intake import Intake
from shoal.engine.plan import Place


class Keeper:
    """Keeps pods of a name until told to let them go."""

    def __init__(self, start: str, onward: Onward, due_s: float | None = None) -> None:
        self.start, self.onward, self.due_s = start, onward, due_s
        self.heard: list[Event] = []
        self.kept: list[PodArrived] = []
        self.is_idle = True

    def hear(self, event: Event) -> bool:
        self.heard.append(event)
        if isinstance(event, PodArrived) and self.start in event.key:
            self.kept.append(event)
            return True
        return False

    def round(self, now_s: float) -> list[Place]:
        return [Place(f"{self.start}@{now_s:g}", "n", None)]

    def next_s(self) -> float | None:
        return self.due_s

    def let_go(self) -> None:
        for event in self.kept:
            self.onward(event)

    async def run(self) -> None: ...
    async def synced(self) -> None: ...


def _disciplines() -> tuple[Cluster, Disciplines, list[Keeper]]:
    cluster = Cluster()
    disciplines, made = Disciplines(Intake(cluster), WallClock()), list[Keeper]()

    def maker(start: str, due_s: float | None) -> None:
        def make(onward: Onward) -> Keeper:
            made.append(Keeper(start, onward, due_s))
            return made[-1]

        disciplines.add(make)

    maker("x", None)
    maker("y", 7.0)
    return cluster, disciplines, made


def test_a_pod_that_two_desks_want_passes_through_both_before_the_facts_take_it() -> None:
    cluster, disciplines, (first, second) = _disciplines()
    assert disciplines.hear(PodArrived("default/xy", Ask()))
    assert not second.heard
    first.let_go()
    assert [event.key for event in second.kept] == ["default/xy"]
    assert "default/xy" not in cluster.pending
    second.let_go()
    assert "default/xy" in cluster.pending


def test_what_nobody_keeps_is_heard_by_all_and_left_to_the_facts() -> None:
    _, disciplines, made = _disciplines()
    assert not disciplines.hear(PodGone("default/a"))
    assert [len(one.heard) for one in made] == [1, 1]


def test_together_they_are_idle_when_all_are_and_due_when_the_first_is() -> None:
    _, disciplines, (first, second) = _disciplines()
    answers = [disciplines.is_idle]
    second.is_idle = False
    answers.append(disciplines.is_idle)
    assert answers == [True, False]
    assert disciplines.next_s() == 7.0
    assert [one.pod for one in disciplines.round(1.0) if isinstance(one, Place)] == ["x@1", "y@1"]
    assert first.next_s() is None
