"""Stateful and daemon sets whose controllers die at any step: updates end right, and nothing is made twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from build.crashes import crash_often
from build.pod_life import PodLife, template, workload
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, STATEFUL_SETS, VOLUME_CLAIMS
from shoal.embedded.controllers.daemon_sets.controller import daemon_set_controller
from shoal.embedded.controllers.stateful_sets.controller import stateful_set_controller

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.mark.parametrize("seed", range(4))
@virtual
async def test_updates_of_a_stateful_set_end_right(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    async with small_cluster(tmp_path, [PodLife(0.5, 0.5).controller], seed=seed) as cluster:

        async def check() -> None:
            data = [str(one["data"]) for one in await cluster.all(CONTROLLER_REVISIONS)]
            assert len(data) == len(set(data))

        await cluster.create(STATEFUL_SETS, workload("db", 3, volumeClaimTemplates=[CLAIM]))
        for image in ("db:2", "db:3", "db:2"):
            await crash_often(cluster, [stateful_set_controller], draw, 8, check)
            await cluster.patch(STATEFUL_SETS, "db", {"spec": {"template": template("db", image)}})
        await crash_often(cluster, [stateful_set_controller], draw, 8, check)
        cluster.start(stateful_set_controller)
        await cluster.pass_time(40)
        pods = {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in await cluster.pods()}
        assert pods == {f"db-{number}": "db:2" for number in range(3)}
        assert len(await cluster.all(VOLUME_CLAIMS)) == 3
        status = (await cluster.get(STATEFUL_SETS, "db"))["status"]
        assert status["currentRevision"] == status["updateRevision"]
        assert status["collisionCount"] == 0


@pytest.mark.parametrize("seed", range(4))
@virtual
async def test_updates_of_a_daemon_set_end_right(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    async with small_cluster(tmp_path, [PodLife(0.5, 0.5).controller], seed=seed) as cluster:
        for name in ("n1", "n2", "n3"):
            await cluster.create(NODES, {"metadata": {"name": name}})
            await cluster.patch(NODES, name, {"spec": {"taints": None}})

        async def check() -> None:
            living = [pod for pod in await cluster.pods() if "deletionTimestamp" not in pod["metadata"]]
            assert len(living) <= 3

        await cluster.create(DAEMON_SETS, workload("agent", None))
        for image in ("agent:2", "agent:3"):
            await crash_often(cluster, [daemon_set_controller], draw, 8, check)
            await cluster.patch(DAEMON_SETS, "agent", {"spec": {"template": template("agent", image)}})
        await crash_often(cluster, [daemon_set_controller], draw, 8, check)
        cluster.start(daemon_set_controller)
        await cluster.pass_time(40)
        pods = {pod["spec"]["nodeName"]: pod["spec"]["containers"][0]["image"] for pod in await cluster.pods()}
        assert pods == dict.fromkeys(("n1", "n2", "n3"), "agent:3")
        assert len(await cluster.pods()) == 3
