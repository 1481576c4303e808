"""The board shares an event loop with the server: neither a terminal nor a quiet cluster may cost it anything."""

from __future__ import annotations

import asyncio
import io
import random
from threading import Event

import pytest
from rich.console import Console

from build.virtual_time import virtual
from shoal.cli import board
from shoal.cli.board import LiveBoard
from shoal.client.clock import LoopClock
from shoal.client.informers import Informers


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


def _board() -> LiveBoard:
    clock = LoopClock(0.0)
    # No informer runs: nobody is asked.
    return LiveBoard(Informers(None, clock, random.Random(0)), clock)  # type: ignore[arg-type]


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
async def test_the_terminal_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "_aside", _at_once)
    terminal = _Terminal()
    drawing = asyncio.ensure_future(_board().draw(_console(terminal)))
    await asyncio.sleep(1)
    drawing.cancel()
    await asyncio.wait([drawing])
    assert terminal.getvalue().startswith("\x1b[?1049h")
    assert terminal.getvalue().endswith("\x1b[?25h\x1b[?1049l")


async def _at_once(what: object) -> object:
    return what()  # type: ignore[operator]


@virtual
async def test_a_quiet_cluster_is_drawn_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "_aside", _at_once)
    monkeypatch.setattr(board, "_SHARE", 1e9)
    terminal = _Terminal()
    drawing = asyncio.ensure_future(_board().draw(_console(terminal)))
    await asyncio.sleep(10.1)
    drawing.cancel()
    assert terminal.frames == 11


@virtual
async def test_a_frame_that_is_dear_comes_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "_aside", _at_once)
    ticks = iter(range(1_000))
    # Each look at the clock finds another second gone: a frame takes two.
    monkeypatch.setattr(board, "thread_time", lambda: next(ticks))
    terminal = _Terminal()
    drawing = asyncio.ensure_future(_board().draw(_console(terminal)))
    # That is 40 s for each.
    await asyncio.sleep(399)
    drawing.cancel()
    assert terminal.frames == 10
