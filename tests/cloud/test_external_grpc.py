"""The client of external gRPC providers keeps the guarantees of the port, though the provider knows no requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from build.cloud_contract import GUARANTEES, CloudUnderTest, pool_of
from build.external_grpc_provider import Provider, served
from build.jumping_clock import JumpingClock
from build.small_clusters import SmallCluster, small_cluster
from shoal.autoscale.nodes.pools import NodePool
from shoal.client.clock import Clock, WallClock
from shoal.client.item import Item, Obj
from shoal.client.kind import CONFIG_MAPS, Kind
from shoal.cloud.external_grpc import ExternalGrpcCloud
from shoal.cloud.external_grpc_account import KEY, NAME, NAMESPACE, read_accounts
from shoal.cloud.external_grpc_calls import ExternalGrpcCalls
from shoal.cloud.external_grpc_settings import ExternalGrpcSettings, external_grpc_settings
from shoal.cloud.port import GROUP_TAG, InstanceRequest, NoCapacityError, ThrottledError
from shoal.embedded.apiserver.protobuf.messages import read_object
from shoal.units.errors import TemporaryError, UserError

TYPE = "p5.48xlarge"


def _request(token: str, count: int = 1, zone: str = "zone-a") -> InstanceRequest:
    return InstanceRequest(token, TYPE, zone, "on-demand", count, tags={GROUP_TAG: token})


@asynccontextmanager
async def _cloud(folder: Path) -> AsyncIterator[tuple[ExternalGrpcCloud, Provider, SmallCluster]]:
    provider = Provider()
    async with small_cluster(folder) as cluster, served(provider) as address:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": NAME}}, NAMESPACE)
        calls = ExternalGrpcCalls(ExternalGrpcSettings(address))
        try:
            yield _client(calls, cluster), provider, cluster
        finally:
            await calls.close()


def _client(calls: ExternalGrpcCalls, cluster: SmallCluster, clock: Clock | None = None) -> ExternalGrpcCloud:
    return ExternalGrpcCloud(calls, cluster.api, clock or WallClock(), _decoded)


def _decoded(data: bytes) -> Obj:
    return read_object("v1", "Node", data)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda each: each.__name__)
async def test_the_port_is_kept(tmp_path: Path, guarantee: Callable[[CloudUnderTest], Awaitable[None]]) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        await guarantee(CloudUnderTest(cloud, pool_of(TYPE), _request("many", 4, "zone-b")))
        assert all(len(group.instances) == group.target <= group.most for group in provider.groups.values())


@pytest.mark.parametrize("lost", ["NodeGroupIncreaseSize", "NodeGroupNodes"])
async def test_a_request_whose_answer_was_lost_is_not_carried_out_twice(tmp_path: Path, lost: str) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        await cloud.create(_request("before"))
        provider.loses_answers_of = lost
        with pytest.raises(TemporaryError):
            await cloud.create(_request("one", 2))
        assert len(await cloud.create(_request("one", 2))) == 2
        assert provider.groups["first"].target == 3


async def test_a_process_killed_before_its_request_is_continued(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, cluster):
        provider.refuses_to_increase = True
        await cloud.create(_request("one", 0))
        raw = '{"first": {"launches": {"one": {"count": 2, "created_s": 0}}}}'
        await cluster.patch(CONFIG_MAPS, NAME, {"data": {KEY: raw}}, namespace=NAMESPACE)
        provider.refuses_to_increase = False
        assert len(await cloud.create(_request("one", 2))) == 2
        assert provider.groups["first"].target == 2


async def test_machines_of_others_are_not_those_of_a_launch(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        provider.groups["first"].target = 2
        provider.act()
        others = set(provider.groups["first"].instances)
        made = await cloud.create(_request("one", 2))
        assert others.isdisjoint(each.provider_id for each in made)
        await cloud.delete([each.id for each in made])
        assert set(provider.groups["first"].instances) == others
        assert provider.groups["first"].target == 2


async def test_instances_that_come_late_take_the_places_of_their_launch(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        provider.acts_at_once = False
        assert await cloud.create(_request("one", 2)) == ()
        pending = await cloud.instances()
        assert [(each.state, each.provider_id) for each in pending] == [("pending", "")] * 2
        provider.act()
        made = await cloud.create(_request("one", 2))
        assert [each.id for each in made] == [each.id for each in pending]
        assert {each.provider_id for each in made} == set(provider.groups["first"].instances)


async def test_machines_that_do_not_exist_yet_are_not_made_any_more(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        provider.acts_at_once = False
        await cloud.create(_request("one", 2))
        await cloud.delete([each.id for each in await cloud.instances()])
        assert provider.groups["first"].target == 0
        provider.act()
        assert await cloud.instances() == ()


async def test_a_launch_that_the_provider_refuses_is_taken_back(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, cluster):
        provider.refuses_to_increase = True
        with pytest.raises(NoCapacityError, match="no more machines"):
            await cloud.create(_request("one", 2))
        assert await cloud.instances() == ()
        data = (await cluster.get(CONFIG_MAPS, NAME, NAMESPACE))["data"]
        assert read_accounts(data[KEY]) == {}


async def test_a_launch_with_an_instance_that_failed_is_taken_back_as_a_whole(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        provider.acts_at_once = False
        await cloud.create(_request("one", 3))
        group = provider.groups["first"]
        group.target = 1
        provider.act()
        provider.fails_instances = True
        group.target = 2
        provider.act()
        group.target = 3
        with pytest.raises(NoCapacityError, match="QUOTA_EXCEEDED"):
            await cloud.create(_request("one", 3))
        assert (group.target, group.instances) == (0, {})


async def test_a_deletion_that_did_not_arrive_is_repeated_and_nothing_takes_its_place(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        first, second = await cloud.create(_request("one", 2))
        provider.drops_requests_of = "NodeGroupDeleteNodes"
        with pytest.raises(TemporaryError):
            await cloud.delete([first.id])
        assert len(provider.groups["first"].instances) == 2
        assert [each.id for each in await cloud.instances()] == [second.id]
        assert set(provider.groups["first"].instances) == {second.provider_id}
        await cloud.create(_request("other"))
        assert provider.groups["first"].target == 2


class _ChangedMeanwhile:
    """Changes the ConfigMap after it was read."""

    def __init__(self, cluster: SmallCluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster.api, name)

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        found = await self._cluster.api.get(kind, namespace, name)
        await self._cluster.patch(kind, name, {"data": {"other": found.uid}}, namespace=namespace)
        return found


async def test_the_account_of_another_process_is_not_overwritten(tmp_path: Path) -> None:
    provider = Provider()
    async with small_cluster(tmp_path) as cluster, served(provider) as address:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": NAME}}, NAMESPACE)
        calls = ExternalGrpcCalls(ExternalGrpcSettings(address))
        cloud = ExternalGrpcCloud(calls, _ChangedMeanwhile(cluster), WallClock(), _decoded)
        with pytest.raises(ThrottledError):
            await cloud.create(_request("one"))
        await calls.close()
    assert provider.groups["first"].target == 0


async def test_a_machine_that_came_after_it_was_given_up_is_deleted(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        provider.acts_at_once = False
        await cloud.create(_request("one"))
        provider.drops_requests_of = "NodeGroupDecreaseTargetSize"
        with pytest.raises(TemporaryError):
            await cloud.delete([each.id for each in await cloud.instances()])
        provider.act()
        assert await cloud.instances() == ()
        group = provider.groups["first"]
        assert (group.target, group.instances) == (0, {})


async def test_a_request_that_is_carried_out_late_is_not_repeated_at_once_and_its_surplus_ends(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, cluster):
        provider.late = []
        with pytest.raises(TemporaryError):
            await cloud.create(_request("one", 2))
        with pytest.raises(ThrottledError, match="no answer yet"):
            await cloud.create(_request("one", 2))
        late, provider.late = list(provider.late), None
        # Another process does not know when the request was made.
        other = _client(cloud._calls, cluster)
        made = await other.create(_request("one", 2))
        for group, count in late:
            provider.groups[group].target += count
        provider.act()
        assert {each.id for each in await other.instances()} == {each.id for each in made}
        assert len(provider.groups["first"].instances) == 2


async def _give_up_before_it_is_carried_out(cloud: ExternalGrpcCloud, provider: Provider) -> tuple[str, int]:
    """A launch whose request has no answer; the request."""
    provider.late = []
    with pytest.raises(TemporaryError):
        await cloud.create(_request("one", 2))
    await cloud.delete([each.id for each in await cloud.instances()])
    (late,), provider.late = provider.late, None
    return late


async def test_machines_of_a_request_that_is_carried_out_after_its_launch_was_given_up_are_deleted(
    tmp_path: Path,
) -> None:
    async with _cloud(tmp_path) as (cloud, provider, cluster):
        id_, count = await _give_up_before_it_is_carried_out(cloud, provider)
        assert await cloud.instances() == ()
        group = provider.groups[id_]
        group.target += count
        provider.act()
        assert await cloud.instances() == ()
        assert (group.target, group.instances) == (0, {})
        await cloud.instances()
        assert (await cluster.get(CONFIG_MAPS, NAME, NAMESPACE))["data"] == {KEY: "{}"}


async def test_nothing_is_kept_in_the_account_of_a_lost_request_that_was_carried_out_and_is_given_up(
    tmp_path: Path,
) -> None:
    async with _cloud(tmp_path) as (cloud, provider, cluster):
        provider.acts_at_once = False
        provider.loses_answers_of = "NodeGroupIncreaseSize"
        with pytest.raises(TemporaryError):
            await cloud.create(_request("one", 2))
        await cloud.delete([each.id for each in await cloud.instances()])
        assert provider.groups["first"].target == 0
        assert (await cluster.get(CONFIG_MAPS, NAME, NAMESPACE))["data"] == {KEY: "{}"}


async def test_a_late_target_is_lowered_before_its_machines_exist(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        id_, count = await _give_up_before_it_is_carried_out(cloud, provider)
        provider.acts_at_once = False
        provider.groups[id_].target += count
        await cloud.instances()
        assert provider.groups[id_].target == 0


async def test_machines_that_users_add_long_after_a_lost_request_are_left(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, cluster):
        clock = JumpingClock(WallClock())
        other = _client(cloud._calls, cluster, clock)
        id_, count = await _give_up_before_it_is_carried_out(other, provider)
        assert (await cluster.get(CONFIG_MAPS, NAME, NAMESPACE))["data"] != {KEY: "{}"}
        clock.ahead_s += other.launch_limit_s + 1
        await other.instances()
        assert (await cluster.get(CONFIG_MAPS, NAME, NAMESPACE))["data"] == {KEY: "{}"}
        provider.groups[id_].target += count
        provider.act()
        await other.instances()
        assert len(provider.groups[id_].instances) == count


async def test_one_launch_of_a_lost_request_is_given_up_and_the_other_one_gets_its_machine(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, cluster):
        provider.late = []
        for token in ("one", "two"):
            with pytest.raises(TemporaryError):
                await cloud.create(_request(token))
        await cloud.delete([each.id for each in await cloud.instances() if each.id.startswith("one/")])
        late, provider.late = provider.late, None
        for id_, count in late:
            provider.groups[id_].target += count
        provider.act()
        (left,) = await cloud.instances()
        (made,) = await _client(cloud._calls, cluster).create(_request("two"))
        assert (left.id, left.provider_id) == (made.id, made.provider_id)
        assert set(provider.groups["first"].instances) == {made.provider_id}


async def test_an_account_that_was_changed_to_amounts_below_zero_is_refused(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, _, cluster):
        raw = '{"first": {"unmade": -1, "asked": 1}}'
        await cluster.patch(CONFIG_MAPS, NAME, {"data": {KEY: raw}}, namespace=NAMESPACE)
        with pytest.raises(UserError, match="changed by others"):
            await cloud.instances()


async def test_an_accepted_deletion_is_requested_once(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        first, *others = await cloud.create(_request("one", 3))
        provider.lists_deleted = True
        await cloud.delete([first.id])
        for _ in range(3):
            assert [each.id for each in await cloud.instances()] == [each.id for each in others]
        assert provider.groups["first"].target == 2
        assert provider.requests.count("NodeGroupDeleteNodes") == 1


async def test_a_group_that_is_gone_or_refuses_does_not_stop_the_others(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        (kept,) = await cloud.create(_request("one"))
        (other,) = await cloud.create(_request("other", zone="zone-b"))
        provider.refuses = "NodeGroupDeleteNodes"
        await cloud.delete([other.id])
        assert [each.id for each in await cloud.instances()] == [kept.id]
        provider.refuses = ""
        gone = provider.groups.pop("first")
        (listed,) = await cloud.instances()
        assert (listed.provider_id, listed.state) == (kept.provider_id, "pending")
        assert provider.groups["second"].instances == {}
        provider.groups["first"] = gone
        assert [each.state for each in await cloud.instances()] == ["running"]


@pytest.mark.parametrize("price", [float("nan"), float("inf"), -1.0])
async def test_a_price_that_is_none_is_reported(tmp_path: Path, price: float, caplog: pytest.LogCaptureFixture) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        provider.price = price
        assert await cloud.instance_types(NodePool("gpu")) == ()
    assert "the price of its machines is not known" in caplog.text


async def test_groups_whose_labels_differ_are_no_offerings_of_one_type(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        provider.groups["second"].labels = {**provider.groups["second"].labels, "team": "x"}
        (one,) = await cloud.instance_types(NodePool("gpu"))
        assert [each.zone for each in one.offerings] == ["zone-a"]
        with pytest.raises(NoCapacityError):
            await cloud.create(_request("one", zone="zone-b"))


async def test_the_table_describes_machines_where_the_provider_does_not(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        provider.has_prices = provider.has_templates = False
        provider.groups = {TYPE: provider.groups["first"], "unknown": provider.groups["second"]}
        (one,) = await cloud.instance_types(NodePool("gpu"))
        assert (one.name, one.capacity["nvidia.com/gpu"]) == (TYPE, 8)
        assert one.offerings[0].price > 0


async def test_a_template_that_is_no_node_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with _cloud(tmp_path) as (cloud, provider, _):
        provider.taints = b"\xff\xff"
        assert await cloud.instance_types(NodePool("gpu")) == ()
    assert "the provider's template is no Node" in caplog.text


async def test_without_its_config_map_the_message_has_the_command_that_creates_it(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (cloud, _, cluster):
        await cluster.delete(CONFIG_MAPS, NAME, namespace=NAMESPACE)
        with pytest.raises(UserError, match="is missing") as found:
            await cloud.instances()
        assert found.value.fix == "kubectl create configmap shoal-external-grpc --namespace kube-system"


async def test_a_provider_that_does_not_answer_is_asked_again_later(tmp_path: Path) -> None:
    async with _cloud(tmp_path) as (_, _, cluster):
        calls = ExternalGrpcCalls(ExternalGrpcSettings("127.0.0.1:1"))
        with pytest.raises(TemporaryError, match=r"127\.0\.0\.1:1"):
            await _client(calls, cluster).instances()
        await calls.close()


WRONG = {
    "no file": (None, "cannot be read"),
    "no YAML": ("{", "is not YAML"),
    "no address": ("key: x", "has no address"),
    "no port": ("address: provider", "has no port"),
    "a key alone": ("{address: 'p:1', key: x}", "belong together"),
    "a certificate without CA": ("{address: 'p:1', key: x, cert: y}", "needs the CA"),
    "a list": ("{address: 'p:1', cacert: []}", "cannot be read"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_file_is_refused(tmp_path: Path, case: tuple[str | None, str]) -> None:
    content, words = case
    file = tmp_path / "cloud-config"
    if content is not None:
        file.write_text(content)
    if content and "[]" in content:
        file.write_text("{address: 'p:1', cacert: /nowhere}")
    with pytest.raises(UserError, match=words):
        external_grpc_settings(file)
