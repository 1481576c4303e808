"""Rollouts in a whole cluster whose parts are killed at any moment: never too many pods, never too few that serve.

Nodes stay well and the network is good; what dies are controllers and scheduler, in the middle of whatever they do.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from build.crews import Crew
from build.depth import examples
from build.fleets import machine
from build.living_work import template
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import DEPLOYMENTS, PODS
from shoal.client.owned_pods.pod_view import PodView, pod_view

_REPLICAS = 5


class _Bounds:
    """Counts of every moment, from a watch of its own."""

    def __init__(self, most: int, fewest: int) -> None:
        self.broken: list[str] = []
        self._most, self._fewest = most, fewest
        self._pods: dict[str, PodView] = {}
        self._was_full = False

    def see(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            self._pods.pop(before.uid if before is not None else "", None)
        else:
            self._pods[after.uid] = pod_view(after)
        active = [pod for pod in self._pods.values() if pod.is_active()]
        serving = sum(pod.is_ready() for pod in active)
        self._was_full = self._was_full or serving == _REPLICAS
        if len(active) > self._most:
            self.broken.append(f"{len(active)} pods, at most {self._most}")
        if self._was_full and serving < self._fewest:
            self.broken.append(f"{serving} serve, at least {self._fewest}")


@settings(max_examples=examples(3), deadline=None)
@given(seed=st.integers(0, 2**32), surge=st.integers(0, 3), missing=st.integers(0, 3))
def test_a_rollout_keeps_its_bounds_whoever_is_killed(seed: int, surge: int, missing: int) -> None:
    broken = in_virtual_time(_roll(random.Random(seed), surge, missing if surge else max(missing, 1)))
    assert not broken


def test_enough_pods_serve_while_rollouts_overtake_each_other() -> None:
    assert not in_virtual_time(_roll(random.Random(973438), 2, 2))


async def _roll(draw: random.Random, surge: int, missing: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        async with small_cluster(Path(folder), seed=draw.getrandbits(16)) as cluster:
            bounds = _Bounds(_REPLICAS + surge, _REPLICAS - missing)
            watched = Informer(cluster.api, PODS, cluster.clock, random.Random(0))
            watched.on_change(bounds.see)
            cluster.tasks.append(asyncio.ensure_future(watched.run()))
            crew = Crew(cluster, [machine(f"node-{at}") for at in range(2)], draw)
            try:
                await _live(cluster, crew, draw, surge, missing)
                return bounds.broken
            finally:
                await crew.end()


async def _live(cluster: SmallCluster, crew: Crew, draw: random.Random, surge: int, missing: int) -> None:
    strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing}}
    spec = {"replicas": _REPLICAS, "selector": {"matchLabels": {"app": "a"}}, "strategy": strategy}
    await cluster.create(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": {**spec, "template": template("a")}})
    await _until_rolled_out(cluster)
    for at in range(6):
        said = {"roll": str(at)}
        await cluster.patch(DEPLOYMENTS, "a", {"spec": {"template": {"metadata": {"annotations": said}}}})
        await cluster.pass_time(draw.choice([0.0, 0.2, 1.0]))
        for _ in range(draw.randrange(400)):
            await cluster.pass_time(0)
        name = draw.choice(["controllers", "scheduler"])
        await crew.kill(name)
        crew.start(name)
        await cluster.pass_time(draw.choice([0.0, 0.5, 5.0]))
    await _until_rolled_out(cluster)


async def _until_rolled_out(cluster: SmallCluster) -> None:
    async def is_so() -> bool:
        found = await cluster.get(DEPLOYMENTS, "a")
        status = found.get("status") or {}
        counts = {status.get(name) for name in ("replicas", "readyReplicas", "updatedReplicas")}
        return counts == {_REPLICAS} and status["observedGeneration"] == found["metadata"]["generation"]

    await cluster.until(is_so, 300)
