"""Capacity of present nodes is freed before others are provisioned, in the configured order and for a limited time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.fleets import machine
from build.scaled_clusters import ScaledCluster, process_tasks, scaled_cluster
from build.virtual_time import virtual
from shoal.api.run_configuration import NodeScalingRules, PreemptionRules, RunConfiguration
from shoal.autoscale.node_claims.offering_failures import OfferingFailures
from shoal.autoscale.nodes.before_provisioning import FreeingPolicy, Hold, UnitOutcome, WaitingUnit
from shoal.autoscale.nodes.plan import NodePlan
from shoal.client.ecosystem_kinds import NODE_POOLS
from shoal.client.kind import NODES, PODS, PRIORITY_CLASSES
from shoal.controllers.node_scaling.claim_writer import ClaimWriter
from shoal.controllers.node_scaling.figures import NodeScalingObserver
from shoal.controllers.node_scaling.parts import ScalingParts
from shoal.controllers.node_scaling.repartitioning import Repartitioning
from shoal.store.freed_capacity import FreedCapacity

SLICE = "nvidia.com/mig-1g.10gb"
NODE = "own"
CUT_POOL = {"metadata": {"labels": {"nvidia.com/mig.config": "all-1g.10gb"}}}


def own_machine(*, allowed: bool = True, **more: Any) -> Any:
    labels = {"shoal.dev/mig-repartition": "true"} if allowed else {}
    return machine(NODE, gpus=2, labels=labels, mig_strategy="mixed", mig_config="all-disabled", **more)


async def wants_slice(world: ScaledCluster) -> None:
    part = {"name": "main", "image": "server", "resources": {"limits": {SLICE: "1"}}}
    await world.pod("slice", 0, containers=[part])


async def pool_of_slices(world: ScaledCluster) -> None:
    """Its nodes have the instances that the pod requests."""
    await world.add_pool()
    await world.cluster.patch(NODE_POOLS, "gpu", {"spec": {"template": CUT_POOL}})


NODE_WITHOUT_MANAGER = {
    "metadata": {
        "name": NODE,
        "labels": {
            "shoal.dev/mig-repartition": "true",
            "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
            "nvidia.com/gpu.count": "2",
            "nvidia.com/mig.capable": "true",
            "nvidia.com/mig.strategy": "mixed",
            "nvidia.com/mig.config": "all-disabled",
            "nvidia.com/mig.config.state": "success",
        },
    },
    "status": {"allocatable": {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "2"}},
}


async def layout(world: ScaledCluster) -> str:
    (node,) = await world.nodes()
    return str(node["metadata"]["labels"]["nvidia.com/mig.config"])


async def reasons(world: ScaledCluster, name: str) -> set[str]:
    return {each["reason"] for each in await world.cluster.events(name)}


@virtual
async def test_idle_gpus_get_the_layout_that_a_pod_waits_for_and_no_node_is_provisioned(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, machines=[own_machine()]) as world:
        await pool_of_slices(world)
        await world.cluster.pass_time(30)
        await wants_slice(world)
        await world.until_running("slice", 1, within_s=120)
        assert world.cloud.requests == []
        assert {"CapacityFreedFirst"} <= await reasons(world, "slice")
        assert "Repartitioning" in await reasons(world, NODE)


@virtual
async def test_a_node_without_permission_keeps_its_layout(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, machines=[own_machine(allowed=False)]) as world:
        await pool_of_slices(world)
        await world.cluster.pass_time(30)
        await wants_slice(world)
        await world.until_running("slice", 1, within_s=240)
        assert len(world.cloud.requests) == 1


@virtual
async def test_a_layout_that_nobody_applies_delays_provisioning_by_its_timeout_only(tmp_path: Path) -> None:
    own = RunConfiguration(node_scaling=NodeScalingRules(repartition_timeout="50s"))
    async with scaled_cluster(tmp_path, own=own) as world:
        await pool_of_slices(world)
        # A Node without a machine: no MIG manager follows its label.
        await world.cluster.create(NODES, NODE_WITHOUT_MANAGER)
        await wants_slice(world)
        await world.cluster.pass_time(45)
        assert world.cloud.requests == []
        assert await layout(world) == "all-1g.10gb"
        await world.cluster.pass_time(15)
        assert len(world.cloud.requests) == 1


def configured(order: tuple[Any, ...]) -> RunConfiguration:
    return RunConfiguration(
        preemption=PreemptionRules(min_runtime="2m"), node_scaling=NodeScalingRules(before_provisioning=order)
    )


@virtual
@pytest.mark.parametrize("order", [("reclaim",), ()], ids=["reclaim first", "provision first"])
async def test_a_pod_that_has_to_run_for_a_while_yet_is_waited_for_where_the_order_says_so(
    tmp_path: Path, order: tuple[Any, ...]
) -> None:
    async with scaled_cluster(tmp_path, own=configured(order), machines=[machine(NODE, gpus=8)]) as world:
        await world.cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        await world.add_pool()
        await world.pod("low", 8)
        await world.until_running("low", 1, within_s=60)
        await world.pod("urgent", 8, priorityClassName="high")
        await world.until_running("urgent", 1, within_s=200)
        assert bool(world.cloud.requests) is (not order)
        assert await world.running("low") == (not order)


@virtual
async def test_gpus_that_a_pod_got_meanwhile_keep_their_layout(tmp_path: Path) -> None:
    """A plan takes seconds, in which the scheduler goes on."""
    async with scaled_cluster(tmp_path, machines=[own_machine()]) as world:
        await world.cluster.pass_time(30)
        await world.pod("whole", 1)
        await world.until_running("whole", 1, within_s=60)
        tasks = process_tasks(world.cluster, world.crew, "repartitioning", 7)
        context = tasks.context("node-scaling", world.crew.way_in("system:shoal", "node-scaling"))
        parts = ScalingParts(context, world.cloud, ClaimWriter(context), OfferingFailures(), NodeScalingObserver())
        unit = WaitingUnit("default/slice", (), 0.0)
        found = UnitOutcome(Hold("repartition", 1e12, "", 300.0), {})
        freed = FreedCapacity(FreeingPolicy(), [(unit, found)], {unit.name: ((NODE, "all-1g.10gb"),)})
        tasks.start("caches", tasks.informers.run)
        await context.informers.synced((NODES, PODS))
        repartitioning = Repartitioning(parts)
        await repartitioning.carry_out(freed, NodePlan())
        assert await layout(world) == "all-disabled"
        await world.cluster.delete(PODS, "whole")
        await world.cluster.pass_time(60)
        await repartitioning.carry_out(freed, NodePlan())
        assert await layout(world) == "all-1g.10gb"
        await tasks.end()
