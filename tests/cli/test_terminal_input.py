"""The terminal has its old mode after the dashboard, however it ends."""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator
from queue import Queue

import pytest

from shoal.cli.terminal_input import TerminalInput


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The outer end, where keys are typed, and the inner one, from which a program reads."""
    outer, inner = os.openpty()
    yield outer, inner
    os.close(outer)
    os.close(inner)


def _mode(fd: int) -> int:
    return int(termios.tcgetattr(fd)[3]) & (termios.ICANON | termios.ECHO | termios.ISIG)


def test_an_exception_gives_the_old_mode_back(terminal: tuple[int, int]) -> None:
    before = _mode(terminal[1])
    seen = []

    def fail() -> None:
        with TerminalInput(terminal[1]):
            seen.append(_mode(terminal[1]))
            raise RuntimeError("drawing failed")

    with pytest.raises(RuntimeError, match="drawing failed"):
        fail()
    assert seen == [termios.ISIG]
    assert _mode(terminal[1]) == before


def test_a_pause_gives_the_old_mode_back_until_it_is_resumed(terminal: tuple[int, int]) -> None:
    before = _mode(terminal[1])
    with TerminalInput(terminal[1]) as keys:
        keys.pause()
        assert _mode(terminal[1]) == before
        keys.resume()
        assert _mode(terminal[1]) == termios.ISIG


def test_keys_arrive_one_by_one_without_enter(terminal: tuple[int, int]) -> None:
    typed: Queue[bytes] = Queue()
    with TerminalInput(terminal[1]) as keys:
        keys.read_into(typed.put)
        os.write(terminal[0], b"q")
        assert typed.get(timeout=60) == b"q"
        os.write(terminal[0], b"j")
        assert typed.get(timeout=60) == b"j"


def test_after_the_end_keys_are_left_to_the_next_program(terminal: tuple[int, int]) -> None:
    typed: Queue[bytes] = Queue()
    with TerminalInput(terminal[1]) as keys:
        keys.read_into(typed.put)
    os.write(terminal[0], b"ls\n")
    assert os.read(terminal[1], 16) == b"ls\n"
    assert typed.empty()
