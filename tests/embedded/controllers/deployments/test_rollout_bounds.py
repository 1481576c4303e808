"""Rollouts at random moments, one into the other: never fewer serving pods than promised, never more pods in all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from build.depth import seeds
from build.pod_life import PodLife, template, workload
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import DEPLOYMENTS
from shoal.embedded.controllers.deployments.controller import deployment_controller
from shoal.embedded.controllers.replicas.controller import replica_set_controller


@pytest.mark.parametrize("seed", seeds(3))
@virtual
async def test_rollouts_that_overtake_each_other_stay_within_their_bounds(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    wanted = draw.randint(2, 8)
    surge, unavailable = draw.randint(0, 3), draw.randint(1, 2)
    life = PodLife(draw.uniform(0.2, 3), draw.uniform(0, 3), is_well=lambda pod: _image(pod) != "web:broken")
    async with small_cluster(tmp_path, [deployment_controller, replica_set_controller, life.controller]) as cluster:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
        await cluster.create(DEPLOYMENTS, workload(replicas=wanted, strategy=rolling))
        await cluster.pass_time(10)
        for image in [f"web:{number}" for number in range(5)] + ["web:broken", "web:last"]:
            await cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image=image)}})
            for _ in range(draw.randint(1, 60)):
                await cluster.pass_time(0.1)
                living = [pod for pod in await cluster.pods() if "deletionTimestamp" not in pod["metadata"]]
                serving = [pod for pod in living if pod["status"]["phase"] == "Running"]
                assert len(living) <= wanted + surge
                assert len(serving) >= wanted - min(unavailable, wanted)
        await cluster.pass_time(120)
        assert [_image(pod) for pod in await cluster.pods()] == ["web:last"] * wanted


def _image(pod: Obj) -> str:
    return str(pod["spec"]["containers"][0]["image"])
