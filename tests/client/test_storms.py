"""The storm that other tests rage in: that it does what it says, and nothing else."""

from __future__ import annotations

import random
from contextlib import aclosing

import pytest

from build.scripted_api import ScriptedApi
from build.small_clusters import START_S
from build.stormy_api import CALM, STORM, StormyApi, Weather
from build.virtual_time import virtual
from shoal.client.clock import LoopClock
from shoal.client.kind import CONFIG_MAPS
from shoal.client.refusals import BusyError, ExpiredError, NotFoundError, StaleError


def storm(server: ScriptedApi, weather: Weather) -> StormyApi:
    return StormyApi(server, LoopClock(START_S), random.Random(1), weather)


def config(name: str = "a") -> dict[str, dict[str, str]]:
    return {"metadata": {"name": name, "namespace": "n"}}


@virtual
async def test_a_refused_call_was_not_done() -> None:
    server = ScriptedApi()
    with pytest.raises(BusyError):
        await storm(server, Weather(refused=1)).create(CONFIG_MAPS, config())
    with pytest.raises(NotFoundError):
        await server.get(CONFIG_MAPS, "n", "a")


@virtual
async def test_a_write_whose_answer_was_lost_was_done() -> None:
    server = ScriptedApi()
    with pytest.raises(BusyError):
        await storm(server, Weather(lost=1)).create(CONFIG_MAPS, config())
    assert (await server.get(CONFIG_MAPS, "n", "a")).name == "a"


@virtual
async def test_a_stale_update_was_not_done_and_reads_and_creations_are_never_stale() -> None:
    server = ScriptedApi()
    api = storm(server, Weather(stale=1))
    made = await api.create(CONFIG_MAPS, config())
    with pytest.raises(StaleError):
        await api.update(CONFIG_MAPS, made.obj())
    assert (await api.get(CONFIG_MAPS, "n", "a")).version == made.version


@virtual
async def test_watches_are_cut_or_expire() -> None:
    server = ScriptedApi()
    for name in "abcdef":
        await server.create(CONFIG_MAPS, config(name))
    cut = storm(server, Weather(dropped=1))
    lengths = set()
    for _ in range(30):
        try:
            async with aclosing(cut.watch(CONFIG_MAPS, 0)) as batches:
                lengths.add(sum([len(batch) async for batch in batches]))
        except BusyError:
            pass
    assert len(lengths) > 2
    with pytest.raises(ExpiredError):
        await anext(storm(server, Weather(expired=1)).watch(CONFIG_MAPS, 0))


@virtual
async def test_the_same_seed_is_the_same_storm_and_a_calm_one_is_none() -> None:
    async def answers(weather: Weather) -> list[bool]:
        api = storm(ScriptedApi(), weather)
        found = []
        for at in range(100):
            try:
                await api.create(CONFIG_MAPS, config(f"c-{at}"))
                found.append(True)
            except BusyError:
                found.append(False)
        assert sum(api.happened.values()) == found.count(False)
        return found

    first = await answers(STORM)
    assert first == await answers(STORM)
    assert 5 < first.count(False) < 40
    assert all(await answers(CALM))
