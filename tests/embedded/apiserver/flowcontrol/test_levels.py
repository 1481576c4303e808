"""A priority level serves the flow that used the least processor time, and refuses what is too much."""

from __future__ import annotations

import asyncio

from shoal.embedded.apiserver.flowcontrol.levels import FLOW_SEATS, Flow, Limits, PriorityLevel


def level(seats: int, length: int = 50, most: int = 1000) -> PriorityLevel:
    return PriorityLevel("l", "uid", Limits(seats, length, most))


class Flood:
    """Flows of one level that ask for seats; those that wait are served when others leave."""

    def __init__(self, level: PriorityLevel) -> None:
        self.level = level
        self.flows: dict[str, Flow] = {}
        self.turns: list[tuple[str, asyncio.Future[None]]] = []

    def flow(self, name: str) -> Flow:
        return self.flows.setdefault(name, Flow(self.level, {}))

    def ask(self, name: str) -> bool:
        """Whether it is served at once."""
        if self.level.takes(self.flow(name)):
            return True
        turn = self.level.queued(self.flow(name))
        if turn is not None:
            self.turns.append((name, turn))
        return False

    def leave(self, name: str, used_s: float = 0.0) -> list[str]:
        """Whose requests are served when one of `name` is done."""
        self.level.leave(self.flow(name), used_s)
        served = [one for one, turn in self.turns if turn.done()]
        self.turns = [(one, turn) for one, turn in self.turns if not turn.done()]
        return served


async def test_requests_are_served_at_once_while_there_are_seats() -> None:
    flood = Flood(level(2))
    assert [flood.ask(name) for name in ("a", "b", "c")] == [True, True, False]
    assert flood.leave("a") == ["c"]


async def test_one_flow_does_not_take_all_seats() -> None:
    flood = Flood(level(100))
    assert [flood.ask("mallory") for _ in range(FLOW_SEATS + 1)] == [True] * FLOW_SEATS + [False]
    assert flood.ask("ada")
    assert flood.leave("ada") == []
    assert flood.leave("mallory") == ["mallory"]


async def test_the_flow_that_used_less_time_is_next() -> None:
    flood = Flood(level(1))
    flood.ask("costly")
    for name in ("costly", "cheap", "costly", "cheap", "cheap"):
        flood.ask(name)
    order = []
    running = "costly"
    while served := flood.leave(running, 10.0 if running == "costly" else 1.0):
        (running,) = served
        order.append(running)
    # The first costly one is charged before anything else is served.
    assert order == ["cheap", "cheap", "cheap", "costly", "costly"]


async def test_a_flow_that_comes_later_has_no_credit_from_before() -> None:
    flood = Flood(level(1))
    flood.ask("early")
    for _ in range(6):
        flood.ask("early")
    for _ in range(3):
        assert flood.leave("early", 1.0) == ["early"]
    for _ in range(3):
        flood.ask("late")
    order, running = [], "early"
    while served := flood.leave(running, 1.0):
        (running,) = served
        order.append(running)
    assert order.index("early") <= 2


async def test_the_queue_of_a_flow_has_an_end() -> None:
    flood = Flood(level(1, length=2))
    for _ in range(5):
        flood.ask("mallory")
    assert (flood.level.waiting(), flood.level.rejected) == (2, 2)
    flood.ask("ada")
    assert (flood.level.waiting(), flood.level.rejected) == (3, 2)


async def test_all_queues_together_have_an_end() -> None:
    flood = Flood(level(1, length=2, most=3))
    for number in range(5):
        flood.ask(f"flow{number}")
    assert (flood.level.waiting(), flood.level.rejected) == (3, 1)


async def test_a_request_that_gives_up_leaves_its_place() -> None:
    flood = Flood(level(1))
    flood.ask("a")
    flood.ask("gone")
    flood.ask("b")
    flood.level.withdraw(flood.flow("gone"), flood.turns[0][1])
    assert flood.leave("a") == ["b"]
    assert flood.level.waiting() == 0


async def test_a_request_that_gives_up_when_it_has_got_a_seat_gives_it_back() -> None:
    flood = Flood(level(1))
    flood.ask("a")
    flood.ask("gone")
    turn = flood.turns[0][1]
    assert flood.leave("a") == ["gone"]
    flood.level.withdraw(flood.flow("gone"), turn)
    assert flood.level.seats == 0


async def test_what_waits_goes_on_when_its_level_becomes_exempt() -> None:
    flood = Flood(level(1))
    flood.ask("a")
    flood.ask("b")
    flood.level.limits = Limits(0, 0, 0)
    flood.level.dispatch()
    assert flood.turns[0][1].done()
