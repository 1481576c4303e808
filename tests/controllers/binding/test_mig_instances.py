"""A pod with MIG instances is bound after the node has created them; what a node does not create ends the attempt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.controllers.bind_preparation.instances import MigInstances
from shoal.controllers.bind_preparation.users import User
from shoal.devices.mig_demand import WantedPlace
from shoal.engine.device_notation import NodeIds
from shoal.engine.device_notation.node_ids import node_ids
from shoal.units.errors import ConflictError

TWO = "nvidia.com/mig-2g.20gb"
PLACE = WantedPlace(0, "2g.20gb", 4)
USER = User("default", "p", "uid-p")


def node() -> Obj:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "shoal.dev/mig-layout": "dynamic"}
    topology = json.dumps({"gpus": [{"uuid": "GPU-0", "mig": []}]})
    return {"metadata": {"name": "n", "labels": labels, "annotations": {"shoal.dev/topology": topology}}}


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[tuple[SmallCluster, MigInstances]]:
    async with small_cluster(folder) as cluster:
        await cluster.create(NODES, node())
        context = cluster.context()
        nodes, pods = context.informers.of(NODES), context.informers.of(PODS)

        def ids(name: str) -> NodeIds:
            item = nodes.get("", name)
            metadata = item.obj()["metadata"] if item is not None else {}
            return node_ids(metadata.get("labels", {}), metadata.get("annotations", {}))

        instances = MigInstances(context, ids)
        await nodes.synced()
        await pods.synced()
        yield cluster, instances


async def requests(cluster: SmallCluster) -> dict[str, str]:
    found = (await cluster.get(NODES, "n"))["metadata"]["annotations"]
    return {name: text for name, text in found.items() if name.startswith("mig.shoal.dev/")}


async def advertise(cluster: SmallCluster) -> None:
    """As the node does: the instances first, and then their number."""
    cut = {"profile": "2g.20gb", "start": 4, "uuid": "MIG-a"}
    topology = json.dumps({"gpus": [{"uuid": "GPU-0", "mig": [cut]}]})
    await cluster.patch(NODES, "n", {"metadata": {"annotations": {"shoal.dev/topology": topology}}})
    await cluster.pass_time(1.0)
    await cluster.patch(NODES, "n", {"status": {"allocatable": {TWO: "1"}}}, "status")


@virtual
async def test_the_wait_ends_when_the_instance_is_advertised_and_the_request_is_removed(tmp_path: Path) -> None:
    async with started(tmp_path) as (cluster, instances):
        task = asyncio.ensure_future(instances.ready(USER, "n", [PLACE]))
        await cluster.pass_time(1.0)
        assert await requests(cluster) == {"mig.shoal.dev/uid-p": "0:2g.20gb@4"}
        await advertise(cluster)
        await cluster.pass_time(1.0)
        assert task.done()
        await task
        assert await requests(cluster) == {}
        await instances.ready(USER, "n", [PLACE])


@virtual
async def test_a_node_that_creates_nothing_ends_the_attempt(tmp_path: Path) -> None:
    async with started(tmp_path) as (cluster, instances):
        with pytest.raises(ConflictError, match=r"node n has not created the MIG instances 0:2g.20gb@4 in 60 s"):
            await instances.ready(USER, "n", [PLACE])
        assert await requests(cluster) == {}


@virtual
async def test_a_decision_that_no_longer_holds_ends_the_attempt(tmp_path: Path) -> None:
    async with started(tmp_path) as (cluster, instances):
        with pytest.raises(ConflictError, match="given up"):
            await instances.ready(USER._replace(is_wanted=lambda: False), "n", [PLACE])
        assert await requests(cluster) == {}


@virtual
async def test_requests_of_a_killed_process_are_removed_by_the_next(tmp_path: Path) -> None:
    async with started(tmp_path) as (cluster, instances):
        stale = {"mig.shoal.dev/gone": "0:7g.80gb@0"}
        await cluster.patch(NODES, "n", {"metadata": {"annotations": stale}})
        await cluster.pass_time(1.0)
        with pytest.raises(ConflictError):
            await instances.ready(USER, "n", [PLACE])
        assert await requests(cluster) == {}
