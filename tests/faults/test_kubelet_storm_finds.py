"""What storms found in simulated kubelets, each told as short as it can be."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from build.crews import Crew
from build.fleets import fleet_cluster, machine, pod
from build.small_clusters import small_cluster
from build.stormy_api import CALM, StormyApi, Weather
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.embedded.kubelets.fleet import Fleet


def _is_ready(obj: Obj) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in obj["status"].get("conditions") or ())


@virtual
async def test_a_pod_that_was_thought_lost_with_its_node_is_said_to_be_ready_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        crew = Crew(cluster, [machine()], random.Random(1))
        try:
            await cluster.create(PODS, pod())

            async def is_ready() -> bool:
                return _is_ready(await cluster.get(PODS, "pod"))

            await cluster.until(is_ready)
            await crew.kill("nodes")
            await cluster.pass_time(120)
            assert not await is_ready()
            crew.start("nodes")
            await cluster.until(is_ready, 5)
        finally:
            await crew.end()


@virtual
async def test_a_kubelet_takes_back_what_somebody_else_writes_of_its_pods_readiness(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod())
        await run.until_phase("pod", "Running")
        conditions = [{"type": "Ready", "status": "False"}]
        await run.cluster.patch(PODS, "pod", {"status": {"conditions": conditions}}, "status")

        async def is_ready() -> bool:
            return _is_ready(await run.cluster.get(PODS, "pod"))

        await run.cluster.until(is_ready, 5)
        version = (await run.cluster.get(PODS, "pod"))["metadata"]["resourceVersion"]
        await run.cluster.pass_time(600)
        assert (await run.cluster.get(PODS, "pod"))["metadata"]["resourceVersion"] == version, "it goes on writing"


@virtual
async def test_devices_are_given_away_again_only_when_the_server_knows_that_they_are_free(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=1)) as run:
        await run.cluster.create(PODS, pod("first", gpus=1, run_for="10s", restartPolicy="Never"))
        await run.until_phase("first", "Running")
        await run.kill()
        deaf = StormyApi(run.cluster.api, run.cluster.clock, random.Random(1), CALM)
        context = run.cluster.context("kubelets", deaf)
        run.fleet = Fleet(context, run._machines, run._settings)
        task = asyncio.ensure_future(run.fleet.run())
        await run.cluster.pass_time(2)
        deaf.weather = Weather(refused=1.0)
        await run.cluster.pass_time(20)
        node = run.fleet.node("node-0")
        assert node is not None
        assert not any(one.is_alive for one in next(iter(node.pods.runs.values())).containers)
        assert node.pods.grants, "the server still believes that the pod has its GPU"
        deaf.weather = CALM
        await run.until_phase("first", "Succeeded", 60)
        await run.cluster.pass_time(1)
        assert not node.pods.grants
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@virtual
async def test_a_reboot_whose_end_cannot_be_told_at_first_is_told_later(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        crew = Crew(cluster, [machine()], random.Random(1))
        try:
            await cluster.until(lambda: crew.fleet.names() and crew.fleet.node("node-0"), 5)
            await cluster.pass_time(5)
            fault = json.dumps({"kind": "reboot", "id": "one"})
            await cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/fault": fault}}})
            await cluster.pass_time(40)
            crew.change_weather(Weather(refused=1.0))
            await cluster.pass_time(60)
            crew.change_weather(CALM)

            async def is_over() -> bool:
                node = await cluster.get(NODES, "node-0")
                return "shoal.dev/fault" not in node["metadata"]["annotations"] and _is_ready(node)

            await cluster.until(is_over, 120)
        finally:
            await crew.end()


@virtual
async def test_a_spot_node_that_cannot_tell_of_its_end_at_first_still_goes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        crew = Crew(cluster, [machine()], random.Random(1))
        try:
            await cluster.pass_time(5)
            fault = json.dumps({"kind": "spot-interrupt", "id": "one"})
            await cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/fault": fault}}})
            await cluster.pass_time(100)
            crew.change_weather(Weather(refused=1.0))
            await cluster.pass_time(60)
            crew.change_weather(CALM)

            async def is_gone() -> bool:
                return not await cluster.all(NODES)

            await cluster.until(is_gone, 120)
        finally:
            await crew.end()


@pytest.mark.parametrize("kind", ["reboot", "spot-interrupt"])
@virtual
async def test_a_fault_that_is_taken_back_before_it_is_heard_of_leaves_the_node_ready(
    kind: str, tmp_path: Path
) -> None:
    async with small_cluster(tmp_path) as cluster:
        crew = Crew(cluster, [machine()], random.Random(1), weather=Weather(lag_s=2.0))
        try:
            await cluster.pass_time(10)
            fault = json.dumps({"kind": kind, "id": "one"})
            # While the first change is on its way the other two come to stand in one batch.
            for said in ({"other": "x"}, {"shoal.dev/fault": fault}, {"shoal.dev/fault": None}):
                await cluster.patch(NODES, "node-0", {"metadata": {"annotations": said}})
            await cluster.pass_time(400)
            node = await cluster.get(NODES, "node-0")
            assert _is_ready(node)
            assert not node["spec"].get("unschedulable")
        finally:
            await crew.end()


@virtual
async def test_a_spot_node_goes_whatever_its_interruption_is_called(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.pass_time(5)
        fault = json.dumps({"kind": "spot-interrupt", "id": "ü / " + "x" * 58 + "-"})
        await run.cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/fault": fault}}})
        await run.cluster.pass_time(300)
        assert not await run.cluster.all(NODES)


@virtual
async def test_a_layout_that_was_refused_for_a_pods_sake_is_refused_by_the_next_fleet_too(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=1)) as run:
        await run.cluster.create(PODS, pod(gpus=1))
        await run.until_phase("pod", "Running")
        layout = {"nvidia.com/mig.config": "all-1g.10gb"}
        await run.cluster.patch(NODES, "node-0", {"metadata": {"labels": layout}})
        await run.cluster.pass_time(10)
        before = await run.cluster.get(NODES, "node-0")
        assert before["metadata"]["labels"]["nvidia.com/mig.config.state"] == "failed"
        await run.kill()
        run.start()
        await run.cluster.pass_time(10)
        after = await run.cluster.get(NODES, "node-0")
        assert after["metadata"]["labels"]["nvidia.com/mig.config.state"] == "failed"
        assert after["status"]["allocatable"] == before["status"]["allocatable"]
        node = run.fleet.node("node-0")
        assert node is not None
        assert node.pods.grants
