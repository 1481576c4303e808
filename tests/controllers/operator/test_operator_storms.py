"""The operator in bad weather: lost answers, conflicts, broken watches, deaths. Afterwards everything is as desired."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

from build.depth import seeds
from build.operated_clusters import (
    SPACE,
    OperatorProcess,
    daemon_sets,
    gpu_node,
    make_ready,
    operated_cluster,
    policy,
    status,
)
from build.stormy_api import StormyApi
from build.virtual_time import in_virtual_time
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES
from shoal.client.kind import DAEMON_SETS, NODES
from shoal.client.refusals import NotFoundError

_ROUNDS = 4
_USUAL = {
    *("nvidia-node-feature-discovery", "nvidia-driver-daemonset", "nvidia-container-toolkit-daemonset"),
    *("nvidia-operator-validator", "nvidia-device-plugin-daemonset", "gpu-feature-discovery", "nvidia-mig-manager"),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(4))
def test_everything_is_as_desired_after_a_storm(seed: int, tmp_path: Path) -> None:
    in_virtual_time(_storm(tmp_path, seed))


async def _storm(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    async with operated_cluster(folder, nodes=3, starts=False) as cluster:
        await policy(cluster)
        has_exporter, happened = True, 0
        for at in range(_ROUNDS):
            api = StormyApi(cluster.api, cluster.clock, draw)
            operator = OperatorProcess(cluster, api)
            await cluster.pass_time(draw.uniform(0, 20))
            has_exporter = draw.random() < 0.5
            await cluster.patch(
                CLUSTER_POLICIES, "cluster-policy", {"spec": {"dcgmExporter": {"enabled": has_exporter}}}
            )
            await cluster.create(NODES, gpu_node(f"late-{at}"))
            with suppress(NotFoundError):
                await cluster.delete(DAEMON_SETS, draw.choice(sorted(_USUAL)), namespace=SPACE)
            await cluster.pass_time(draw.uniform(0, 20))
            await operator.kill()
            happened += sum(api.happened.values())
        assert happened, "the weather was fine"
        last = OperatorProcess(cluster)
        await cluster.pass_time(5)
        await make_ready(cluster)
        await cluster.pass_time(10)
        exporter = {"nvidia-dcgm-exporter"} if has_exporter else set()
        assert await daemon_sets(cluster) == _USUAL | exporter
        assert (await status(cluster))[:2] == ("ready", "Reconciled")
        for node in await cluster.all(NODES):
            assert node["metadata"]["labels"]["nvidia.com/gpu.deploy.driver"] == "true"
        await last.kill()
