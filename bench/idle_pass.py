"""What node scaling costs while nothing happens: `python -m bench.idle_pass`, with `src:tests` on PYTHONPATH.

The controller runs against an embedded API server with nodes of a pool, their NodeClaims and their pods, in virtual
time, with a cloud that lists its instances at once. Once it has looked at everything, nothing changes. Prints the
processor time of a pass in that state, of which there are six in a minute, and of a pass that looks at everything, of
which there is one.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from build.foreign_kinds import established
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time
from shoal.autoscale.node_claims.claim import FINALIZER, GROUP
from shoal.autoscale.nodes.catalog import quantities_of
from shoal.autoscale.nodes.gpu_instances import types_for_pool
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.client.ecosystem_kinds import NODE_CLAIMS, NODE_POOLS
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, NODES, PODS
from shoal.client.served import Served
from shoal.cloud.port import GROUP_TAG, LAUNCH_LIMIT_S, CloudInstance, InstanceRequest
from shoal.controllers.node_scaling.controller import NodeScalingController
from shoal.embedded.apiserver.foreign.definitions import definitions

_BAR_S = 0.005
_TYPE = "p5.48xlarge"
_SETTLED_S = 200.0
_SLICE_S = 5.0
_SLICES = 48


class _Cloud:
    """A cloud with these instances. Implements Cloud."""

    def __init__(self, instances: Sequence[CloudInstance]) -> None:
        self.name = "bench"
        self.launch_limit_s = LAUNCH_LIMIT_S
        self._instances = tuple(instances)
        self.types = tuple(one for one in types_for_pool(NodePool("gpu"), ("a",)) if one.name == _TYPE)
        self.lists = 0

    async def instance_types(self, _pool: NodePool) -> tuple[InstanceType, ...]:
        return self.types

    async def instances(self) -> tuple[CloudInstance, ...]:
        self.lists += 1
        return self._instances

    async def create(self, _request: InstanceRequest) -> tuple[CloudInstance, ...]:
        raise AssertionError("nothing has to be provisioned")

    async def delete(self, ids: Sequence[str]) -> None:
        raise AssertionError(f"nothing has to be removed, but {ids} are")

    def boot_s(self, _instance_type: str, /) -> float:
        return 480.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 nodes instead of 1,000")
    nodes = 100 if parser.parse_args(arguments).quick else 1000
    with TemporaryDirectory() as folder:
        idle_s, full_s = in_virtual_time(_measured(Path(folder), nodes, 6))
    where = f"{nodes:,} nodes, {6 * nodes:,} pods"
    print(f"idle pass, {where}: {1000 * idle_s:.2f} ms (bar <= {1000 * _BAR_S:g} ms)")
    print(f"pass that looks at everything, {where}: {1000 * full_s:.0f} ms of a processor, in part in a thread")
    return 0


async def _measured(folder: Path, nodes: int, pods: int) -> tuple[float, float]:
    """The mean time of idle passes, and of passes that look at everything."""
    async with small_cluster(folder) as cluster:
        for one in definitions():
            if one["spec"]["group"] == "karpenter.sh":
                await cluster.create(DEFINITIONS, one)
        await established(cluster)
        await cluster.create(NODE_POOLS, _pool())
        cloud = _Cloud([_instance(number) for number in range(nodes)])
        for number in range(nodes):
            await _add(cluster, cloud, number, pods)
        served = Served(cluster.context("served"))
        controller = NodeScalingController(cluster.context("node-scaling"), served, cloud, frozenset({"shoal"}))
        await served.look()
        running = asyncio.ensure_future(controller.run())
        await cluster.pass_time(_SETTLED_S)
        idle: list[float] = []
        full: list[float] = []
        for _ in range(_SLICES):
            lists, began = cloud.lists, time.process_time()
            await cluster.pass_time(_SLICE_S)
            took_s = time.process_time() - began
            # An idle pass asks the cloud once.
            if cloud.lists > lists:
                (idle if cloud.lists == lists + 1 else full).append(took_s)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return mean(idle), mean(full)


def _pool() -> Obj:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [_TYPE]}]
    template = {"spec": {"requirements": requirements, "nodeClassRef": reference}}
    body = {"template": template, "disruption": {"consolidateAfter": "Never"}}
    return {"metadata": {"name": "gpu"}, "spec": body}


def _instance(number: int) -> CloudInstance:
    tags = {GROUP_TAG: f"g{number}"}
    return CloudInstance(f"i-{number}", f"bench:///{number}", _TYPE, "a", "on-demand", "running", 0.0, tags)


async def _add(cluster: SmallCluster, cloud: _Cloud, number: int, pods: int) -> None:
    """A node that has started, its NodeClaim, and its pods with a GPU each."""
    name, now = f"n{number:04}", cluster.clock.text()
    labels = {
        "karpenter.sh/nodepool": "gpu",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": _TYPE,
        "topology.kubernetes.io/zone": "a",
    }
    done = [
        {"type": each, "status": "True", "reason": each, "message": "", "lastTransitionTime": now}
        for each in ("Launched", "Registered", "Initialized")
    ]
    amounts = {key: str(each) for key, each in quantities_of(cloud.types[0].allocatable()).items()}
    meta = {"name": name, "labels": labels, "finalizers": [FINALIZER], "annotations": {GROUP: f"g{number}"}}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    await cluster.create(NODE_CLAIMS, {"metadata": meta, "spec": {"requirements": [], "nodeClassRef": reference}})
    status = {"providerID": f"bench:///{number}", "nodeName": name, "conditions": done, "allocatable": amounts}
    await cluster.patch(NODE_CLAIMS, name, {"status": status}, "status")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastTransitionTime": now}
    node = {"metadata": {"name": name, "labels": labels}, "spec": {"providerID": f"bench:///{number}"}}
    await cluster.create(NODES, node)
    await cluster.patch(
        NODES, name, {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}}, "status"
    )
    for place in range(pods):
        limits = {"cpu": "4", "nvidia.com/gpu": "1"}
        container = {"name": "main", "image": "trainer", "resources": {"limits": limits}}
        spec = {"nodeName": name, "schedulerName": "shoal", "containers": [container]}
        await cluster.create(PODS, {"metadata": {"name": f"{name}-{place}"}, "spec": spec})


if __name__ == "__main__":
    main()
