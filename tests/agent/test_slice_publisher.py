"""The slices of a node are written when they change, with a higher generation, and those of others are left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.claimable import NODE, cause, claimable
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Item
from shoal.client.kind import NODES, RESOURCE_SLICES, Kind
from shoal.client.kubelet.slice_publisher import SlicePublisher
from shoal.devices.claimable_devices import ClaimableInput, claimable_devices
from shoal.devices.resource_slices import Published, partitions_of
from shoal.units.errors import TemporaryError, UserError

Obj = dict[str, Any]


def content(given: ClaimableInput) -> Published:
    return Published(tuple(one.described for one in claimable_devices(given)))


async def slices(cluster: SmallCluster) -> list[Obj]:
    found = await cluster.all(RESOURCE_SLICES)
    return [one for one in found if one["spec"]["driver"] == "gpu.nvidia.com" and one["spec"].get("nodeName") == NODE]


async def generations(cluster: SmallCluster) -> list[int]:
    return [one["spec"]["pool"]["generation"] for one in await slices(cluster)]


@virtual
async def test_slices_are_written_once_and_again_only_for_a_change(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": NODE}})
        assert await SlicePublisher(cluster.api, NODE).publish(content(claimable()))
        (first,) = await slices(cluster)
        assert first["metadata"]["ownerReferences"][0]["name"] == NODE
        # The agent was started again.
        publisher = SlicePublisher(cluster.api, NODE)
        assert not await publisher.publish(content(claimable()))
        assert await slices(cluster) == [first]
        assert await publisher.publish(content(claimable("dgx-h100[mig=all-1g.10gb]")))
        assert await generations(cluster) == [2]


@virtual
async def test_a_taint_comes_and_goes_and_keeps_its_time_meanwhile(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": NODE}})
        publisher = SlicePublisher(cluster.api, NODE)
        await publisher.publish(content(claimable()))
        await publisher.publish(content(claimable(faults={1: (cause("xid-79"),)})))
        assert not await publisher.publish(content(claimable(faults={1: (cause("xid-79"),)})))
        (piece,) = await slices(cluster)
        (taint,) = piece["spec"]["devices"][1]["taints"]
        assert (taint["key"], taint["value"], taint["effect"]) == ("gpu.nvidia.com/xid", "79", "NoSchedule")
        await cluster.pass_time(60)
        await publisher.publish(content(claimable(faults={1: (cause("xid-79"), cause("lost"))})))
        (piece,) = await slices(cluster)
        assert taint in piece["spec"]["devices"][1]["taints"]
        await publisher.publish(content(claimable()))
        (piece,) = await slices(cluster)
        assert not any(device.get("taints") for device in piece["spec"]["devices"])
        assert await generations(cluster) == [4]


@virtual
async def test_the_number_of_slices_follows_the_devices(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": NODE}})
        publisher = SlicePublisher(cluster.api, NODE)
        for number, (given, count) in enumerate(
            [(content(claimable()), 1), (partitions_of(claimable()), 5), (Published(()), 1)], start=1
        ):
            assert await publisher.publish(given)
            assert not await publisher.publish(given)
            assert await generations(cluster) == [number] * count
            assert {one["spec"]["pool"]["resourceSliceCount"] for one in await slices(cluster)} == {count}


@virtual
async def test_slices_of_other_drivers_and_nodes_are_left_alone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": NODE}})
        for name, driver, node in (("a", "gpu.nvidia.com", "n2"), ("b", "other.example.com", NODE)):
            pool = {"name": node, "resourceSliceCount": 1, "generation": 1}
            spec = {"driver": driver, "nodeName": node, "pool": pool}
            await cluster.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})
        publisher = SlicePublisher(cluster.api, NODE)
        await publisher.publish(partitions_of(claimable()))
        await publisher.publish(content(claimable()))
        others = [await cluster.get(RESOURCE_SLICES, name) for name in ("a", "b")]
        assert [one["metadata"]["generation"] for one in others] == [1, 1]


@virtual
async def test_a_slice_that_was_deleted_or_changed_is_written_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": NODE}})
        publisher = SlicePublisher(cluster.api, NODE)
        await publisher.publish(partitions_of(claimable()))
        first, second, *_ = await slices(cluster)
        await cluster.delete(RESOURCE_SLICES, first["metadata"]["name"])
        changed = {**second, "spec": {**second["spec"], "pool": {**second["spec"]["pool"], "generation": 9}}}
        await cluster.api.update(RESOURCE_SLICES, changed)
        assert await publisher.publish(partitions_of(claimable()))
        assert await generations(cluster) == [10] * 5


@virtual
async def test_without_its_node_no_slice_is_written(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        with pytest.raises(UserError, match="the cluster has no node n1; name the Node"):
            await SlicePublisher(cluster.api, NODE).publish(content(claimable()))
        assert await slices(cluster) == []


class FailingApi:
    """Fails at the write with this number, as when the connection is lost; passes on all other calls."""

    def __init__(self, cluster: SmallCluster, number: int) -> None:
        self._api, self._left = cluster.api, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def create(self, kind: Kind, obj: Obj) -> Item:
        self._count()
        return await self._api.create(kind, obj)

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        self._count()
        return await self._api.update(kind, obj, subresource)

    async def delete(self, *given: Any) -> Item | None:
        self._count()
        return await self._api.delete(*given)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TemporaryError("the connection was lost", 1.0)


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("is_growing", [True, False])
@virtual
async def test_a_pass_that_failed_at_any_write_is_completed_by_the_next(
    tmp_path: Path, number: int, *, is_growing: bool
) -> None:
    few, many = content(claimable()), partitions_of(claimable())
    before, after = (few, many) if is_growing else (many, few)
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": NODE}})
        await SlicePublisher(cluster.api, NODE).publish(before)
        failing: Any = FailingApi(cluster, number)
        with pytest.raises(TemporaryError):
            await SlicePublisher(failing, NODE).publish(after)
        assert await SlicePublisher(cluster.api, NODE).publish(after)
        assert not await SlicePublisher(cluster.api, NODE).publish(after)
        found = await generations(cluster)
        assert found == [found[0]] * (5 if is_growing else 1)
        assert found[0] > 1
