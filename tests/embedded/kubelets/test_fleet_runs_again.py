"""A fleet whose run has ended is run once more, as whoever keeps it up does after a fault in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from build.fleets import FleetRun, fleet_cluster, machine, pod, statuses
from build.virtual_time import virtual
from shoal.client.item import Item
from shoal.client.kind import LEASES, NODES, PODS


@asynccontextmanager
async def _once_more(run: FleetRun) -> AsyncIterator[None]:
    again = asyncio.ensure_future(run.fleet.run())
    try:
        yield
        assert not again.done()
    finally:
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)


@virtual
async def test_a_fleet_that_runs_once_more_beats_takes_pods_and_keeps_those_it_had(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=8)) as run:
        cluster = run.cluster
        await cluster.create(PODS, pod("old", gpus=4, run_for="100s", restartPolicy="Never"))
        before = statuses(await run.until_phase("old", "Running"))["main"]
        began = cluster.clock.seconds()
        await run.kill()
        await cluster.pass_time(30)
        lease = (await cluster.get(LEASES, "node-0", "kube-node-lease"))["spec"]["renewTime"]
        async with _once_more(run):
            await cluster.pass_time(30)
            assert (await cluster.get(LEASES, "node-0", "kube-node-lease"))["spec"]["renewTime"] > lease
            await cluster.create(PODS, pod("new", gpus=4))
            await run.until_phase("new", "Running", 5)
            after = statuses(await cluster.get(PODS, "old"))["main"]
            assert after == before
            await run.until_phase("old", "Succeeded", 100)
            assert abs(cluster.clock.seconds() - began - 100) < 2


@virtual
async def test_a_node_that_fails_after_a_second_run_is_silent_and_can_be_healed(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        cluster = run.cluster
        await cluster.create(PODS, pod())
        await run.until_phase("pod", "Running")
        await run.kill()
        async with _once_more(run):
            await cluster.pass_time(1)
            fault = {"metadata": {"annotations": {"shoal.dev/fault": '{"kind": "fail"}'}}}
            await cluster.patch(NODES, "node-0", fault)
            await cluster.pass_time(20)
            assert statuses(await cluster.get(PODS, "pod"))["main"]["restartCount"] == 0
            await cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/fault": None}}})
            await cluster.pass_time(3)
            assert statuses(await cluster.get(PODS, "pod"))["main"]["restartCount"] == 1


@virtual
async def test_a_pod_that_cannot_be_read_does_not_keep_the_others_from_being_taken_over(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        cluster = run.cluster
        for name in ("first", "second"):
            await cluster.create(PODS, pod(name, run_for="60s", restartPolicy="Never"))
            begun = (await run.until_phase(name, "Running"))["status"]["startTime"]
        await run.kill()
        for number, spec in enumerate(({"nodeName": 7}, {"nodeName": "node-0", "containers": 7})):
            name, uid = f"odd-{number}", f"u-{number}"
            odd = {"metadata": {"name": name, "uid": uid}, "spec": spec, "status": {"startTime": begun}}
            cluster.informers.of(PODS).learn(Item("default", name, uid, 1_000_000 + number, msgspec.json.encode(odd)))
        run.start()
        for name in ("first", "second"):
            await run.until_phase(name, "Succeeded", 70)
