"""The parts of an agent run side by side, survive the failures of each other, and end together."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from shoal.agent.parts import AgentPart, Stop, async_part, part_after, periodic_part, run_parts
from shoal.units.errors import TemporaryError


def run(stop: Stop, *parts: AgentPart, end_s: float = 20.0) -> None:
    """Fails if the parts do not end."""
    running = threading.Thread(target=run_parts, args=(parts, stop, 0.0, end_s), daemon=True)
    running.start()
    running.join(20)
    assert not running.is_alive()


def counted(enough: int, then: Callable[[], None]) -> Callable[[], int]:
    count = 0

    def one() -> int:
        nonlocal count
        count += 1
        if count == enough:
            then()
        return count

    return one


@pytest.mark.parametrize("error", [TemporaryError("no driver", 1.0), ZeroDivisionError("a fault")], ids=type)
def test_a_part_that_fails_is_started_again_and_the_others_run_on(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    stop, starts, waiting = Stop(), list[str](), threading.Event()
    once_more = counted(3, stop.set)

    def fails(_: Stop) -> None:
        waiting.wait(20)
        once_more()
        raise error

    def waits(until: Stop) -> None:
        starts.append("waits")
        waiting.set()
        until.wait()

    run(stop, AgentPart("fails", fails), AgentPart("waits", waits))
    assert starts == ["waits"]
    assert once_more() == 4
    assert any(message.startswith("fails: ") for message in caplog.messages)


def test_a_part_that_ends_by_itself_is_started_again() -> None:
    stop = Stop()
    once_more = counted(2, stop.set)
    run(stop, AgentPart("ends", lambda _: once_more()))
    assert once_more() == 3


def test_a_part_that_does_not_end_is_left_behind_and_named(caplog: pytest.LogCaptureFixture) -> None:
    stop, never, blocked = Stop(), threading.Event(), threading.Event()

    def hangs(_: Stop) -> None:
        blocked.set()
        never.wait()

    def end_when_blocked() -> None:
        blocked.wait(20)
        stop.set()

    threading.Thread(target=end_when_blocked, daemon=True).start()
    run(stop, AgentPart("hangs", hangs), end_s=0.0)
    assert any("left behind: hangs" in message for message in caplog.messages)
    never.set()


def test_an_async_part_is_cancelled_at_the_end() -> None:
    stop, ended = Stop(), list[bool]()

    async def work() -> None:
        try:
            stop.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(True)
            raise

    run(stop, async_part("work", work))
    assert ended == [True]


def test_an_async_part_that_fails_is_started_again() -> None:
    stop = Stop()
    once_more = counted(2, stop.set)

    async def work() -> None:
        once_more()
        raise TemporaryError("no server", 1.0)

    run(stop, async_part("work", work))
    assert once_more() == 3


def test_periodic_work_is_repeated_until_the_end() -> None:
    stop = Stop()
    once_more = counted(5, stop.set)
    run(stop, periodic_part("work", once_more, 0.0))
    assert once_more() == 6


def test_a_part_waits_for_what_it_depends_on() -> None:
    stop, is_known, starts = Stop(), threading.Event(), list[str]()

    def knows(_: Stop) -> None:
        starts.append("knows")
        is_known.set()
        stop.wait()

    def depends(_: Stop) -> None:
        starts.append("depends")
        stop.set()

    run(stop, part_after(is_known, AgentPart("depends", depends)), AgentPart("knows", knows))
    assert starts == ["knows", "depends"]


def test_a_part_whose_condition_never_comes_ends_with_the_agent_and_never_runs() -> None:
    stop, starts = Stop(), list[str]()
    waiting = part_after(threading.Event(), AgentPart("depends", lambda _: starts.append("depends")))
    run(stop, waiting, AgentPart("ends", lambda _: stop.set()))
    assert starts == []


BLOCKED = """
import asyncio, threading
from shoal.agent.parts import Stop, async_part, end_despite, run_parts

stop = Stop()

def blocks():
    stop.set()
    threading.Event().wait()

async def work():
    await asyncio.to_thread(blocks)

end_despite(run_parts([async_part("labels", work)], stop, end_s=0.1))
"""


def test_a_part_that_is_blocked_in_the_driver_does_not_keep_the_process_from_ending() -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "did not end in 0 s and were left behind: labels\n")


SIGNALLED = """
import signal, sys, threading
from shoal.agent.parts import AgentPart, run_parts, stop_at_signals

def line_of_main():
    frame = sys._current_frames()[threading.main_thread().ident]
    return frame.f_code.co_name, frame.f_lineno

def sends(stop):
    # Long enough for other threads to run, the main thread has been at the same place: it waits.
    before, same = None, 0
    while same < 300_000:
        now = line_of_main()
        same = same + 1 if now == before and now[0] == "wait" else 0
        before = now
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    stop.wait()

print(run_parts([AgentPart("sends", sends)], stop_at_signals()))
"""


def test_a_signal_that_another_thread_receives_ends_the_parts() -> None:
    """The main thread, which runs handlers of signals, is not woken by it."""
    done = subprocess.run([sys.executable, "-c", SIGNALLED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
