"""The cloud refuses, answers late, forgets, and takes back; the controller is killed: nothing is provisioned twice, and
no gang keeps a part of its nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from build.scaled_clusters import QUICK, ScaledCluster, scaled_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import NODE_CLAIMS, NODE_POOLS
from shoal.client.item import Obj
from shoal.client.kind import EVENTS, NODES
from shoal.cloud.port import POOL_TAG, InstanceRequest, ThrottledError
from shoal.embedded.cloud.settings import CapacityRule, CloudFailures, SpotMarket
from shoal.units.errors import TemporaryError, UserError


class _Times:
    """Raises the error at the first so many requests."""

    def __init__(self, count: int, error: Exception) -> None:
        self.left = count
        self.error = error

    def __call__(self, _: InstanceRequest) -> None:
        if self.left:
            self.left -= 1
            raise self.error


@virtual
async def test_another_offering_is_tried_where_one_has_no_capacity(tmp_path: Path) -> None:
    rules = (CapacityRule(0, zone="us-east-1a"), CapacityRule(0, zone="us-east-1b"))
    async with scaled_cluster(tmp_path, replace(QUICK, capacity=rules)) as world:
        await world.add_pool()
        await world.pod("solo", 8)
        await world.until_running("solo", 1, within_s=120)
        assert [each.zone for each in await world.instances()] == ["us-east-1c"]
        assert [request.zone for request in world.cloud.requests] == ["us-east-1a", "us-east-1b", "us-east-1c"]


@virtual
async def test_a_gang_gets_all_its_nodes_where_there_is_capacity_for_all(tmp_path: Path) -> None:
    rules = (CapacityRule(3, zone="us-east-1a"), CapacityRule(3, zone="us-east-1c"))
    async with scaled_cluster(tmp_path, replace(QUICK, capacity=rules)) as world:
        await world.add_pool()
        await world.gang("train", 4, gpus=8)
        await world.until_running("train", 4, within_s=180)
        assert {each.zone for each in await world.instances()} == {"us-east-1b"}
        assert len(await world.nodes()) == 4


@virtual
async def test_a_gang_for_which_no_zone_has_capacity_keeps_no_node(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path, replace(QUICK, capacity=(CapacityRule(3),))) as world:
        await world.add_pool()
        await world.gang("train", 4, gpus=8)
        await world.cluster.pass_time(3000)
        assert world.cloud.most_instances == 0
        assert await world.instances() == []
        # The offerings are tried again, each time later.
        assert 3 < len(world.cloud.requests) < 30


@virtual
async def test_a_request_whose_response_was_lost_is_not_repeated_as_another_one(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        world.cloud.after_create = _Times(2, TemporaryError("no answer", 2.0))
        await world.add_pool()
        await world.gang("train", 2, gpus=8)
        await world.until_running("train", 2, within_s=120)
        assert len(world.cloud.requests) == 3
        assert len({request.token for request in world.cloud.requests}) == 1
        assert world.cloud.most_instances == 2


@virtual
async def test_a_throttled_request_is_repeated_when_the_cloud_says(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        world.cloud.before_create = _Times(1, ThrottledError("slow down", 7.0))
        await world.add_pool()
        await world.pod("solo", 8)
        await world.until_running("solo", 1, within_s=120)
        assert len(world.cloud.requests) == 2
        assert world.controller is not None
        assert world.controller.observer.requests_refused["throttled"] == 1


@virtual
async def test_a_request_that_the_cloud_refuses_is_reported_and_does_not_hold_up_other_pools(tmp_path: Path) -> None:
    def refuse(request: InstanceRequest) -> None:
        if request.tags[POOL_TAG] == "broken":
            raise UserError("EC2 refused the request: there is no launch template default")

    async with scaled_cluster(tmp_path) as world:
        world.cloud.before_create = refuse
        await world.add_pool("broken", weight=50)
        await world.add_pool("good")
        await world.pod("one", 8)
        await world.pod("two", 8)
        await world.until_running("", 2, within_s=120)
        assert {each.tags[POOL_TAG] for each in await world.instances()} == {"good"}
        # The offering is that of the refused request.
        (first, *_) = [each for each in world.cloud.requests if each.tags[POOL_TAG] == "broken"]
        assert first.zone in {each.zone for each in await world.instances()}
        assert not [each for each in await world.claims() if each["metadata"]["name"].startswith("broken")]
        assert "LaunchRefused" in {each["reason"] for each in await world.cluster.all(EVENTS)}
        ready = await _ready(world, "broken")
        assert (ready["status"], ready["reason"]) == ("False", "LaunchRefused")
        assert "no launch template" in ready["message"]
        assert (await _ready(world, "good"))["status"] == "True"


async def _ready(world: ScaledCluster, pool: str) -> Obj:
    (found,) = [each for each in await world.cluster.all(NODE_POOLS) if each["metadata"]["name"] == pool]
    conditions: dict[str, Obj] = {each["type"]: each for each in found["status"]["conditions"]}
    return conditions["Ready"]


@virtual
async def test_a_pool_whose_requests_are_refused_is_tried_ever_later_until_it_is_corrected(tmp_path: Path) -> None:
    is_wrong = True

    def refuse(_: InstanceRequest) -> None:
        if is_wrong:
            raise UserError("EC2 refused the request: there is no launch template default")

    async with scaled_cluster(tmp_path) as world:
        world.cloud.before_create = refuse
        await world.add_pool()
        await world.pod("solo", 8)
        await world.cluster.pass_time(600)
        # After 30, 60, 120, 240 seconds.
        assert 3 <= len(world.cloud.requests) <= 5
        is_wrong = False
        await world.until_running("solo", 1, within_s=700)
        assert (await _ready(world, "gpu"))["status"] == "True"


@virtual
async def test_a_node_that_never_registers_is_given_up_and_replaced(tmp_path: Path) -> None:
    # With this seed the machine of the first request never registers, and that of the second one does.
    settings = replace(QUICK, seed=3, failures=CloudFailures(never_registers=0.5))
    async with scaled_cluster(tmp_path, settings) as world:
        await world.add_pool()
        await world.pod("solo", 8)
        await world.until_running("solo", 1, within_s=8000)
        zones = [request.zone for request in world.cloud.requests]
        assert len(zones) > 1
        assert len(set(zones[:2])) == 2, "another offering is tried"
        await world.cluster.pass_time(30)
        assert len(await world.instances()) == len(await world.nodes()) == 1


@virtual
async def test_a_node_that_registers_late_is_waited_for(tmp_path: Path) -> None:
    slow = replace(QUICK, boot_s=(0.0, 60.0, 700.0, 720.0, 800.0, 800.0))
    async with scaled_cluster(tmp_path, slow) as world:
        await world.add_pool()
        await world.pod("solo", 8)
        await world.until_running("solo", 1, within_s=830)
        assert len(world.cloud.requests) == 1


@virtual
async def test_an_instance_without_a_claim_is_removed(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool()
        await world.pod("solo", 8)
        await world.until_running("solo", 1, within_s=120)
        tags = {"shoal.dev/launch-group": "lost"}
        await world.cloud.inner.create(InstanceRequest("lost", "p5.48xlarge", "us-east-1a", "on-demand", tags=tags))
        await world.cluster.pass_time(90)
        assert len(await world.instances()) == 1


@pytest.mark.parametrize("moment", ["before the request", "after the request"])
def test_a_controller_that_is_killed_is_continued_by_its_successor(tmp_path: Path, moment: str) -> None:
    @virtual
    async def story() -> None:
        async with scaled_cluster(tmp_path) as world:
            killed: list[InstanceRequest] = []

            def kill(request: InstanceRequest) -> None:
                if not killed:
                    killed.append(request)
                    raise _Killed

            if moment == "before the request":
                world.cloud.before_create = kill
            else:
                world.cloud.after_create = kill
            await world.add_pool()
            await world.gang("train", 3, gpus=8)
            await world.cluster.until(lambda: bool(killed), 60)
            await world.kill_controller()
            await world.start_controller()
            await world.until_running("train", 3, within_s=180)
            assert world.cloud.most_instances == 3
            assert len(await world.claims()) == len(await world.nodes()) == 3

    story()


class _Killed(BaseException):
    """Ends the process of the controller."""


@virtual
async def test_a_spot_node_is_drained_on_notice_and_its_pod_gets_another_node(tmp_path: Path) -> None:
    settings = replace(QUICK, spot=SpotMarket(mean_lifetime_s=900.0))
    async with scaled_cluster(tmp_path, settings) as world:
        await world.add_pool(capacity=["spot"])
        await world.pod("solo", 8)
        await world.until_running("solo", 1, within_s=300)
        (first,) = await world.nodes()
        await world.until(lambda: _is_gone(world, first["metadata"]["name"]), 20_000)
        reasons = {each["reason"] for each in await world.cluster.all(EVENTS)}
        assert "Disrupted" in reasons


async def _is_gone(world: ScaledCluster, name: str) -> bool:
    return all(node["metadata"]["name"] != name for node in await world.nodes())


@virtual
async def test_a_node_that_a_user_deletes_ends_its_instance(tmp_path: Path) -> None:
    async with scaled_cluster(tmp_path) as world:
        await world.add_pool()
        await world.pod("solo", 8)
        await world.until_running("solo", 1, within_s=120)
        (node,) = await world.nodes()
        await world.cluster.delete(NODES, node["metadata"]["name"])
        await world.until(lambda: _is_gone(world, node["metadata"]["name"]), 120)
        assert await world.instances() == []
        assert await world.cluster.all(NODE_CLAIMS) == []
