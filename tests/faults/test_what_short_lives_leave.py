"""Thousands of pods that come and go leave nothing behind in the caches, queues and books of those who saw them."""

from __future__ import annotations

import gc
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from build.crews import Crew
from build.fleets import machine
from build.living_work import template
from build.sizes import sizes
from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import CALM, STORM, Weather
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import DEPLOYMENTS, JOBS, PODS
from shoal.client.port import Deletion

_BOUNDED = ("Informer._gone", "EventWriter._known", "EventHandlers._labels", "Owners._absent")
"""Kept on purpose, up to a size of their own."""
_SLACK = 30


async def _generation(cluster: SmallCluster, number: int, pods: int) -> None:
    """Jobs and a deployment whose pods are all gone in the end."""
    names = [f"short-{number}-{at}" for at in range(pods // 20)]
    for name in names:
        pod = template(name, gpus=1, annotations={"shoal.dev/run-for": "1s"}, restartPolicy="Never")
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "10m"
        spec: Obj = {"completions": 16, "parallelism": 16, "completionMode": "Indexed", "template": pod}
        await cluster.create(JOBS, {"metadata": {"name": name}, "spec": {**spec, "backoffLimit": 1000}})
        pod = template(f"d-{name}")
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "10m"
        spec = {"replicas": 4, "selector": {"matchLabels": {"app": f"d-{name}"}}, "template": pod}
        await cluster.create(DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec})
    await cluster.pass_time(120)
    for name in names:
        await cluster.delete(JOBS, name, Deletion(policy="Background"))
        await cluster.delete(DEPLOYMENTS, name, Deletion(policy="Background"))

    async def are_gone() -> bool:
        return not await cluster.all(PODS)

    await cluster.until(are_gone, 1200)
    await cluster.pass_time(900)


def _held(crew: Crew) -> Counter[str]:
    gc.collect()
    return sizes(part for process in crew.processes.values() for part in (process.informers, *process.parts))


_WEATHERS = [pytest.param(CALM, id="in calm weather")]
if os.environ.get("SHOAL_STORMS"):
    _WEATHERS.append(pytest.param(STORM, id="in a storm"))


@pytest.mark.slow
@pytest.mark.parametrize("weather", _WEATHERS)
@virtual
async def test_nothing_grows_with_the_number_of_pods_that_were(weather: Weather, tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        crew = Crew(cluster, [machine(f"node-{at}", gpus=8) for at in range(4)], random.Random(5))
        try:
            await cluster.pass_time(10)
            crew.change_weather(weather)
            await _generation(cluster, 0, 60)
            before = _held(crew)
            await _generation(cluster, 1, 160)
            grown = {path: (before[path], now) for path, now in _held(crew).items() if now > before[path] + _SLACK}
            grown = {path: change for path, change in grown.items() if not path.startswith(_BOUNDED)}
            assert not grown, grown
        finally:
            await crew.end()
