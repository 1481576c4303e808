"""A cluster whose nodes come from the simulated cloud, in virtual time: Shoal's scheduler, and the controller of nodes.

    async with scaled_cluster(tmp_path) as cluster:
        await cluster.add_pool("gpu", types=["p5.48xlarge"])
        await cluster.gang("train", 8, gpus=8)
        await cluster.until(lambda: cluster.are_running("train"), 700)

The controller can be killed and started again; the cloud between them can refuse, lose and forget.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.crews import Crew, Process, name_alike
from build.foreign_kinds import established
from build.small_clusters import SmallCluster, small_cluster
from build.storm_crews import NEEDED
from shoal.api.run_configuration import RunConfiguration
from shoal.autoscale.nodes.before_provisioning import FreeingPolicy
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.cli.preemption_options import steps_of_rules
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import LIGHT_POD_GROUPS, NODE_CLAIMS, NODE_POOLS
from shoal.client.informers import Informers
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, NODES, PODS
from shoal.client.port import Api
from shoal.client.presence import Presence
from shoal.client.served import Served
from shoal.cloud.port import Cloud, CloudInstance, InstanceRequest
from shoal.controllers.node_scaling.controller import NodeScalingController
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.cloud.machines import CloudMachines
from shoal.embedded.cloud.settings import CloudSettings
from shoal.embedded.cloud.simulated_cloud import SimulatedCloud
from shoal.embedded.kubelets.fleet import Fleet
from shoal.embedded.machines.machine import Machine
from shoal.engine.cycle import STEPS
from shoal.engine.profile import DEFAULT_POLICY, POLICIES
from shoal.wiring.controllers import CONTROLLERS, own_controllers
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import RunChoice
from shoal.wiring.shoal import start_shoal

GPU = "nvidia.com/gpu"
QUICK = CloudSettings(boot_s=(0.0, 5.0, 10.0, 20.0, 30.0, 30.0))
"""A machine that takes pods half a minute after it was requested."""
_GROUPS = frozenset({"karpenter.sh", "scheduling.x-k8s.io"})
Fault = Callable[[InstanceRequest], None]


class ScriptedCloud:
    """A cloud that does what a test says before, or instead of, what the simulated one does. Implements Cloud."""

    def __init__(self, inner: Cloud) -> None:
        self.inner = inner
        self.name = inner.name
        self.launch_limit_s = inner.launch_limit_s
        self.before_create: Fault = lambda _: None
        self.after_create: Fault = lambda _: None
        self.requests: list[InstanceRequest] = []
        self.most_instances = 0
        self.catalogue_reads = 0
        """One for each pool and pass that looks at everything."""

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        self.catalogue_reads += 1
        return await self.inner.instance_types(pool)

    async def create(self, request: InstanceRequest) -> tuple[CloudInstance, ...]:
        self.requests.append(request)
        self.before_create(request)
        made = await self.inner.create(request)
        self.most_instances = max(self.most_instances, len(await self.inner.instances()))
        self.after_create(request)
        return made

    async def instances(self) -> tuple[CloudInstance, ...]:
        return await self.inner.instances()

    async def delete(self, ids: Sequence[str]) -> None:
        await self.inner.delete(ids)

    def boot_s(self, instance_type: str, /) -> float:
        return self.inner.boot_s(instance_type)


class ScaledCluster:
    def __init__(self, cluster: SmallCluster, crew: Crew, settings: CloudSettings, own: RunConfiguration) -> None:
        self.cluster = cluster
        self.crew = crew
        self.settings = settings
        self.own = own
        api = crew.way_in("system:masters-of-the-cloud", "cloud")
        self.cloud = ScriptedCloud(SimulatedCloud(api, cluster.clock, settings))
        self.others: list[Presence] = []
        """Other projects that may manage nodes."""
        self.schedulers = frozenset({"shoal", "default-scheduler"})
        """The scheduler names whose pods cause nodes."""
        self.controller: NodeScalingController | None = None
        self._life: ProcessTasks | None = None
        self._kills = 0

    # -- the controller -----------------------------------------------------------------------------------------------

    async def start_controller(self) -> None:
        self._kills += 1
        life = _life(self.cluster, self.crew, f"nodes-{self._kills}", 100 + self._kills)
        context = life.context("node-scaling", self.crew.way_in("system:shoal", "node-scaling"))
        served = Served(context)
        self.controller = NodeScalingController(
            context, served, self.cloud, self.schedulers, self.others, FreeingPolicy.of(self.own)
        )
        await served.look()
        life.start("node scaling", self.controller.run)
        life.start("served", served.run)
        life.start("caches", life.informers.run)
        self._life = life

    async def kill_controller(self) -> None:
        if self._life is not None:
            await self._life.end()
            self._life = None

    # -- objects ------------------------------------------------------------------------------------------------------

    async def add_pool(
        self,
        name: str = "gpu",
        types: Sequence[str] = ("p5.48xlarge",),
        *,
        capacity: Sequence[str] = ("on-demand",),
        zones: Sequence[str] = (),
        limits: dict[str, str] | None = None,
        template: Obj | None = None,
        **spec: Any,
    ) -> Obj:
        requirements: list[Obj] = [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(capacity)},
        ]
        if zones:
            requirements.append({"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(zones)})
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        inner = {"requirements": requirements, "nodeClassRef": reference, **(template or {})}
        body: Obj = {"template": {"spec": inner}, "disruption": {"consolidateAfter": "Never"}, **spec}
        if limits is not None:
            body["limits"] = limits
        return await self.cluster.create(NODE_POOLS, {"metadata": {"name": name}, "spec": body})

    async def pod(self, name: str, gpus: int, **parts: Any) -> Obj:
        return await self.cluster.create(PODS, _pod(name, gpus, **parts))

    async def gang(self, name: str, pods: int, gpus: int) -> None:
        """A PodGroup of scheduler-plugins and its pods."""
        await self.cluster.create(LIGHT_POD_GROUPS, {"metadata": {"name": name}, "spec": {"minMember": pods}})
        labels = {"scheduling.x-k8s.io/pod-group": name}
        for number in range(pods):
            await self.pod(f"{name}-{number}", gpus, labels=labels)

    # -- questions ----------------------------------------------------------------------------------------------------

    async def claims(self) -> list[Obj]:
        return await self.cluster.all(NODE_CLAIMS)

    async def nodes(self) -> list[Obj]:
        return await self.cluster.all(NODES)

    async def running(self, prefix: str) -> int:
        pods = await self.cluster.pods()
        return sum(
            pod["metadata"]["name"].startswith(prefix) and pod.get("status", {}).get("phase") == "Running"
            for pod in pods
        )

    async def until_running(self, prefix: str, count: int, within_s: float) -> None:
        async def are() -> bool:
            return await self.running(prefix) == count

        await self.until(are, within_s)

    async def until(self, is_so: Callable[[], Awaitable[bool]], within_s: float) -> None:
        """As that of the small cluster; looked at each second, because nodes take minutes."""
        ends_s = self.cluster.clock.seconds() + within_s
        while not await is_so():
            assert self.cluster.clock.seconds() < ends_s, f"not so after {within_s:g} s"
            await self.cluster.pass_time(1)

    async def instances(self) -> list[CloudInstance]:
        return list(await self.cloud.inner.instances())


def _pod(name: str, gpus: int, labels: dict[str, str] | None = None, notes: Obj | None = None, **spec: Any) -> Obj:
    limits = {GPU: str(gpus)} if gpus else {"cpu": "1"}
    return {
        "metadata": {
            "name": name,
            "labels": labels or {},
            "annotations": {"shoal.dev/run-for": "1000h", **(notes or {})},
        },
        "spec": {
            "schedulerName": "shoal",
            "containers": [{"name": "main", "image": "trainer", "resources": {"limits": limits}}],
            **spec,
        },
    }


class _CloudCrew(Crew):
    """Kubernetes' controllers, and a fleet whose machines are those of the cloud."""

    def __init__(self, cluster: SmallCluster, settings: CloudSettings, machines: Sequence[Machine]) -> None:
        self._cloud_settings = settings
        unneeded = (set(CONTROLLERS) | set(own_controllers(cluster.plane))) - set(NEEDED)
        super().__init__(cluster, machines, random.Random(1), without=unneeded)

    def _scheduler(self) -> Process:
        return Process(self, [])

    def _nodes(self) -> Process:
        def fleet(context: Context) -> Fleet:
            made = Fleet(context, self._machines, self._settings)
            machines = CloudMachines(context, made, self._cloud_settings)
            self.machine_task = asyncio.ensure_future(machines.run())
            return made

        return Process(self, [("kubelet", "system:shoal:fleet", fleet)])


def _life(cluster: SmallCluster, crew: Crew, name: str, seed: int) -> ProcessTasks:
    def way_in(agent: str) -> Api:
        return crew.way_in("system:shoal", agent)

    life = ProcessTasks(way_in(name), way_in(f"{name}-caches"), cluster.clock)
    life.random = random.Random(seed)
    life.informers = Informers(way_in(f"{name}-caches"), cluster.clock, life.random)
    return life


@asynccontextmanager
async def scaled_cluster(
    folder: Path,
    settings: CloudSettings = QUICK,
    *,
    seed: int = 1,
    groups: Iterable[str] = _GROUPS,
    parts: tuple[str, ...] = ("scheduler",),
    own: RunConfiguration | None = None,
    machines: Sequence[Machine] = (),
) -> AsyncIterator[ScaledCluster]:
    async with small_cluster(folder, seed=seed) as cluster:
        name_alike(cluster, seed)
        wanted = frozenset(groups)
        for one in definitions():
            if one["spec"]["group"] in wanted:
                await cluster.create(DEFINITIONS, one)
        await established(cluster)
        crew = _CloudCrew(cluster, settings, machines)
        scaled = ScaledCluster(cluster, crew, settings, own or RunConfiguration())
        life = _life(cluster, crew, "shoal", seed)
        steps = STEPS if own is None else steps_of_rules(own)
        choice = RunChoice(own=scaled.own, builder=POLICIES[DEFAULT_POLICY], steps=steps, controllers=parts)
        try:
            await start_shoal(life, lambda agent: crew.way_in("system:shoal", agent), choice)
            life.start("caches", life.informers.run)
            await scaled.start_controller()
            await cluster.pass_time(5)
            yield scaled
            assert not (broken := crew.broken()), broken
        finally:
            await scaled.kill_controller()
            await life.end()
            await crew.end()
            crew.machine_task.cancel()
            await asyncio.gather(crew.machine_task, return_exceptions=True)
            await asyncio.sleep(0)
