"""The adapter of Cluster API keeps the guarantees of the port, and removes the machines that were meant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.cloud_contract import GUARANTEES, CloudUnderTest, pool_of
from build.management_cluster import (
    DEPLOYMENTS,
    MACHINES,
    POOLS,
    ClusterApiController,
    install_kinds,
    machine_deployment,
)
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.taints import Taint
from shoal.autoscale.nodes.pools import NodePool
from shoal.client.kind import Kind
from shoal.cloud.cluster_api import ClusterApiCloud
from shoal.cloud.cluster_api_settings import ClusterApiSettings
from shoal.cloud.machine_groups import LAUNCHES, MOST
from shoal.cloud.port import GROUP_TAG, InstanceRequest, NoCapacityError, ThrottledError
from shoal.units.errors import UserError

TYPE = "p5.48xlarge"
SETTINGS = ClusterApiSettings("train", "default")


def _request(token: str, count: int = 1, zone: str = "zone-a") -> InstanceRequest:
    return InstanceRequest(token, TYPE, zone, "on-demand", count, tags={GROUP_TAG: token})


@asynccontextmanager
async def _cloud(folder: Path) -> AsyncIterator[tuple[ClusterApiCloud, ClusterApiController, SmallCluster]]:
    async with small_cluster(folder) as cluster:
        await install_kinds(cluster)
        controller = ClusterApiController(cluster)
        yield ClusterApiCloud(controller, cluster.clock, SETTINGS), controller, cluster


@pytest.mark.parametrize("kind", [DEPLOYMENTS, POOLS], ids=lambda each: each.name)
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda each: each.__name__)
def test_the_port_is_kept(tmp_path: Path, guarantee: Callable[[CloudUnderTest], Awaitable[None]], kind: Kind) -> None:
    @virtual
    async def story() -> None:
        async with _cloud(tmp_path) as (cloud, _, cluster):
            await cluster.create(kind, machine_deployment("first"))
            await cluster.create(kind, machine_deployment("second", zone="zone-b", most=3))
            await guarantee(CloudUnderTest(cloud, pool_of(TYPE), _request("many", 4, "zone-b")))

    story()


@virtual
async def test_a_machine_that_is_deleted_is_removed_and_no_other(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        await cluster.create(DEPLOYMENTS, machine_deployment("first", replicas=2))
        await controller.act()
        older = {each["metadata"]["name"] for each in await cluster.all(MACHINES)}
        made = await cloud.create(_request("one", 3))
        assert not older & {each.provider_id.removeprefix("test:///") for each in made}
        second = sorted(made, key=lambda each: each.id)[1]
        await cloud.delete([second.id])
        await cloud.delete([second.id])
        assert controller.removed == [second.provider_id.removeprefix("test:///")]
        assert (await cluster.get(DEPLOYMENTS, "first"))["spec"]["replicas"] == 4
        left = await cloud.instances()
        assert {each.id for each in left} == {each.id for each in made} - {second.id}


@virtual
async def test_machines_that_come_late_take_the_places_of_their_launch(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        await cluster.create(DEPLOYMENTS, machine_deployment("first"))
        controller.acts_at_once = controller.has_infrastructure = False
        assert await cloud.create(_request("one", 2)) == ()
        pending = await cloud.instances()
        assert [(each.state, each.provider_id) for each in pending] == [("pending", "")] * 2
        await controller.act()
        assert await cloud.create(_request("one", 2)) == ()
        controller.has_infrastructure = True
        await controller.act()
        made = await cloud.create(_request("one", 2))
        assert {each.id for each in made} == {each.id for each in pending}
        assert len({each.provider_id for each in made}) == 2
        assert (await cluster.get(DEPLOYMENTS, "first"))["spec"]["replicas"] == 2


@virtual
async def test_a_machine_that_does_not_exist_yet_is_deleted_once_it_does(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        await cluster.create(DEPLOYMENTS, machine_deployment("first", replicas=1))
        await controller.act()
        controller.acts_at_once = False
        await cloud.create(_request("one"))
        (pending,) = await cloud.instances()
        await cloud.delete([pending.id])
        assert (await cluster.get(DEPLOYMENTS, "first"))["spec"]["replicas"] == 2
        controller.acts_at_once = True
        await controller.act()
        await cloud.delete([pending.id])
        assert await cloud.instances() == ()
        assert [each["metadata"]["name"] for each in await cluster.all(MACHINES)] == ["first-001"]


@virtual
async def test_a_launch_of_which_no_machine_ever_came_is_taken_back(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        await cluster.create(POOLS, machine_deployment("first"))
        controller.acts_at_once = False
        await cloud.create(_request("one", 2))
        ids = [each.id for each in await cloud.instances()]
        await cloud.delete(ids)
        assert [each.id for each in await cloud.instances()] == ids
        await cluster.pass_time(cloud.launch_limit_s + 1)
        await cloud.delete(ids)
        assert await cloud.instances() == ()
        assert (await cluster.get(POOLS, "first"))["spec"]["replicas"] == 0


@virtual
async def test_machines_that_others_ask_for_are_not_those_of_a_launch(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        await cluster.create(DEPLOYMENTS, machine_deployment("first"))
        made = await cloud.create(_request("one"))
        await cluster.patch(DEPLOYMENTS, "first", {"spec": {"replicas": 3}})
        await controller.act()
        assert await cloud.instances() == made


@virtual
async def test_a_machine_that_is_replaced_leaves_its_place_to_the_new_one(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        await cluster.create(DEPLOYMENTS, machine_deployment("first", replicas=1))
        await controller.act()
        (before,) = await cloud.create(_request("one"))
        await cluster.delete(MACHINES, before.provider_id.removeprefix("test:///"))
        await controller.act()
        (after,) = await cloud.instances()
        assert after.id == before.id
        assert after.provider_id not in {before.provider_id, ""}


@virtual
async def test_a_change_of_others_in_between_is_not_overwritten(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        await cluster.create(DEPLOYMENTS, machine_deployment("first"))

        await cluster.patch(DEPLOYMENTS, "first", {"spec": {"replicas": 4}})
        controller.before_patch = {"spec": {"replicas": 5}}
        with pytest.raises(ThrottledError):
            await cloud.create(_request("one", 2))
        assert (await cluster.get(DEPLOYMENTS, "first"))["spec"]["replicas"] == 5


@virtual
async def test_a_pool_gets_the_machines_whose_taints_it_states(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, _, cluster):
        tainted = {"capacity.cluster-autoscaler.kubernetes.io/taints": "nvidia.com/gpu=present:NoSchedule"}
        await cluster.create(DEPLOYMENTS, machine_deployment("first", annotations=tainted))
        assert await cloud.instance_types(NodePool("open")) == ()
        (found,) = await cloud.instance_types(
            NodePool("gpu", taints=(Taint("nvidia.com/gpu", "NoSchedule", "present"),))
        )
        assert found.capacity["nvidia.com/gpu"] == 8
        assert [(each.zone, each.price) for each in found.offerings] == [("zone-a", 98.32)]


WRONG = {
    "no price": ({"shoal.dev/price-per-hour": "x"}, "is no price per hour"),
    "no number": ({"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "many"}, "is no whole number"),
    "no quantity": ({"capacity.cluster-autoscaler.kubernetes.io/memory": "much"}, "is no quantity"),
    "no label": ({"capacity.cluster-autoscaler.kubernetes.io/labels": "gpu"}, "is no list of key=value"),
    "no taint": ({"capacity.cluster-autoscaler.kubernetes.io/taints": "gpu:Never"}, "is no list of key=value:effect"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_a_group_with_a_wrong_annotation_is_reported_and_left_out(
    tmp_path: Path, case: tuple[dict[str, str], str], caplog: pytest.LogCaptureFixture
) -> None:
    annotations, words = case

    @virtual
    async def story() -> None:
        async with _cloud(tmp_path) as (cloud, _, cluster):
            await cluster.create(DEPLOYMENTS, machine_deployment("wrong", annotations=annotations))
            await cluster.create(DEPLOYMENTS, machine_deployment("right", instance_type="a3-highgpu-8g"))
            assert [each.name for each in await cloud.instance_types(NodePool("gpu"))] == ["a3-highgpu-8g"]
            with pytest.raises(NoCapacityError):
                await cloud.create(_request("one"))

    story()
    assert words in caplog.text


@virtual
async def test_without_cluster_api_the_message_says_what_to_do(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        cloud = ClusterApiCloud(cluster.api, cluster.clock, SETTINGS)
        with pytest.raises(UserError, match="does not serve Machines") as found:
            await cloud.instances()
        assert "--cloud-kubeconfig" in (found.value.fix or "")


@virtual
async def test_an_account_that_cannot_be_read_is_an_error_and_no_machine_counts_as_gone(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, _, cluster):
        await cluster.create(DEPLOYMENTS, machine_deployment("first", annotations={LAUNCHES: "[]"}))
        with pytest.raises(UserError, match="was changed by others"):
            await cloud.instances()


@pytest.mark.parametrize("key", ["shoal.dev/price-per-hour", MOST])
def test_the_machines_of_a_group_that_offers_nothing_more_stay(tmp_path: Path, key: str) -> None:
    @virtual
    async def story() -> None:
        async with _cloud(tmp_path) as (cloud, controller, cluster):
            await cluster.create(DEPLOYMENTS, machine_deployment("first"))
            made = await cloud.create(_request("one", 2))
            value = None if key == MOST else "98,32"
            await cluster.patch(DEPLOYMENTS, "first", {"metadata": {"annotations": {key: value}}})
            assert await cloud.instances() == made
            assert await cloud.instance_types(NodePool("gpu")) == ()
            await cloud.delete([each.id for each in made])
            assert len(controller.removed) == 2

    story()


@virtual
async def test_a_launch_takes_a_group_whose_taints_and_machine_the_plan_has_seen(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, _, cluster):
        tainted = {"capacity.cluster-autoscaler.kubernetes.io/taints": "dedicated=team-a:NoSchedule"}
        smaller = {"capacity.cluster-autoscaler.kubernetes.io/cpu": "96"}
        await cluster.create(DEPLOYMENTS, machine_deployment("aaa", annotations=tainted))
        await cluster.create(DEPLOYMENTS, machine_deployment("bbb", most=1))
        await cluster.create(DEPLOYMENTS, machine_deployment("ccc", annotations=smaller))
        (made,) = await cloud.create(_request("one"))
        assert made.id.startswith("default/bbb/")
        with pytest.raises(NoCapacityError, match="bbb has 1 of at most 1"):
            await cloud.create(_request("other"))


@virtual
async def test_a_pool_whose_provider_makes_no_machines_is_not_used(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        controller.acts_at_once = False
        await cluster.create(POOLS, machine_deployment("first", replicas=2))
        assert await cloud.instance_types(NodePool("gpu")) == ()
        with pytest.raises(NoCapacityError):
            await cloud.create(_request("one"))
        assert (await cluster.get(POOLS, "first"))["spec"]["replicas"] == 2


@virtual
async def test_places_that_others_take_away_with_their_replicas_are_forgotten(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        await cluster.create(DEPLOYMENTS, machine_deployment("first"))
        await cloud.create(_request("one", 2))
        await cluster.patch(DEPLOYMENTS, "first", {"spec": {"replicas": 1}})
        await controller.act()
        assert len(await cloud.instances()) == 1
        (made,) = await cloud.create(_request("two"))
        assert made.tags[GROUP_TAG] == "two"
        assert (await cluster.get(DEPLOYMENTS, "first"))["spec"]["replicas"] == 2


@virtual
async def test_a_machine_that_drains_keeps_its_place_and_its_id(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        await cluster.create(DEPLOYMENTS, machine_deployment("first"))
        (made,) = await cloud.create(_request("one"))
        name = made.provider_id.removeprefix("test:///")
        await cluster.patch(MACHINES, name, {"metadata": {"finalizers": ["machine.cluster.x-k8s.io"]}})
        await cluster.delete(MACHINES, name)
        await controller.act()
        (listed,) = await cloud.instances()
        assert (listed.provider_id, listed.state) == (made.provider_id, "stopping")


@virtual
async def test_while_machines_are_replaced_none_is_removed(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, controller, cluster):
        await cluster.create(DEPLOYMENTS, machine_deployment("first"))
        (made,) = await cloud.create(_request("one"))
        for current in (0, 1):
            await cluster.patch(DEPLOYMENTS, "first", {"status": {"replicas": 1, "upToDateReplicas": current}})
            await cloud.delete([made.id])
            assert len(controller.removed) == current
