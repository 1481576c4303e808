"""Instances on demand of the device plugin are refused where GPUs are given to resource claims, with what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.fake_nvml import FakeGpu, FakeNvml
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.agent.dra.layout_refusal import REASON, report_refused_layout
from shoal.agent.mig.label_controller import MigLabelController, MigSettings
from shoal.agent.mig.layout_change import NodeMig
from shoal.agent.mig.nvml_mig import NvmlMigControl
from shoal.agent.nvml import NvmlDriver
from shoal.client.item import Obj
from shoal.client.kind import NODES
from shoal.devices.names import OWN_MIG_LAYOUT, OWN_MIG_WANTED

DYNAMIC = {OWN_MIG_LAYOUT: "dynamic"}
WANTED = {f"{OWN_MIG_WANTED}u1": "0:1g.10gb@0"}


@virtual
@pytest.mark.parametrize("metadata", [{"labels": DYNAMIC}, {"annotations": DYNAMIC}], ids=["label", "annotation"])
async def test_the_setting_is_reported_each_time_that_it_appears(tmp_path: Path, metadata: Obj) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n", **metadata}})
        task = asyncio.ensure_future(report_refused_layout(cluster.api, cluster.clock, "n"))
        await cluster.pass_time(2.0)
        (event,) = await cluster.events("n")
        assert (event["reason"], event["type"]) == (REASON, "Warning")
        assert f"kubectl label node n {OWN_MIG_LAYOUT}-" in event["message"]
        assert "--dra-dynamic-mig" in event["message"]
        await cluster.patch(NODES, "n", {"metadata": {"labels": {"other": "x"}}})
        await cluster.pass_time(60.0)
        assert [one.get("count", 1) for one in await cluster.events("n")] == [1]
        task.cancel()


@virtual
async def test_a_node_without_the_setting_has_no_event(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n", "labels": {OWN_MIG_LAYOUT: "static"}}})
        task = asyncio.ensure_future(report_refused_layout(cluster.api, cluster.clock, "n"))
        await cluster.pass_time(2.0)
        assert await cluster.events("n") == []
        task.cancel()


@virtual
@pytest.mark.parametrize("has_device_plugin", [True, False])
async def test_an_instance_is_created_only_where_a_device_plugin_advertises_it(
    tmp_path: Path, has_device_plugin: bool
) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n", "labels": DYNAMIC, "annotations": WANTED}})
        gpus = [FakeGpu(0)]
        library = FakeNvml(gpus)
        mig = NodeMig(NvmlDriver(library), NvmlMigControl(library))
        settings = MigSettings("n", creates_on_demand=has_device_plugin, is_inline=True)
        await MigLabelController(cluster.api, cluster.clock, mig, settings).follow()
        assert [one.profile for one in gpus[0].instances] == (["1g.10gb"] if has_device_plugin else [])
