"""A clock that is off counts only after it has gone on for half a minute from there."""

from __future__ import annotations

import pytest

from shoal.engine.queues.disciplines.kai.clock_jumps import ClockJumps

_DAY_S = 86_400.0


@pytest.mark.parametrize("off_s", [_DAY_S, -_DAY_S])
def test_a_jump_is_believed_when_the_clock_goes_on_from_there(off_s: float) -> None:
    jumps = ClockJumps()
    assert [jumps.is_steady(off_s + at, 0.0) for at in (0.0, 29.0, 30.0)] == [False, False, True]


def test_a_jump_for_a_moment_is_not_believed() -> None:
    jumps = ClockJumps()
    assert [jumps.is_steady(now_s, 0.0) for now_s in (_DAY_S, 10.0, _DAY_S + 40)] == [False, True, False]


def test_a_clock_that_jumps_again_and_again_is_not_believed() -> None:
    jumps = ClockJumps()
    assert not any(jumps.is_steady(at * _DAY_S, 0.0) for at in (1, 2, -1, 5))
