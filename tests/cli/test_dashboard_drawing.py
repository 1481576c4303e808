"""The dashboard shares an event loop with the server: neither a terminal nor a quiet cluster may cost it anything."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import Callable
from threading import Event
from typing import TypeVar

from rich.console import Console

from build.virtual_time import virtual
from shoal.cli.dashboard import Drawing, LiveDashboard, ThreadDrawing
from shoal.client.clock import LoopClock
from shoal.client.informers import Informers

T = TypeVar("T")


class _Terminal(io.StringIO):
    """Takes nothing while it is `stalled`."""

    def __init__(self) -> None:
        super().__init__()
        self.moves = Event()
        self.moves.set()
        self.tried = Event()

    @property
    def frames(self) -> int:
        """The cursor goes home before each, and once at first."""
        return self.getvalue().count("\x1b[H") - 1

    def write(self, text: str) -> int:
        self.tried.set()
        self.moves.wait()
        return super().write(text)


def _console(terminal: io.StringIO) -> Console:
    return Console(file=terminal, force_terminal=True, width=80, height=24, color_system="256")


class _AtOnce:
    """Draws in the event loop. By its timer, drawing takes no time."""

    share = 0.05

    def timer(self) -> float:
        return 0.0

    async def run(self, what: Callable[[], T]) -> T:
        return what()


class _Slow(_AtOnce):
    """Each reading of the timer is a second later than the one before: a frame takes two seconds."""

    def __init__(self) -> None:
        self._ticks = iter(range(1_000))

    def timer(self) -> float:
        return float(next(self._ticks))


def _board(drawing: Drawing | None = None) -> LiveDashboard:
    clock = LoopClock(0.0)
    # No informer runs, so no API is needed.
    informers = Informers(None, clock, random.Random(0))  # type: ignore[arg-type]
    return LiveDashboard(informers, clock, drawing=drawing or ThreadDrawing())


@virtual
async def test_a_terminal_that_takes_nothing_holds_up_neither_the_loop_nor_its_end() -> None:
    terminal = _Terminal()
    terminal.moves.clear()
    drawing = asyncio.ensure_future(_board().draw(_console(terminal)))
    try:
        await asyncio.sleep(0)
        assert terminal.tried.wait(10)
        await asyncio.sleep(60)
        drawing.cancel()
        await asyncio.wait([drawing], timeout=60)
        assert drawing.done()
    finally:
        terminal.moves.set()


@virtual
async def test_the_terminal_is_left_as_it_was() -> None:
    terminal = _Terminal()
    drawing = asyncio.ensure_future(_board(_AtOnce()).draw(_console(terminal)))
    await asyncio.sleep(1)
    drawing.cancel()
    await asyncio.wait([drawing])
    assert terminal.getvalue().startswith("\x1b[?1049h")
    assert terminal.getvalue().endswith("\x1b[?25h\x1b[?1049l")


@virtual
async def test_a_quiet_cluster_is_drawn_once_a_second() -> None:
    terminal = _Terminal()
    drawing = asyncio.ensure_future(_board(_AtOnce()).draw(_console(terminal)))
    await asyncio.sleep(10.1)
    drawing.cancel()
    assert terminal.frames == 11


@virtual
async def test_frames_that_take_long_are_drawn_seldom() -> None:
    terminal = _Terminal()
    drawing = asyncio.ensure_future(_board(_Slow()).draw(_console(terminal)))
    # Drawing may take a twentieth of a core: one frame in 40 s.
    await asyncio.sleep(399)
    drawing.cancel()
    assert terminal.frames == 10
