"""A process that is started before its server waits for it, and says so at growing intervals."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from build.virtual_time import virtual
from shoal.client.clock import LoopClock, WallClock
from shoal.client.port import Api, ServedKind
from shoal.client.refusals import BusyError, RefusedError, UnauthorizedError
from shoal.wiring.first_answer import first_answer


class _Answers:
    """A server that fails so often before it answers."""

    def __init__(self, *failures: BusyError | RefusedError) -> None:
        self._failures = list(failures)
        self.asked_s: list[float] = []

    async def served(self) -> tuple[ServedKind, ...]:
        self.asked_s.append(asyncio.get_running_loop().time())
        if self._failures:
            raise self._failures.pop(0)
        return ()


def api(server: _Answers) -> Api:
    return cast("Api", server)


@virtual
async def test_it_is_asked_with_growing_pauses_and_that_is_said_at_growing_intervals() -> None:
    server = _Answers(*(BusyError(f"no answer {number}") for number in range(8)))
    said: list[str] = []
    await first_answer(api(server), LoopClock(0.0), said.append)
    pauses = [round(late - early) for early, late in zip(server.asked_s, server.asked_s[1:], strict=False)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert said == [
        "no answer 0; retrying until it answers",
        "no answer 6; retrying for 1 min until it answers",
        "the server answers",
    ]


@virtual
async def test_a_refusal_is_an_answer() -> None:
    server, said = _Answers(UnauthorizedError("not these")), list[str]()
    with pytest.raises(UnauthorizedError, match="not these"):
        await first_answer(api(server), WallClock(), said.append)
    assert len(server.asked_s) == 1
    assert not said


@virtual
async def test_where_nobody_waits_no_answer_is_a_failure() -> None:
    with pytest.raises(BusyError, match="no answer"):
        await first_answer(api(_Answers(BusyError("no answer"))), WallClock(), None)


@virtual
async def test_of_a_server_that_answers_at_once_nothing_is_said() -> None:
    said: list[str] = []
    await first_answer(api(_Answers()), WallClock(), said.append)
    assert not said
