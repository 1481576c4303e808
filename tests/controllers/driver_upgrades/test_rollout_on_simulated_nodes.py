"""A new driver version rolls over simulated nodes with DaemonSets, a scheduler, and a gang that runs on two of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.component_pods import pod_template
from build.fleets import FleetRun, machine
from build.live_schedulers import start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.upgrading_clusters import upgrades_controller
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES
from shoal.client.item import Item, Obj
from shoal.client.kind import DAEMON_SETS, DEFINITIONS, JOBS, NODES, PODS
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.controllers.daemon_sets.controller import daemon_set_controller
from shoal.embedded.controllers.jobs.controller import job_controller
from shoal.embedded.controllers.node_lifecycle.controller import node_lifecycle_controller
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.operator.upgrades.states import STATE_LABEL
from shoal.store.watched.cluster import WatchSettings

_COMPONENTS = ("driver", "toolkit", "device-plugin", "feature-discovery", "validator")
_VERSION = "nvidia.com/cuda.driver-version.full"
_OLD, _NEW = "nvcr.io/nvidia/driver:570.133.20-ubuntu24.04", "nvcr.io/nvidia/driver:580.82.07-ubuntu24.04"


class Rollout:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.worst_unschedulable = 0
        cluster.informers.of(NODES).on_change(self._look)
        cluster.informers.of(PODS).on_change(self._look)

    def _look(self, _before: Item | None, _after: Item | None) -> None:
        nodes = [item.obj() for item in self.cluster.informers.of(NODES)]
        unschedulable = sum(bool(one["spec"].get("unschedulable")) for one in nodes)
        self.worst_unschedulable = max(self.worst_unschedulable, unschedulable)

    async def install(self) -> None:
        definition = next(one for one in definitions() if one["metadata"]["name"] == "clusterpolicies.nvidia.com")
        await self.cluster.create(DEFINITIONS, definition)
        for component in _COMPONENTS:
            template = pod_template(component, _OLD if component == "driver" else "example.com/component:1.0")
            spec: Obj = {
                "selector": {"matchLabels": template["metadata"]["labels"]},
                "template": template,
                "updateStrategy": {"type": "OnDelete"},
            }
            await self.cluster.create(DAEMON_SETS, {"metadata": {"name": component}, "spec": spec})
        upgrade = {"autoUpgrade": True, "maxParallelUpgrades": 1, "maxUnavailable": 1}
        spec = {"driver": {"upgradePolicy": upgrade}}
        await self.cluster.create(CLUSTER_POLICIES, {"metadata": {"name": "cluster-policy"}, "spec": spec})

    async def set_driver(self, image: str) -> None:
        template = {"spec": {"containers": [{"name": "nvidia-driver-ctr", "image": image}]}}
        await self.cluster.patch(DAEMON_SETS, "driver", {"spec": {"template": template}})

    async def labels(self, name: str) -> dict[str, str]:
        nodes = await self.cluster.all(NODES)
        return {one["metadata"]["name"]: one["metadata"]["labels"].get(name, "") for one in nodes}

    async def allocatable(self) -> set[str]:
        return {one["status"]["allocatable"].get("nvidia.com/gpu", "none") for one in await self.cluster.all(NODES)}

    async def is_installed(self) -> bool:
        return await self.allocatable() == {"8"} and set((await self.labels(STATE_LABEL)).values()) == {"upgrade-done"}

    async def is_upgraded(self) -> bool:
        return set((await self.labels(_VERSION)).values()) == {"580.82.07"} and await self.is_installed()

    async def gang_places(self) -> list[str]:
        """The nodes of the running pods of the gang that are not leaving."""
        return sorted(
            one["spec"]["nodeName"]
            for one in await self.cluster.pods()
            if one["metadata"]["name"].startswith("training-")
            and one["status"].get("phase") == "Running"
            and not one["metadata"].get("deletionTimestamp")
        )


@asynccontextmanager
async def rollout(folder: Path, nodes: int) -> AsyncIterator[Rollout]:
    machines = tuple(machine(f"node-{number}", gpus=8, gpu_software="pods") for number in range(nodes))
    async with small_cluster(folder, [daemon_set_controller, job_controller, node_lifecycle_controller]) as cluster:
        start_scheduler(cluster, watch=WatchSettings(schedulers=frozenset({"shoal", "default-scheduler"})))
        fleet = FleetRun(cluster, machines, FleetSettings())
        found = Rollout(cluster)
        await found.install()
        cluster.start(upgrades_controller)
        await cluster.until(found.is_installed, 900)
        try:
            yield found
        finally:
            await fleet.kill()


@virtual
async def test_a_new_driver_version_rolls_node_by_node_and_gpus_are_back_at_the_end(tmp_path: Path) -> None:
    async with rollout(tmp_path, 3) as run:
        assert set((await run.labels(_VERSION)).values()) == {"570.133.20"}
        await run.set_driver(_NEW)
        await run.cluster.until(run.is_upgraded, 3600)
        assert run.worst_unschedulable == 1


@virtual
@pytest.mark.parametrize("gang", ["true", "2"])
async def test_a_gang_on_two_nodes_is_stopped_and_started_as_a_whole(tmp_path: Path, gang: str) -> None:
    async with rollout(tmp_path, 3) as run:
        container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
        template = {
            "metadata": {"annotations": {"shoal.dev/run-for": "10h"}},
            "spec": {"restartPolicy": "Never", "schedulerName": "shoal", "containers": [container]},
        }
        job = {
            "metadata": {"name": "training", "annotations": {"shoal.dev/gang": gang}},
            "spec": {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template},
        }
        await run.cluster.create(JOBS, job)

        async def runs() -> bool:
            return len(await run.gang_places()) == 2

        await run.cluster.until(runs)
        await run.set_driver(_NEW)
        alone_s = 0
        while not await run.is_upgraded():
            await run.cluster.pass_time(1)
            alone_s += len(await run.gang_places()) == 1
            assert run.cluster.clock.seconds() < 1_767_225_600 + 7200
        assert run.worst_unschedulable == 1
        # A pod ends within its grace period, and its mate is asked to at the same time.
        assert alone_s <= 4
        await run.cluster.until(runs, 120)


@virtual
async def test_a_driver_that_cannot_be_compiled_stops_the_rollout_until_it_is_healed(tmp_path: Path) -> None:
    async with rollout(tmp_path, 3) as run:
        fault = {"shoal.dev/component-faults": '{"driver": "error"}'}
        for name in ("node-0", "node-1", "node-2"):
            await run.cluster.patch(NODES, name, {"metadata": {"annotations": fault}})
        # The drivers that run crash at once, and start again with the fault.
        await run.set_driver(_NEW)

        async def has_failed() -> bool:
            return "upgrade-failed" in (await run.labels(STATE_LABEL)).values()

        await run.cluster.until(has_failed, 7200)
        await run.cluster.pass_time(600)
        states = sorted((await run.labels(STATE_LABEL)).values())
        assert states == ["upgrade-failed", "upgrade-required", "upgrade-required"]
        (stopped,) = [one for one in await run.cluster.events("cluster-policy") if one["type"] == "Warning"]
        assert stopped["reason"] == "DriverUpgradesStopped"
        for name in ("node-0", "node-1", "node-2"):
            body = {"metadata": {"annotations": {"shoal.dev/component-faults": None}}}
            await run.cluster.patch(NODES, name, body)
        await run.cluster.until(run.is_upgraded, 7200)
