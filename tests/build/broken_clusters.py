"""A whole cluster in virtual time that tests break and repair, and that `shoal doctor` reads as it reads a live one.

    async with broken_cluster(tmp_path) as broken:
        async with FAULTS["taint"].made(broken):
            found = await broken.doctor("pod", "team/train")

Shoal's scheduler, queues, GPU operator and node scaling run in it, with Kubernetes' controllers, two machines with
eight GPUs and one without, and a simulated cloud.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.crews import Crew, Process, name_alike
from build.fleets import machine
from build.foreign_kinds import established
from build.small_clusters import SmallCluster, small_cluster
from shoal.api.run_configuration import RunConfiguration
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES
from shoal.client.informers import Informers
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, EVENTS, NAMESPACES, NODES, PODS
from shoal.client.port import Api
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.cloud.settings import CapacityRule, CloudSettings
from shoal.engine.cycle import STEPS
from shoal.engine.profile import DEFAULT_POLICY, POLICIES
from shoal.operator.components.facts import OperatorSettings
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
from shoal.policy.diagnosis.trees import diagnose, pods_with_logs
from shoal.policy.diagnosis.verdicts import DiagnosisResult, Patient, SubjectKind
from shoal.policy.object_set import key_of
from shoal.store.diagnosed_objects import read_diagnosed_objects
from shoal.wiring.controllers import CONTROLLERS, own_controllers
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import OWN_NAMES, RunChoice
from shoal.wiring.shoal import start_shoal

SPACE, TEAM = "gpu-operator", "team"
GPU_NODES = ("gpu-0", "gpu-1")
_PARTS = ("scheduler", "queues", "jobs", "operator", "node-scaling")
_NEEDED = {"job", "daemonset", "nodelifecycle", "taint-eviction", "podgc", "garbagecollector"}
_GROUPS = {
    "nvidia.com",
    "kueue.x-k8s.io",
    "karpenter.sh",
    "topology.node.k8s.io",
    "config.openshift.io",
    "monitoring.coreos.com",
}
_OPERANDS = 17
"""The pods of the operator on the three machines."""
_REPAIR_TRIES = 300
_SOLD_OUT = "p4d.24xlarge"
"""A machine type of which the cloud has none."""


class BrokenCluster:
    def __init__(self, cluster: SmallCluster, crew: Crew) -> None:
        self.cluster = cluster
        self.crew = crew
        self.metrics: str | None = None
        self.gpus = 1
        """That the waiting pod asks for."""
        self.spec: Obj = {}
        """Further fields of the spec of the waiting pod."""

    async def doctor(self, kind: SubjectKind, name: str = "") -> DiagnosisResult:
        """As the command does it: the objects, then the logs of the pods that do not run well."""
        read = await read_diagnosed_objects(self.cluster.api)
        facts = DiagnosedCluster(read.objects, read.complete, unread=read.unread, metrics=self.metrics)
        namespace, _, short = name.rpartition("/")
        patient = Patient(kind, short, namespace)
        facts.logs.update(self._logs(facts, patient))
        found = diagnose(facts, patient)
        assert found is not None, f"there is no {patient}"
        return found

    async def logs(self, patient: Patient) -> dict[str, str]:
        """By `namespace/pod`, of the pods that the command would ask."""
        read = await read_diagnosed_objects(self.cluster.api)
        return self._logs(DiagnosedCluster(read.objects, read.complete), patient)

    def _logs(self, facts: DiagnosedCluster, patient: Patient) -> dict[str, str]:
        return {"/".join(key_of(pod)): self._log(pod) for pod in pods_with_logs(facts, patient)}

    def _log(self, pod: Obj) -> str:
        node = self.crew.fleet.node(pod["spec"].get("nodeName", ""))
        if node is None:
            return ""
        uid, names = pod["metadata"]["uid"], [one["name"] for one in pod["spec"]["containers"]]
        return "\n".join(line.text for name in names for line in node.log(uid, name))

    def exported(self, node: str) -> str:
        """The metrics of the exporter of a node."""
        found = self.crew.fleet.node(node)
        assert found is not None
        return found.dcgm()

    async def annotate(self, node: str, key: str, value: str | None) -> None:
        await self.cluster.patch(NODES, node, {"metadata": {"annotations": {key: value}}})

    async def label(self, node: str, key: str, value: str | None) -> None:
        await self.cluster.patch(NODES, node, {"metadata": {"labels": {key: value}}})

    async def waiting_pod(self) -> None:
        container = {"name": "main", "image": "trainer", "resources": {"limits": {"nvidia.com/gpu": str(self.gpus)}}}
        meta = {"name": "train", "namespace": TEAM, "annotations": {"shoal.dev/run-for": "1000h"}}
        await self.cluster.create(PODS, {"metadata": meta, "spec": {"containers": [container], **self.spec}})
        await self.cluster.pass_time(30)

    async def repaired(self) -> None:
        """Returns when all works again, and nothing tells of what was."""
        await self.whole()
        for event in await self.cluster.all(EVENTS):
            await self.cluster.delete(EVENTS, event["metadata"]["name"], namespace=event["metadata"]["namespace"])

    async def whole(self) -> None:
        for _ in range(_REPAIR_TRIES):
            if await self._is_whole():
                return
            await self.cluster.pass_time(5)
        raise AssertionError("the cluster is not repaired")

    async def _is_whole(self) -> bool:
        """Whether both machines have all their GPUs, and all pods of the operator are ready."""
        for name in GPU_NODES:
            node = await self.cluster.get(NODES, name)
            if (node["status"].get("allocatable") or {}).get("nvidia.com/gpu") != "8" or node["spec"].get("taints"):
                return False
        pods = await self.cluster.pods(SPACE)
        return len(pods) == _OPERANDS and all(_is_ready(pod) for pod in pods)


def _is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


class _Crew(Crew):
    def _scheduler(self) -> Process:
        """Shoal is that."""
        return Process(self, [])


@asynccontextmanager
async def broken_cluster(folder: Path) -> AsyncIterator[BrokenCluster]:
    """Whole at first."""
    async with small_cluster(folder) as cluster:
        name_alike(cluster, 1)
        for one in definitions():
            if one["spec"]["group"] in _GROUPS:
                await cluster.create(DEFINITIONS, one)
        await established(cluster)
        for namespace in (SPACE, TEAM):
            await cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
        machines = [machine(name, gpus=8, gpu_software="pods") for name in GPU_NODES]
        unneeded = (set(CONTROLLERS) | set(own_controllers(cluster.plane))) - _NEEDED
        crew = _Crew(cluster, [*machines, machine("cpu-0")], random.Random(1), without=unneeded)
        broken = BrokenCluster(cluster, crew)
        life = _life(cluster, crew)
        try:
            await start_shoal(life, lambda agent: crew.way_in("system:shoal", agent), _choice())
            life.start("caches", life.informers.run)
            await cluster.create(CLUSTER_POLICIES, {"metadata": {"name": "cluster-policy"}, "spec": {}})
            await broken.repaired()
            yield broken
            assert not (failed := crew.broken()), failed
        finally:
            await life.end()
            await crew.end()
            await asyncio.sleep(0)


def _choice() -> RunChoice:
    own = RunConfiguration(scheduler_names=OWN_NAMES)
    cloud = CloudSettings(capacity=(CapacityRule(0, _SOLD_OUT),))
    settings: Any = {"operator": OperatorSettings(namespace=SPACE, image="shoal:test"), "cloud": cloud}
    return RunChoice(own=own, builder=POLICIES[DEFAULT_POLICY], steps=STEPS, controllers=_PARTS, **settings)


def _life(cluster: SmallCluster, crew: Crew) -> ProcessTasks:
    def way_in(agent: str) -> Api:
        return crew.way_in("system:shoal", agent)

    life = ProcessTasks(way_in("shoal"), way_in("shoal-caches"), cluster.clock)
    life.random = random.Random(1)
    life.informers = Informers(way_in("shoal-caches"), cluster.clock, life.random)
    return life
