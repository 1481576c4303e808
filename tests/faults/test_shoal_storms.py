"""Shoal in bad weather: two replicas behind a lease that flaps, killed at any step, while their calls are refused,
delayed, lost and forgotten, nodes die, and people change their minds. Whatever happens, no device and no quota is given
twice; and once the weather is fine no gang is left half, nobody runs who is not admitted, nobody who is admitted waits
for room, nothing is lost, and everything that arrived comes to its end.

Schedules come in three sizes: squalls by the hundred, a few objects and a moment of bad luck each; spells, with jobs
and nodes that run them; and storms, where everything happens at once for a long time. Every third seed is wide: claims
of devices, limits on borrowing, drained nodes and GPUs that fail. `SHOAL_STORMS=2000` runs about that many of each
instead of the usual, from the seed `SHOAL_STORMS_FROM` on, and the storms that once found something. A failure is seen
again with the same `PYTHONHASHSEED`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from build.storm_spells import spells
from build.storm_squalls import squalls
from build.storm_stories import STEPS, storm
from build.virtual_time import in_virtual_time

_FIRST, _MORE = int(os.environ.get("SHOAL_STORMS_FROM", "0")), int(os.environ.get("SHOAL_STORMS", "0"))
_SQUALLS, _SPELLS, _STORMS = _MORE or 120, _MORE or 30, _MORE or 4
_SQUALLS_OF_ONE, _SPELLS_OF_ONE = (100, 25) if _MORE else (60, 15)
"""In one cluster, one after another."""
REGRESSIONS = {
    2: "Jobs of a priority waited for ever: classes that were served a moment after flavors were never looked for.",
    3: "An admitted job that had lost its node got none of the next room: its pods were there again by then.",
    9005: "An admitted job waited while others had its room: its pods were not handed the places kept for them.",
    21046: "A Workload that went while it was written was told as a failure of the code.",
    30015: "So was a pod that somebody else wrote just as it was to be told why it waits.",
}
"""Storms that something once did not survive, and what it was. What they found is told shorter in
`test_shoal_storm_finds.py` and `test_shoal_kept_room.py`, which run each time: by now a seed draws another storm than
the one that found it."""
_LONGER = {9005: 25, 21046: 22}
"""Storms that need more steps than others."""


def _seeds(count: int, of_one: int = 1) -> range:
    return range(_FIRST, _FIRST + -(-count // of_one))


@pytest.mark.slow
@pytest.mark.parametrize("seed", _seeds(_SQUALLS, _SQUALLS_OF_ONE))
def test_shoal_survives_squalls(seed: int, tmp_path: Path) -> None:
    in_virtual_time(squalls(seed, tmp_path, _SQUALLS_OF_ONE))


@pytest.mark.slow
@pytest.mark.parametrize("seed", _seeds(_SPELLS, _SPELLS_OF_ONE))
def test_shoal_survives_spells_of_bad_weather(seed: int, tmp_path: Path) -> None:
    in_virtual_time(spells(seed, tmp_path, _SPELLS_OF_ONE))


def _storms() -> list[int]:
    return list(dict.fromkeys([*(REGRESSIONS if _MORE else ()), *_seeds(_STORMS)]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", _storms())
def test_shoal_survives_the_storm(seed: int, tmp_path: Path) -> None:
    in_virtual_time(storm(seed, tmp_path, _LONGER.get(seed, STEPS)))
