"""Whatever becomes of its pods, and however often its controller dies: a job counts each pod once, and runs each index
once to its success, and never more pods than it may."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.job_hands import Hand, conditions, job
from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import StormyApi
from build.virtual_time import virtual
from shoal.client.informers import Informers
from shoal.client.item import Item
from shoal.client.kind import JOBS, PODS
from shoal.embedded.controllers.jobs.controller import job_controller

_INDEX = "batch.kubernetes.io/job-completion-index"
_BOUNDED = settings(
    max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Witness:
    """Sees all pods, from the first to the last."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.most_active = 0
        self.failed: set[str] = set()
        self.succeeded: dict[str, str] = {}
        """The index of each pod that succeeded, by uid."""
        self._active: set[str] = set()
        cluster.informers.of(PODS).on_change(self._saw)

    def _saw(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        assert item is not None
        pod = item.obj()
        phase, uid = pod["status"].get("phase"), item.uid
        if phase == "Succeeded":
            self.succeeded[uid] = pod["metadata"].get("annotations", {}).get(_INDEX, uid)
        if phase == "Failed":
            self.failed.add(uid)
        is_active = after is not None and phase == "Pending" and "deletionTimestamp" not in pod["metadata"]
        (self._active.add if is_active else self._active.discard)(uid)
        self.most_active = max(self.most_active, len(self._active))


async def _restart(cluster: SmallCluster, api: Any = None) -> None:
    """The controller dies where it stands; another one begins with nothing but what the server has."""
    for task in cluster.tasks:
        task.cancel()
    await asyncio.gather(*cluster.tasks, return_exceptions=True)
    cluster.tasks.clear()
    # As a lease would have it: what the dead one has asked for is done by then.
    await cluster.pass_time(1)
    cluster.informers = Informers(api or cluster.api, cluster.clock, cluster.draw)
    cluster.tasks.append(asyncio.ensure_future(cluster.informers.run()))
    cluster.start(job_controller, api=api)


async def _is_over(hand: Hand) -> bool:
    return not {"Complete", "Failed"}.isdisjoint(conditions(await hand.job()))


async def _until_over(hand: Hand, draw: random.Random, failing: float) -> None:
    for _ in range(400):
        if await _is_over(hand):
            return
        await hand.fate(draw, failing, 20)
    raise AssertionError(f"not over: {await hand.status()}")


async def _check(hand: Hand, witness: Witness, completions: int) -> None:
    status = await hand.status()
    assert status["failed" if witness.failed else "uncountedTerminatedPods"] == (len(witness.failed) or {})
    assert status.get("succeeded", 0) == len(witness.succeeded)
    assert len(set(witness.succeeded.values())) == len(witness.succeeded)
    assert "active" not in status
    assert not status["uncountedTerminatedPods"]
    if "Complete" in conditions(await hand.job()):
        assert len(witness.succeeded) == completions
    assert all("finalizers" not in pod["metadata"] for pod in await hand.cluster.pods())


@_BOUNDED
@given(
    seed=st.integers(0, 10_000),
    indexed=st.booleans(),
    parallelism=st.integers(1, 6),
    completions=st.integers(1, 9),
    failing=st.sampled_from([0.0, 0.3]),
)
def test_pods_that_end_by_chance_are_counted_once_each(
    tmp_path: Path, seed: int, indexed: bool, parallelism: int, completions: int, failing: float
) -> None:
    @virtual
    async def run() -> None:
        async with small_cluster(tmp_path, [job_controller]) as cluster:
            hand, witness, draw = Hand(cluster), Witness(cluster), random.Random(seed)
            mode = "Indexed" if indexed else "NonIndexed"
            spec: dict[str, Any] = {"parallelism": parallelism, "completions": completions, "completionMode": mode}
            await cluster.create(JOBS, job(backoffLimit=100, **spec))
            await _until_over(hand, draw, failing)
            await _check(hand, witness, completions)
            assert witness.most_active <= min(parallelism, completions)

    run()


@_BOUNDED
@given(seed=st.integers(0, 10_000), indexed=st.booleans(), limited=st.booleans())
def test_a_controller_that_dies_anywhere_has_successors_that_end_right(
    tmp_path: Path, seed: int, indexed: bool, limited: bool
) -> None:
    @virtual
    async def run() -> None:
        async with small_cluster(tmp_path) as cluster:
            hand, witness, draw = Hand(cluster), Witness(cluster), random.Random(seed)
            spec: dict[str, Any] = {"completionMode": "Indexed"} if indexed else {}
            spec |= {"backoffLimitPerIndex": 20} if limited and indexed else {"backoffLimit": 100}
            await cluster.create(JOBS, job(parallelism=4, completions=8, **spec))
            cluster.start(job_controller)
            for _ in range(25):
                fate = asyncio.ensure_future(hand.fate(draw, 0.3, draw.uniform(0.5, 15)))
                await cluster.pass_time(draw.choice([0.0, 0.1, 0.1001, 0.2]))
                for _ in range(draw.randrange(60)):
                    await asyncio.sleep(0)
                await _restart(cluster)
                await fate
            await _until_over(hand, draw, 0.2)
            await cluster.pass_time(2)
            await _check(hand, witness, 8)
            assert witness.most_active <= 4

    run()


@virtual
@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
@pytest.mark.parametrize("seed", range(4))
async def test_a_job_comes_through_a_storm(tmp_path: Path, seed: int, mode: str) -> None:
    async with small_cluster(tmp_path) as cluster:
        hand, witness, draw = Hand(cluster), Witness(cluster), random.Random(seed)
        storm = StormyApi(cluster.api, cluster.clock, draw)
        await cluster.create(JOBS, job(parallelism=4, completions=8, completionMode=mode, backoffLimit=100))
        await _restart(cluster, storm)
        for _ in range(6):
            await hand.fate(draw, 0.3, 20)
        assert storm.happened
        storm.calm()
        await _until_over(hand, draw, 0.1)
        await cluster.pass_time(60)
        await _check(hand, witness, 8)
