"""Large requests are worked on outside of the event loop, one piece at a time and fairly between users."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from shoal.embedded.apiserver.large_work import LargeWork, Turn
from shoal.embedded.apiserver.status import ApiError


class Timed:
    """A clock of the thread that each piece of work moves on by what it costs."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Served:
    """Which pieces ran, in their order; each costs some seconds of processor time."""

    def __init__(self, most_waiting: int = 1000) -> None:
        self.clock = Timed()
        self.work = LargeWork(self.clock, most_waiting)
        self.order: list[str] = []

    def piece(self, name: str, cost_s: float) -> str:
        self.order.append(name)
        self.clock.now_s += cost_s
        return name

    def ask(self, user: str, name: str, cost_s: float, turn: Turn | None = None) -> asyncio.Task[str]:
        return asyncio.create_task(self.work.run(turn or Turn(user), self.piece, name, cost_s))


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.work.close()


async def test_the_work_is_done_in_another_thread() -> None:
    work = LargeWork()
    assert await work.run(Turn("ada"), threading.get_ident) != threading.get_ident()
    work.close()


async def test_closing_does_not_wait_for_the_work_under_way_and_refuses_all_others() -> None:
    work = LargeWork()
    loop, began, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def busy() -> None:
        loop.call_soon_threadsafe(began.set)
        goes_on.wait()

    under_way = asyncio.create_task(work.run(Turn("ada"), busy))
    await began.wait()
    waiting = asyncio.create_task(work.run(Turn("bob"), int))
    await asyncio.sleep(0)
    work.close()
    for request in (under_way, waiting, asyncio.create_task(work.run(Turn("eve"), int))):
        with pytest.raises(ApiError, match="shutting down"):
            await request
    goes_on.set()


def test_a_process_ends_while_its_worker_is_busy() -> None:
    program = """
import asyncio, threading
from shoal.embedded.apiserver.large_work import LargeWork, Turn

async def main():
    work, began, loop = LargeWork(), asyncio.Event(), asyncio.get_running_loop()

    def busy():
        loop.call_soon_threadsafe(began.set)
        threading.Event().wait()

    asyncio.ensure_future(work.run(Turn("ada"), busy)).add_done_callback(lambda done: done.exception())
    await began.wait()
    work.close()

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def test_what_the_work_raises_is_raised_where_it_was_asked_for(served: Served) -> None:
    def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await served.work.run(Turn("ada"), fails)
    assert await served.ask("ada", "after", 1.0) == "after"


async def test_a_user_with_a_single_request_does_not_wait_for_all_of_another_user(served: Served) -> None:
    many = [served.ask("mallory", f"m{number}", 1.0) for number in range(20)]
    await asyncio.sleep(0)
    one = served.ask("ada", "a", 1.0)
    await asyncio.gather(*many, one)
    assert served.order.index("a") <= 2


async def test_users_get_equal_time_and_not_equal_numbers(served: Served) -> None:
    long = [served.ask("mallory", "long", 10.0) for _ in range(5)]
    short = [served.ask("ada", "short", 1.0) for _ in range(30)]
    await asyncio.gather(*long, *short)
    second = [place for place, name in enumerate(served.order) if name == "long"][1]
    # What the first long piece cost is given to the other user before the second.
    assert served.order[:second].count("short") >= 10


async def test_a_pause_gives_no_credit(served: Served) -> None:
    await asyncio.gather(*(served.ask("busy", "b", 1.0) for _ in range(10)))
    busy = [served.ask("busy", "b", 1.0) for _ in range(10)]
    rested = [served.ask("rested", "r", 1.0) for _ in range(10)]
    await asyncio.gather(*busy, *rested)
    assert served.order[10:20].count("r") <= 6


async def test_a_request_that_has_begun_goes_on_before_the_next_one_of_its_user(served: Served) -> None:
    first, second = Turn("ada"), Turn("ada")

    async def stages(turn: Turn, name: str) -> None:
        for stage in range(3):
            await served.work.run(turn, served.piece, f"{name}{stage}", 1.0)

    await asyncio.gather(stages(first, "x"), stages(second, "y"))
    assert served.order == ["x0", "x1", "x2", "y0", "y1", "y2"]


async def test_a_piece_whose_client_has_gone_is_not_run(served: Served) -> None:
    first = served.ask("ada", "first", 1.0)
    gone = served.ask("ada", "gone", 1.0)
    last = served.ask("ada", "last", 1.0)
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(first, last)
    assert served.order == ["first", "last"]


async def test_of_one_user_only_so_many_wait() -> None:
    served = Served(most_waiting=2)
    asked = [served.ask("mallory", str(number), 1.0) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as refused:
        served.work.check("mallory")
    assert (refused.value.code, refused.value.headers) == (429, {"Retry-After": "1"})
    served.work.check("ada")
    await asyncio.gather(*asked)
    served.work.check("mallory")
    served.work.close()
