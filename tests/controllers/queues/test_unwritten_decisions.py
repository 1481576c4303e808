"""Decisions about Workloads that change while the write of the decision hangs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.live_schedulers import LiveScheduler, add_node
from build.queue_admission import (
    add_flavor,
    add_queue,
    configure,
    finish,
    is_so,
    queued_cluster,
    start_admission,
    submit,
    until_so,
)
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.conditions import Status, WriteTime, put
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, RESOURCE_FLAVORS, WORKLOADS
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.port import Patch
from shoal.client.write_through import WriteThroughApi
from shoal.controllers.queues.workload_status.status_writer import StatusChange, StatusWriter
from shoal.store.watched.queues import WatchedQueues


class Hanging(WriteThroughApi):
    """The first write of the Workload `a` hangs until `goes_on` is set."""

    def __init__(self, cluster: SmallCluster) -> None:
        super().__init__(cluster.api, cluster.informers)
        self.hangs = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        if (kind, name) == (WORKLOADS, "a") and not self.hangs.is_set():
            self.hangs.set()
            await self.goes_on.wait()
        elif kind == WORKLOADS and name == "a":
            await asyncio.sleep(0.5)
        return await super().patch(kind, namespace, name, patch, subresource)


async def _begun(cluster: SmallCluster) -> Hanging:
    """A queue of four cores, and `a`, whose admission to all of them is decided and not written."""
    api = Hanging(cluster)
    start_admission(cluster, api=api)
    await add_node(cluster, "n1", cpu="64")
    await add_flavor(cluster)
    await add_queue(cluster, cpu="4")
    await cluster.pass_time(2)
    await submit(cluster, "a", cpu="4")
    await asyncio.wait_for(api.hangs.wait(), 60)
    return api


@virtual
async def test_a_workload_recreated_under_its_name_while_its_admission_is_written_gets_its_quota_once(
    tmp_path: Path,
) -> None:
    async with queued_cluster(tmp_path) as cluster:
        api = await _begun(cluster)
        await cluster.delete(WORKLOADS, "a")
        await submit(cluster, "a", cpu="4")
        await cluster.pass_time(0.2)
        # It would be admitted first if the quota looked free for a moment.
        await submit(cluster, "b", cpu="4", priority=10)
        await cluster.pass_time(0.2)
        api.goes_on.set()
        await cluster.pass_time(10)
        admitted = [name for name in ("a", "b") if await is_so(cluster, name)]
        assert len(admitted) == 1
        await finish(cluster, admitted[0])
        await until_so(cluster, "b" if admitted == ["a"] else "a")


@pytest.mark.parametrize("fields", ["waitForPodsReady: {timeout: 5m}", "fairSharing: {}"])
@virtual
async def test_another_configuration_keeps_admissions_that_are_not_written_yet(tmp_path: Path, fields: str) -> None:
    async with queued_cluster(tmp_path) as cluster:
        api = await _begun(cluster)
        # It would be admitted first if the quota looked free for a moment.
        await submit(cluster, "b", cpu="4", priority=10)
        await cluster.pass_time(0.2)
        await configure(cluster, "kueue-system", fields)
        await cluster.pass_time(0.2)
        assert not await is_so(cluster, "b", "QuotaReserved")
        api.goes_on.set()
        await until_so(cluster, "a")
        await cluster.pass_time(10)
        assert not await is_so(cluster, "b", "QuotaReserved")
        await finish(cluster, "a")
        await until_so(cluster, "b")


@virtual
async def test_other_quota_and_flavors_keep_admissions_that_are_not_written_yet(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        api = await _begun(cluster)
        queue = await cluster.get(CLUSTER_QUEUES, "cq")
        (flavor,) = queue["spec"]["resourceGroups"][0]["flavors"]
        await submit(cluster, "b", cpu="4", priority=10)
        await cluster.pass_time(0.2)
        flavor["resources"][0]["nominalQuota"] = "5"
        await cluster.patch(CLUSTER_QUEUES, "cq", {"spec": queue["spec"]})
        await cluster.patch(RESOURCE_FLAVORS, "default", {"spec": {"tolerations": [{"operator": "Exists"}]}})
        await cluster.pass_time(1)
        assert not await is_so(cluster, "b", "QuotaReserved")
        api.goes_on.set()
        await until_so(cluster, "a")
        await cluster.pass_time(10)
        assert not await is_so(cluster, "b", "QuotaReserved")


@virtual
async def test_a_status_writer_that_is_restarted_writes_what_it_was_writing(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        api = Hanging(cluster)
        one = LiveScheduler(cluster, api)
        watched = WatchedQueues(one.context, one.served, lambda: None)
        cluster.tasks += [asyncio.ensure_future(run()) for run in (one.informers.run, one.served.run, watched.run)]
        await watched.synced()
        made = await submit(cluster, "a")
        await cluster.pass_time(1)
        writer = StatusWriter(one.context, watched, lambda *_: None)
        writer.write("default/a", StatusChange(made["metadata"]["uid"], _held))
        first = asyncio.ensure_future(writer.run())
        await asyncio.wait_for(api.hangs.wait(), 60)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert not writer.is_idle
        cluster.tasks.append(asyncio.ensure_future(writer.run()))
        await until_so(cluster, "a", "QuotaReserved", "False")
        await cluster.until(lambda: writer.is_idle)


def _held(status: Status, moment: WriteTime) -> bool:
    return put(status, "QuotaReserved", (False, "OnHold", "m"), moment)
