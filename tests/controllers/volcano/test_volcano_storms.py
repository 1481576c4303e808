"""Volcano's objects while everything goes wrong: whoever looks after them dies at any step, the server is a storm.

What must hold at any time: no queue holds more than it may take, but for pods that are being deleted, and no job has a
pod twice. What must hold in the end: jobs whose pods succeed complete, and groups and queues say what is so.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from build.crashes import crash_often
from build.depth import seeds
from build.live_schedulers import add_node
from build.small_clusters import SmallCluster
from build.stormy_api import STORM, StormyApi
from build.virtual_time import virtual
from build.volcano_scenes import VolcanoScene, bare_volcano, volcano
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.informers import Informers
from shoal.client.kind import PODS
from shoal.client.recorder import Recorder
from shoal.client.refusals import NotFoundError
from shoal.client.write_through import WriteThroughApi

GPUS = "nvidia.com/gpu"
LIMITS = {"small": 4, "large": 8}
DESERVED = {"small": 3, "large": 4}
SIZES = {"a": (2, 1, "small"), "b": (3, 1, "small"), "c": (2, 2, "large"), "d": (4, 1, "large"), "e": (2, 2, "small")}
"""Replicas, GPUs of each, queue."""
POLICIES = {
    "a": [{"event": "PodFailed", "action": "RestartJob"}],
    "b": [{"event": "PodFailed", "action": "RestartPod"}],
    "c": [{"exitCode": 3, "action": "RestartTask"}, {"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}],
    "d": [{"events": ["PodFailed", "PodEvicted", "Unknown"], "action": "RestartJob"}],
    "e": [{"event": "PodFailed", "action": "TerminateJob"}],
}
ENDS = {"e": {"Completed", "Terminated"}}
"""Of jobs that a failure ends; all others complete."""


class Unrest:
    """Jobs in two queues, and a hand that runs, ends and evicts their pods by chance."""

    def __init__(self, scene: VolcanoScene, draw: random.Random) -> None:
        self.scene = scene
        self.draw = draw

    async def create(self, *, shares: bool = False) -> None:
        for name, gpus in LIMITS.items():
            deserved = {"deserved": {GPUS: DESERVED[name]}} if shares else {}
            await self.scene.queue(name, capability={GPUS: gpus}, **deserved)
        for name, (replicas, gpus, queue) in SIZES.items():
            limits = {"limits": {GPUS: str(gpus)}}
            spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause", "resources": limits}]}
            task = {"name": "worker", "replicas": replicas, "template": {"spec": spec}}
            whole = {"tasks": [task], "queue": queue, "maxRetry": 1000, "policies": POLICIES.get(name, [])}
            await self.scene.cluster.create(VOLCANO_JOBS, {"metadata": {"name": name}, "spec": whole})

    async def go_on(self, seconds: float) -> None:
        ends = self.scene.cluster.clock.seconds() + seconds
        while self.scene.cluster.clock.seconds() < ends:
            await self.step()
            await self.check()
            await self.scene.cluster.pass_time(self.draw.uniform(0.05, 1.0))

    async def step(self) -> None:
        await self.scene.tend()
        for name, pod in (await self.scene.pods()).items():
            if pod["status"]["phase"] != "Running" or "deletionTimestamp" in pod["metadata"]:
                continue
            chance = self.draw.random()
            try:
                if chance < 0.06:
                    await self.scene.end(name, "Failed", self.draw.choice((1, 3)))
                elif chance < 0.1:
                    await self.scene.cluster.delete(PODS, name)
            except NotFoundError:
                continue

    async def check(self) -> None:
        jobs = {one["metadata"]["name"]: one for one in await self.scene.cluster.all(VOLCANO_JOBS)}
        held: Counter[str] = Counter()
        alive: Counter[str] = Counter()
        for pod in await self.scene.cluster.pods():
            job = pod["metadata"]["labels"]["volcano.sh/job-name"]
            replicas, gpus, queue = SIZES[job]
            alive[job] += "deletionTimestamp" not in pod["metadata"]
            is_leaving = "deletionTimestamp" in pod["metadata"]
            # Volcano's plugins count pods that are allocated, binding, bound or running. A pod that is being deleted is
            # none of these: others may start on another node before it has left. So a queue may exceed its capability
            # by what is being deleted, and by no more: what stays is within it at any time.
            if pod["spec"].get("nodeName") and pod["status"]["phase"] not in ("Succeeded", "Failed") and not is_leaving:
                held[queue] += gpus
            assert alive[job] <= replicas, f"{job} has a pod twice"
            assert jobs[job]["metadata"]["uid"] == pod["metadata"]["ownerReferences"][0]["uid"]
        for queue, count in held.items():
            assert count <= LIMITS[queue], f"{queue} holds {count}"

    async def settle(self) -> None:
        """Nothing goes wrong any more: what runs succeeds."""

        for _ in range(400):
            if not await self.faults():
                return
            await self.scene.tend()
            await self.check()
            for name, pod in (await self.scene.pods()).items():
                job = pod["metadata"]["labels"]["volcano.sh/job-name"]
                runs = pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
                if runs and await self.scene.job_is(job, "Running"):
                    await self.scene.end(name)
            await self.scene.cluster.pass_time(0.7)
        assert await self.faults() == []

    async def faults(self) -> list[str]:
        found = []
        for job in await self.scene.cluster.all(VOLCANO_JOBS):
            phase = (job.get("status") or {}).get("state", {}).get("phase")
            ends = ENDS.get(job["metadata"]["name"], {"Completed"})
            if phase not in ends:
                found.append(f"{job['metadata']['name']} is {phase}: {job['status']}")
        found += [
            f"a group is left: {one['metadata']['name']}" for one in await self.scene.cluster.all(VOLCANO_POD_GROUPS)
        ]
        for queue in await self.scene.cluster.all(VOLCANO_QUEUES):
            status = queue.get("status") or {}
            if GPUS in status.get("allocated", {}) or any(
                status.get(name) for name in ("inqueue", "running", "unknown")
            ):
                found.append(f"queue {queue['metadata']['name']} holds {status}")
        return found


@pytest.mark.parametrize(("seed", "shares"), [*((seed, False) for seed in seeds(3)), (6, True)])
def test_killed_at_any_step_again_and_again(tmp_path: Path, seed: int, *, shares: bool) -> None:
    @virtual
    async def run() -> None:
        draw = random.Random(seed)
        async with bare_volcano(tmp_path, seed) as scene:
            await add_node(scene.cluster, "n1", gpus=8, cpu="64")
            schedulers = [scene.start_scheduler()]
            unrest = Unrest(scene, draw)
            await unrest.create(shares=shares)

            async def check() -> None:
                if draw.random() < 0.2:
                    await schedulers.pop().kill()
                    schedulers.append(scene.start_scheduler())
                await unrest.check()

            going = asyncio.ensure_future(unrest.go_on(60))
            await crash_often(scene.cluster, [volcano], draw, 40, check)
            going.cancel()
            await asyncio.gather(going, return_exceptions=True)
            scene.cluster.start(volcano)
            await unrest.settle()

    run()


@pytest.mark.parametrize("seed", seeds(2))
def test_through_a_storm_of_conflicts_lost_answers_and_broken_watches(tmp_path: Path, seed: int) -> None:
    @virtual
    async def run() -> None:
        draw = random.Random(seed)
        async with bare_volcano(tmp_path, seed) as scene:
            await add_node(scene.cluster, "n1", gpus=8, cpu="64")
            scene.start_scheduler()
            storm = StormyApi(scene.cluster.api, scene.cluster.clock, draw, STORM)
            tasks = _start(scene.cluster, storm, draw)
            unrest = Unrest(scene, draw)
            await unrest.create()
            await unrest.go_on(120)
            assert min(storm.happened.get(what, 0) for what in ("lost", "stale", "refused", "dropped")) > 0
            storm.calm()
            await unrest.settle()
            assert not [task.exception() for task in tasks if task.done()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run()


def _start(cluster: SmallCluster, api: StormyApi, draw: random.Random) -> list[asyncio.Task[None]]:
    informers = Informers(api, cluster.clock, draw)
    recorder = Recorder(cluster.api, cluster.clock, "test")
    context = Context("test", WriteThroughApi(api, informers), informers, cluster.clock, draw, recorder)
    runs = (informers.run(), volcano(context).run(), recorder.run())
    return [asyncio.ensure_future(run) for run in runs]
