"""Tokens that are renewed in their file; requests that keep to a pace."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.virtual_time import virtual
from shoal.store.kube.access import Access
from shoal.store.kube.bearer import Bearer
from shoal.store.kube.pace import Pace
from shoal.units.errors import UserError

GIVEN = "given"


def test_a_token_in_a_file_is_read_again_every_minute(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    bearer = Bearer(Access("https://x", "here", token=GIVEN, token_file=file))
    assert bearer.token(0) == "first"
    file.write_text("second")
    assert bearer.token(59) == "first"
    assert bearer.token(60) == "second"
    file.unlink()
    assert bearer.token(200) == "second"


def test_a_token_that_was_not_taken_is_looked_for_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    bearer = Bearer(Access("https://x", "here", token_file=file))
    bearer.token(0)
    file.write_text("second")
    bearer.forget()
    assert bearer.token(1) == "second"


def test_no_token_at_all_in_a_file_that_was_promised_is_the_users_turn(tmp_path: Path) -> None:
    bearer = Bearer(Access("https://x", 'context "a" of f', token_file=tmp_path / "none"))
    with pytest.raises(UserError, match='context "a" of f: the token cannot be read from'):
        bearer.token(0)


def test_without_a_file_the_token_is_what_was_given() -> None:
    assert Bearer(Access("https://x", "here", token=GIVEN)).token(0) == "given"
    assert Bearer(Access("https://x", "here")).token(0) == ""


async def _times(pace: Pace, number: int) -> list[float]:
    loop = asyncio.get_running_loop()
    began, times = loop.time(), []
    for _ in range(number):
        await pace.turn()
        times.append(round(loop.time() - began, 6))
    return times


@virtual
async def test_a_burst_goes_at_once_and_the_rest_evenly() -> None:
    assert await _times(Pace(10, 3), 6) == [0, 0, 0, 0.1, 0.2, 0.3]


@virtual
async def test_a_rest_gives_the_burst_back_and_no_more() -> None:
    pace = Pace(10, 3)
    await _times(pace, 6)
    await asyncio.sleep(1000)
    assert await _times(pace, 5) == [0, 0, 0, 0.1, 0.2]


@virtual
async def test_those_who_wait_together_go_in_the_order_they_came() -> None:
    pace, order = Pace(10, 1), list[int]()

    async def one(number: int) -> None:
        await pace.turn()
        order.append(number)

    await asyncio.gather(*(one(number) for number in range(20)))
    assert order == list(range(20))


@virtual
async def test_no_pace_is_no_wait() -> None:
    assert await _times(Pace(0, 0), 1000) == [0.0] * 1000
