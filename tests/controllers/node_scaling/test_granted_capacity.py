"""Which pods the carrier of ProvisioningRequests keeps capacity for, and how long it remembers them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from build.foreign_kinds import established
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.autoscale.nodes.plan import NodePlan, PodRefusal
from shoal.autoscale.provisioning_requests.demand import Demand
from shoal.autoscale.provisioning_requests.request import ATOMIC_SCALE_UP
from shoal.client.ecosystem_kinds import PROVISIONING_REQUESTS
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, POD_TEMPLATES
from shoal.controllers.node_scaling.provisioning_requests import ProvisioningRequests
from shoal.embedded.apiserver.foreign.definitions import definitions


@asynccontextmanager
async def _cluster(folder: Path) -> AsyncIterator[tuple[SmallCluster, ProvisioningRequests]]:
    async with small_cluster(folder) as cluster:
        for one in definitions():
            if one["spec"]["group"] == "autoscaling.x-k8s.io":
                await cluster.create(DEFINITIONS, one)
        await established(cluster)
        carrier = ProvisioningRequests(cluster.context())
        carrier.follow(PROVISIONING_REQUESTS, lambda: None)
        yield cluster, carrier


async def _planned(cluster: SmallCluster, carrier: ProvisioningRequests, name: str = "train") -> Demand:
    """Of one request for one pod, which is accepted."""
    template = {"spec": {"containers": [{"name": "main", "image": "trainer"}]}}
    await cluster.create(POD_TEMPLATES, {"metadata": {"name": name}, "template": template})
    sets = [{"podTemplateRef": {"name": name}, "count": 1}]
    spec: Obj = {"provisioningClassName": ATOMIC_SCALE_UP, "podSets": sets}
    await cluster.create(PROVISIONING_REQUESTS, {"metadata": {"name": name}, "spec": spec})
    await cluster.pass_time(1)
    await carrier.advance()
    demand = carrier.demand(())
    assert len(demand.to_provision) == 1
    return demand


async def _granted(carrier: ProvisioningRequests, demand: Demand) -> bool:
    plan = NodePlan(placed={key: "node" for each in demand.to_provision for key in each.keys})
    return await carrier.conclude(demand.to_provision, plan, ["node"], {})


async def _refused(carrier: ProvisioningRequests, demand: Demand) -> None:
    refusals = [PodRefusal(key, reason="no room") for each in demand.to_provision for key in each.keys]
    assert not await carrier.conclude(demand.to_provision, NodePlan(pending=tuple(refusals)), [], {})


@virtual
async def test_capacity_is_granted_for_the_planned_pods_although_their_template_is_deleted(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as (cluster, carrier):
        demand = await _planned(cluster, carrier)
        await cluster.delete(POD_TEMPLATES, "train")
        await cluster.pass_time(1)
        assert await _granted(carrier, demand)
        await cluster.pass_time(1)
        booked = carrier.demand(()).booked
        assert [each.pods for each in booked] == [each.pods for each in demand.to_provision]


@virtual
async def test_nothing_is_remembered_of_requests_that_are_deleted(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as (cluster, carrier):
        assert await _granted(carrier, await _planned(cluster, carrier))
        await _refused(carrier, await _planned(cluster, carrier, "large"))
        assert len(carrier.remembered) == 2
        for name in ("train", "large"):
            await cluster.delete(PROVISIONING_REQUESTS, name)
        await cluster.pass_time(1)
        await carrier.advance()
        assert not carrier.remembered
