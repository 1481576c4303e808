"""Node scaling under seeded faults: no capacity, machines that never register, lost responses, killed controllers.

Whatever happens: the limits of the pools hold at every moment, no request is carried out twice, no gang keeps a part of
its nodes, and in the end every node has a workload that needs it.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from build.depth import seeds
from build.scaled_clusters import QUICK, ScaledCluster, scaled_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import LIGHT_POD_GROUPS
from shoal.client.kind import PODS
from shoal.cloud.port import InstanceRequest, ThrottledError
from shoal.embedded.cloud.settings import CapacityRule, CloudFailures, SpotMarket
from shoal.units.errors import TemporaryError

_LIMIT = 6
_ROUNDS = 8
_CALM_S = 1600.0


class _Weather:
    """Refuses and loses requests, and asks for the controller to be killed."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.is_calm = False
        self.wants_kill = False

    def before(self, _: InstanceRequest) -> None:
        if not self.is_calm and self.draw.random() < 0.2:
            raise ThrottledError("slow down", self.draw.uniform(1, 20))

    def after(self, _: InstanceRequest) -> None:
        if self.is_calm:
            return
        chance = self.draw.random()
        if chance < 0.2:
            raise TemporaryError("no answer", 2.0)
        if chance < 0.4:
            self.wants_kill = True
            raise TemporaryError("no answer before the end of the process", 60.0)


@pytest.mark.parametrize("seed", seeds(1))
def test_limits_hold_and_every_node_is_needed_in_the_end(tmp_path: Path, seed: int) -> None:
    @virtual
    async def story() -> None:
        draw = random.Random(seed)
        settings = replace(
            QUICK,
            seed=seed,
            capacity=(CapacityRule(3, zone="us-east-1a"), CapacityRule(2, zone="us-east-1b")),
            spot=SpotMarket(mean_lifetime_s=4000.0),
            failures=CloudFailures(never_registers=0.1, outage=0.1, lost_responses=0.1),
        )
        async with scaled_cluster(tmp_path, settings, seed=seed) as world:
            weather = _Weather(draw)
            world.cloud.before_create, world.cloud.after_create = weather.before, weather.after
            await world.add_pool(
                capacity=["spot", "on-demand"],
                limits={"nodes": str(_LIMIT)},
                disruption={"consolidateAfter": "60s", "budgets": [{"nodes": "100%"}]},
            )
            for number in range(_ROUNDS):
                await _change(world, draw, number)
                for _ in range(draw.randrange(2, 12)):
                    await world.cluster.pass_time(10)
                    await _check_limits(world)
                    if weather.wants_kill:
                        weather.wants_kill = False
                        await world.kill_controller()
                        await world.start_controller()
            weather.is_calm = True
            for _ in range(int(_CALM_S / 40)):
                await world.cluster.pass_time(40)
                await _check_limits(world)
            await _check_end(world)

    story()


async def _change(world: ScaledCluster, draw: random.Random, number: int) -> None:
    """A gang or a pod comes, or one goes."""
    pods = [pod["metadata"] for pod in await world.cluster.pods()]
    chance = draw.random()
    if chance < 0.35:
        await world.gang(f"gang{number}", draw.randrange(2, 4), gpus=8)
    elif chance < 0.6:
        await world.pod(f"solo{number}", draw.choice([1, 4, 8]))
    elif pods:
        name = draw.choice(pods)["name"]
        gang = name.rpartition("-")[0]
        for meta in pods:
            if meta["name"] == name or (gang and meta["name"].startswith(f"{gang}-")):
                await world.cluster.delete(PODS, meta["name"])
        if gang:
            await world.cluster.delete(LIGHT_POD_GROUPS, gang)


async def _check_limits(world: ScaledCluster) -> None:
    assert world.cloud.most_instances <= _LIMIT
    by_token = Counter(request.token for request in world.cloud.requests)
    sizes = {request.token: request.count for request in world.cloud.requests}
    made = Counter(instance.tags["shoal.dev/launch-group"] for instance in await world.instances())
    assert all(count <= sizes[token] for token, count in made.items()), (by_token, made)


async def _check_end(world: ScaledCluster) -> None:
    """No pod holds a node that it does not use, and no gang has a part of its pods on nodes."""
    pods = await world.cluster.pods()
    used = {pod["spec"].get("nodeName") for pod in pods}
    nodes = {node["metadata"]["name"] for node in await world.nodes()}
    starting = {claim["metadata"]["name"] for claim in await world.claims() if not claim["status"].get("nodeName")}
    assert nodes <= used, "a node without a workload is left"
    assert len(await world.instances()) == len(nodes) + len(starting)
    placed: dict[str, set[bool]] = {}
    for pod in pods:
        gang = pod["metadata"].get("labels", {}).get("scheduling.x-k8s.io/pod-group")
        if gang:
            placed.setdefault(gang, set()).add(bool(pod["spec"].get("nodeName")))
    assert all(len(states) == 1 for states in placed.values()), placed
