"""A small cluster with the GPU operator in it, and nodes with GPUs as node feature discovery labels them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.foreign_kinds import established
from build.operator_objects import PCI
from build.small_clusters import SmallCluster, small_cluster
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES
from shoal.client.informers import Informers
from shoal.client.item import Obj
from shoal.client.kind import DAEMON_SETS, DEFINITIONS, NAMESPACES, NODES
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.served import Served
from shoal.client.write_through import WriteThroughApi
from shoal.controllers.operator.controller import operator_controller
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.operator.components.facts import OperatorSettings

SPACE = "gpu-operator"
SETTINGS = OperatorSettings(namespace=SPACE, image="shoal:test")
_GROUPS = ("nvidia.com", "config.openshift.io", "monitoring.coreos.com")


class ServedOperator:
    """The operator, with the search for the kinds that the server has."""

    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._served = Served(context)
        self._made = operator_controller(context, self._served, SETTINGS)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._served.run())
            group.create_task(self._made.run())


def served_operator(context: Context) -> Controller:
    return ServedOperator(context)


@asynccontextmanager
async def operated_cluster(folder: Path, nodes: int = 1, *, starts: bool = True) -> AsyncIterator[SmallCluster]:
    async with small_cluster(folder) as cluster:
        for one in definitions():
            if one["spec"]["group"] in _GROUPS:
                await cluster.create(DEFINITIONS, one)
        await established(cluster)
        await cluster.create(NAMESPACES, {"metadata": {"name": SPACE}})
        for at in range(nodes):
            await cluster.create(NODES, gpu_node(f"gpu-{at}"))
        if starts:
            start_operator(cluster)
        yield cluster


def start_operator(cluster: SmallCluster, api: Api | None = None) -> None:
    cluster.start(served_operator, api=api)


def gpu_node(name: str, **labels: str) -> Obj:
    info = {
        "osImage": "Ubuntu 22.04.4 LTS",
        "kernelVersion": "5.15.0",
        "containerRuntimeVersion": "containerd://1.7.27",
    }
    filler = dict.fromkeys(("machineID", "systemUUID", "bootID", "kubeletVersion", "kubeProxyVersion"), "x")
    system = {"operatingSystem": "linux", "architecture": "amd64"}
    meta: Obj = {"name": name, "labels": {PCI: "true", **labels}}
    return {"metadata": meta, "status": {"nodeInfo": {**filler, **system, **info}}}


async def policy(cluster: SmallCluster, spec: dict[str, Any] | None = None, name: str = "cluster-policy") -> Obj:
    return await cluster.create(CLUSTER_POLICIES, {"metadata": {"name": name}, "spec": spec or {}})


async def status(cluster: SmallCluster, name: str = "cluster-policy") -> tuple[str, str, str]:
    """State, and reason and message of the condition that explains it."""
    found: Obj = (await cluster.get(CLUSTER_POLICIES, name)).get("status") or {}
    by_type = {one["type"]: one for one in found.get("conditions", ())}
    told = by_type.get("Ready" if found.get("state") == "ready" else "Error", {})
    return found.get("state", ""), told.get("reason", ""), told.get("message", "")


async def daemon_sets(cluster: SmallCluster) -> set[str]:
    return {one["metadata"]["name"] for one in await cluster.all(DAEMON_SETS, SPACE)}


async def make_ready(cluster: SmallCluster, *, unavailable: int = 0) -> None:
    """As the DaemonSet controller reports that all pods run."""
    for one in await cluster.all(DAEMON_SETS, SPACE):
        generation = one["metadata"]["generation"]
        counts = dict.fromkeys(("currentNumberScheduled", "desiredNumberScheduled", "numberReady"), 1)
        more = {"updatedNumberScheduled": 1, "numberMisscheduled": 0, "observedGeneration": generation}
        body = {"status": {**counts, **more, "numberUnavailable": unavailable}}
        await cluster.patch(DAEMON_SETS, one["metadata"]["name"], body, "status", SPACE)


class OperatorProcess:
    """The operator as a process of its own, which knows nothing but what the server tells it."""

    def __init__(self, cluster: SmallCluster, api: Api | None = None) -> None:
        client = api or cluster.api
        informers = Informers(client, cluster.clock, cluster.draw)
        recorder = Recorder(client, cluster.clock, "shoal-operator")
        learning = WriteThroughApi(client, informers)
        context = Context("shoal-operator", learning, informers, cluster.clock, cluster.draw, recorder)
        parts = (informers.run(), recorder.run(), served_operator(context).run())
        self._tasks = [asyncio.ensure_future(one) for one in parts]

    async def kill(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
