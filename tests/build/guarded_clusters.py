"""A cluster whose gatekeeping is installed, and the least that objects of held kinds can say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS, LOCAL_QUEUES
from shoal.client.kind import DEFINITIONS, JOBS, PODS, Kind
from shoal.client.served import Served
from shoal.controllers.gatekeeping.held_kinds import HELD_KINDS, QUEUE_LABEL, HoldingRules, Rules
from shoal.controllers.gatekeeping.installer import gatekeeping_controller
from shoal.controllers.gatekeeping.policies import BINDINGS
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.policy.admission_rules.modes import RuleModes

Obj = dict[str, Any]
_POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
_REPLICAS = {"XGBoostJob": "xgbReplicaSpecs"}
QUEUED = {QUEUE_LABEL: "team"}


class Installed:
    def __init__(self, context: Context, rules: Rules, modes: RuleModes | None = None) -> None:
        self.served = Served(context)
        self.loop = gatekeeping_controller(context, self.served, rules, modes=modes)
        self.name = "gatekeeping"

    async def run(self) -> None:
        await self.served.look()
        await self.loop.run()


@asynccontextmanager
async def guarded(folder: Path, rules: Rules = HoldingRules, *, is_started: bool = True) -> AsyncIterator[SmallCluster]:
    def make(context: Context) -> Controller:
        return Installed(context, rules)

    async with small_cluster(folder) as cluster:
        for definition in definitions():
            if definition["spec"]["group"] not in {kind.group for kind in (*HELD_KINDS, LOCAL_QUEUES)}:
                continue
            await cluster.create(DEFINITIONS, definition)
        await cluster.pass_time(2)
        if is_started:
            cluster.start(make)
            await cluster.until(lambda: has_least(cluster, BINDINGS, 10))
        yield cluster


async def has_least(cluster: SmallCluster, kind: Kind, least: int) -> bool:
    return len(await cluster.all(kind)) >= least


async def default_queue(cluster: SmallCluster, namespace: str = "default") -> None:
    await cluster.create(LOCAL_QUEUES, {"metadata": {"name": "default"}, "spec": {"clusterQueue": "all"}}, namespace)


def written(kind: Kind) -> Obj:
    """The least spec of a kind."""
    return deepcopy(_spec(kind))


def _spec(kind: Kind) -> Obj:
    if kind.name == "TrainJob":
        return {"runtimeRef": {"name": "torch"}}
    if kind.name == "SparkApplication":
        return {"type": "Python", "sparkVersion": "3.5.1", "driver": {}, "executor": {}}
    if kind.group == "kubeflow.org":
        return {_REPLICAS.get(kind.name, f"{kind.name.removesuffix('Job').lower()}ReplicaSpecs"): {}}
    if kind == PODS:
        return _POD
    if kind == JOBS:
        return {"template": {"spec": _POD}}
    if kind.group == "apps":
        service = {"serviceName": "a"} if kind.name == "StatefulSet" else {}
        return {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE, **service}
    if kind == LEADER_WORKER_SETS:
        return {"leaderWorkerTemplate": {"workerTemplate": _TEMPLATE, "leaderTemplate": {"spec": _POD}, "size": 2}}
    ray: Obj = {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": _POD}}}
    if kind.group == "ray.io":
        return {"RayCluster": ray, "RayJob": {"rayClusterSpec": ray}}.get(kind.name, {"rayClusterConfig": ray})
    return {}
