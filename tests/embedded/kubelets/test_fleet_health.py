"""The health of simulated GPUs is a condition of the Node, as the node agent writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.fleets import FleetRun, fleet_cluster, machine
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES


async def health(run: FleetRun) -> Obj | None:
    conditions = (await run.cluster.get(NODES, "node-0"))["status"]["conditions"]
    return next((one for one in conditions if one["type"] == "GPUHealthy"), None)


async def fault(run: FleetRun, faults: str | None) -> None:
    await run.cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/gpu-faults": faults}}})
    await run.cluster.pass_time(2)


@virtual
@pytest.mark.parametrize(
    ("xid", "said"),
    [(79, "Xid 79: GPU has fallen off the bus"), (119, "Xid 119: GSP RPC Timeout"), (48, "Xid 48: ")],
)
async def test_an_unhealthy_gpu_is_reported_with_its_xid_until_it_is_mended(
    tmp_path: Path, xid: int, said: str
) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2)) as run:
        await run.cluster.pass_time(1)
        before = await health(run)
        assert before is not None
        assert (before["status"], before["reason"]) == ("True", "GPUsHealthy")
        assert before["message"] == "2 GPUs are healthy"
        await fault(run, f'{{"1": {xid}}}')
        found = await health(run)
        assert found is not None
        assert (found["status"], found["reason"]) == ("False", "GPUsUnhealthy")
        assert found["message"].startswith("1 of 2 GPUs are unhealthy: GPU 1 (GPU-node-0-1): ")
        assert said in found["message"]
        assert found["lastTransitionTime"] > before["lastTransitionTime"]
        await fault(run, None)
        mended = await health(run)
        assert mended is not None
        assert mended["status"] == "True"


@virtual
async def test_an_error_of_an_application_leaves_the_gpu_healthy(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2)) as run:
        await run.cluster.pass_time(1)
        await fault(run, '{"1": 31}')
        found = await health(run)
        assert found is not None
        assert (found["status"], found["message"]) == ("True", "2 GPUs are healthy; 1 with warnings")


@virtual
async def test_a_node_without_gpus_has_no_such_condition(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine()) as run:
        await run.cluster.pass_time(1)
        assert await health(run) is None
