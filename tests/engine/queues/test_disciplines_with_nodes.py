"""What KAI's and Volcano's queues promise with the nodes: nothing is evicted in vain, and what pods leave for a
claimant is kept for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest

from build.fair_share import FairWorld
from build.fair_share import queue as kai_queue
from build.volcano_worlds import World, plugin
from build.volcano_worlds import queue as volcano_queue
from shoal.engine.events import PodGone
from shoal.engine.intake import Intake
from shoal.engine.plan import Plan

_PLUGINS = (plugin("priority"), plugin("gang"), plugin("conformance"), plugin("proportion"), plugin("nodeorder"))
_ACTIONS = ("allocate", "preempt", "reclaim", "backfill", "gangpreempt", "gangreclaim")


class _Cluster(Protocol):
    """A cluster whose queues decide."""

    intake: Intake

    def add(self, name: str, queue: str, units: int, pods: int = 1, *on: str) -> None:
        """A gang. `units`: GPUs or cores of each pod; its first pods run on these nodes."""
        ...

    def decide(self) -> Plan: ...


class _Kai:
    def __init__(self, *nodes: int) -> None:
        queues = [kai_queue("lender"), kai_queue("owner", quota=8), kai_queue("late")]
        self._world = FairWorld(nodes, *queues)
        self.intake = self._world.intake

    def add(self, name: str, queue: str, units: int, pods: int = 1, *on: str) -> None:
        minimum = 1 if on else pods
        self._world.job(name, queue, units, pods, on=on, minimum=minimum)

    def decide(self) -> Plan:
        return self._world.run()


class _Volcano:
    def __init__(self, *nodes: int) -> None:
        queues = [volcano_queue("lender"), volcano_queue("owner", weight=100), volcano_queue("late")]
        amounts: dict[str, Any] = {f"n{at}": {"cpu": cores} for at, cores in enumerate(nodes)}
        self._world = World(queues, amounts, (_PLUGINS,))
        self.intake = self._world.intake

    def add(self, name: str, queue: str, units: int, pods: int = 1, *on: str) -> None:
        texts = [f"{node}:{units}" for node in on] or [f":{units}"] * pods
        self._world.job(name, queue, *texts, minimum=1 if on else pods)

    def decide(self) -> Plan:
        plan = self._world.run(*_ACTIONS).plan
        self._world.place(plan)
        return plan


PROJECTS: dict[str, Callable[..., _Cluster]] = {"KAI": _Kai, "Volcano": _Volcano}


@pytest.mark.parametrize("make", PROJECTS.values(), ids=PROJECTS)
@pytest.mark.parametrize(("units", "pods"), [(5, 1), (3, 3)], ids=["larger than a node", "a gang that never fits"])
def test_nothing_is_evicted_for_work_that_would_still_have_no_place(
    make: Callable[..., _Cluster], units: int, pods: int
) -> None:
    cluster = make(4, 4)
    cluster.add("loan", "lender", 1, 8, *["n0"] * 4, *["n1"] * 4)
    cluster.add("claim", "owner", units, pods)
    plan = cluster.decide()
    assert (list(plan.evicted), list(plan.nominated), list(plan.placed)) == ([], [], [])


@pytest.mark.parametrize("make", PROJECTS.values(), ids=PROJECTS)
def test_what_pods_leave_for_a_claimant_is_kept_until_the_last_of_them_has_ended(
    make: Callable[..., _Cluster],
) -> None:
    cluster = make(4)
    cluster.add("loan", "lender", 1, 4, *["n0"] * 4)
    cluster.add("claim", "owner", 3)
    plan = cluster.decide()
    leaving = [each.pod for each in plan.evicted]
    assert (len(leaving), [each.pod for each in plan.nominated]) == (3, ["claim-0"])
    cluster.add("small", "late", 1)
    for at, pod in enumerate(leaving, 1):
        cluster.intake.apply(PodGone(pod))
        plan = cluster.decide()
        assert "small-0" not in {each.pod for each in plan.placed}
        assert ("claim-0" in {each.pod for each in plan.placed}) is (at == len(leaving))
