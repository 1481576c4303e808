"""Among work that the rules of KAI or Volcano treat as equal, that goes first whose end loses least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

import pytest

from build.depth import seeds
from build.fair_share import NOW_S, FairWorld, stopped
from build.fair_share import queue as kai_queue
from build.volcano_worlds import World, plugin
from build.volcano_worlds import queue as volcano_queue


class Runs(NamedTuple):
    """A job of one pod that runs, with its GPUs or cores, or a job of two pods of which it needs one."""

    name: str
    since_s: float
    saved_s: float | None = None
    created_s: float = 100.0
    priority: int = 1
    size: int = 1
    has_spare: bool = False

    @property
    def loss(self) -> float:
        return (NOW_S - (self.since_s if self.saved_s is None else self.saved_s)) * self.size


Victims = Callable[[Sequence[Runs], int], set[str]]
"""The jobs of which something is evicted on one full node, for a claimant of that size."""


def of_kai(jobs: Sequence[Runs], size: int) -> set[str]:
    world = FairWorld([sum(job.size * (1 + job.has_spare) for job in jobs)], kai_queue("q", quota=None))
    for job in jobs:
        on = ["n0"] * (1 + job.has_spare)
        world.job(
            job.name,
            "q",
            job.size,
            len(on),
            on=on,
            minimum=1,
            priority=job.priority,
            since_s=job.since_s,
            created_s=job.created_s,
            saved_s=job.saved_s,
        )
    world.job("claim", "q", size, priority=50)
    return {pod.rpartition("-")[0] for pod in stopped(world.run("preempt"))}


def of_volcano(jobs: Sequence[Runs], size: int, action: str = "preempt") -> set[str]:
    cores = sum(job.size * (1 + job.has_spare) for job in jobs)
    minimum = 0 if action == "preempt" else 1
    tiers = ((plugin("priority"), plugin("gang"), plugin("conformance")),)
    world = World([volcano_queue("q")], {"n0": {"cpu": cores, "gpu": cores}}, tiers)
    for job in jobs:
        world.job(
            job.name,
            "q",
            *["n0:1"] * (1 + job.has_spare),
            minimum=minimum,
            priority=job.priority,
            created_s=job.created_s,
            gpus=job.size,
            since_s=job.since_s,
            saved_s=job.saved_s,
        )
    world.job("claim", "q", ":1", priority=50, gpus=size)
    return {pod.rpartition("-")[0] for pod in world.run(action, now_s=NOW_S).evicted}


def of_volcanos_gangs(jobs: Sequence[Runs], size: int) -> set[str]:
    return of_volcano(jobs, size, "gangpreempt")


PROJECTS: dict[str, Victims] = {"KAI": of_kai, "Volcano": of_volcano, "Volcano's gangs": of_volcanos_gangs}
both = pytest.mark.parametrize("victims", PROJECTS.values(), ids=PROJECTS)
OLD = Runs("old", 1000.0)


@both
@pytest.mark.parametrize(
    "spared",
    [OLD._replace(name="spared"), Runs("spared", 5000.0)],
    ids=["the same start", "a later start"],
)
def test_of_jobs_of_one_second_the_one_that_saved_its_work_goes(victims: Victims, spared: Runs) -> None:
    saved = OLD._replace(name="saved", saved_s=NOW_S - 1)
    assert victims([saved, spared], 1) == victims([spared, saved], 1) == {"saved"}


@both
def test_lost_work_counts_gpus(victims: Victims) -> None:
    wide = OLD._replace(name="wide", size=4, since_s=NOW_S - 100)
    narrow = OLD._replace(name="narrow", since_s=NOW_S - 200)
    assert victims([narrow, wide], 1) == victims([wide, narrow], 1) == {"narrow"}


@both
@pytest.mark.parametrize(
    "first",
    [{"priority": 0}, {"created_s": 101.0}],
    ids=["a lower priority", "a newer job"],
)
def test_the_rules_come_before_lost_work(victims: Victims, first: dict[str, Any]) -> None:
    loses = OLD._replace(name="loses", **first)
    saved = OLD._replace(name="saved", saved_s=NOW_S)
    assert victims([saved, loses], 1) == victims([loses, saved], 1) == {"loses"}


@pytest.mark.parametrize("victims", [of_kai, of_volcanos_gangs], ids=["KAI", "Volcano's gangs"])
def test_what_a_job_can_spare_goes_before_a_job_that_saved_its_work(victims: Victims) -> None:
    saved = OLD._replace(name="saved", saved_s=NOW_S)
    assert victims([OLD._replace(name="large", has_spare=True), saved], 1) == {"large"}


@both
def test_no_victim_loses_more_than_an_equal_job_that_stays(victims: Victims) -> None:
    is_tied = 0
    for seed in seeds(40):
        draw = Random(seed)
        jobs = [
            Runs(f"j{at}", draw.randint(1, 9000), created_s=draw.choice((7, 8)), priority=draw.randint(1, 2))
            for at in range(draw.randint(3, 8))
        ]
        jobs = [job._replace(saved_s=draw.choice((None, job.since_s + 900))) for job in jobs]
        gone = victims(jobs, draw.randint(1, len(jobs)))
        assert gone
        for one, other in combinations(jobs, 2):
            if (one.priority, one.created_s) == (other.priority, other.created_s) and (
                (one.name in gone) is not (other.name in gone)
            ):
                is_tied += 1
                left, stays = (one, other) if one.name in gone else (other, one)
                assert left.loss <= stays.loss, seed
    assert is_tied, "equal jobs were chosen from"
