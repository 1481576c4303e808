"""Deployments whose controllers die at any step: rollouts end right, and nothing is made twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from build.crashes import crash_often
from build.depth import seeds
from build.pod_life import PodLife, template, workload
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import DEPLOYMENTS, REPLICA_SETS
from shoal.embedded.controllers.deployments.controller import deployment_controller
from shoal.embedded.controllers.replicas.controller import replica_set_controller

REVISION = "deployment.kubernetes.io/revision"
CONTROLLERS = (deployment_controller, replica_set_controller)


@pytest.mark.parametrize("seed", seeds(3))
@virtual
async def test_rollouts_end_right_however_often_controllers_die(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    async with small_cluster(tmp_path, [PodLife(0.5, 0.5).controller], seed=seed) as cluster:

        async def check() -> None:
            living = [pod for pod in await cluster.pods() if "deletionTimestamp" not in pod["metadata"]]
            assert len(living) <= 4 + 1
            sets = await cluster.all(REPLICA_SETS)
            images = [one["spec"]["template"]["spec"]["containers"][0]["image"] for one in sets]
            assert len(images) == len(set(images))

        await cluster.create(DEPLOYMENTS, workload(replicas=4))
        for image in ("web:2", "web:3", "web:2"):
            await crash_often(cluster, CONTROLLERS, draw, 8, check)
            await cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image=image)}})
        await crash_often(cluster, CONTROLLERS, draw, 8, check)
        cluster.start(*CONTROLLERS)
        await cluster.pass_time(40)
        await check()
        pods = await cluster.pods()
        assert [pod["spec"]["containers"][0]["image"] for pod in pods] == ["web:2"] * 4
        sets = await cluster.all(REPLICA_SETS)
        revisions = [one["metadata"]["annotations"][REVISION] for one in sets]
        assert len(revisions) == len(set(revisions))
        deployment = await cluster.get(DEPLOYMENTS, "web")
        newest = next(one for one in sets if one["spec"]["replicas"])
        assert deployment["metadata"]["annotations"][REVISION] == newest["metadata"]["annotations"][REVISION]
        assert deployment["status"]["availableReplicas"] == deployment["status"]["updatedReplicas"] == 4
