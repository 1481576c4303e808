"""The manifest for resource claims: what the agent needs is allowed, and other nodes' slices are out of its reach."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from build.agent_manifest import AGENT, KINDS
from build.claimable import claimable
from build.prepared_claims import allocated
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from build.yaml_texts import yaml_value, yaml_values
from shoal.client.kind import DAEMON_SETS, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from shoal.client.kubelet.slice_publisher import SlicePublisher
from shoal.client.port import Api, Patch
from shoal.client.refusals import ForbiddenError
from shoal.devices.claimable_devices import CLAIM_DRIVER, claimable_devices
from shoal.devices.device_classes import device_classes
from shoal.devices.mps_daemons import MpsFolders
from shoal.devices.plugin_config import DEFAULT_MPS_ROOT
from shoal.devices.resource_slices import Published, partitions_of
from shoal.embedded.apiserver.inside.api import InsideApi

Obj = dict[str, Any]
FOLDER = Path(__file__).parents[2] / "deploy"
FILES = ("agent.yaml", "agent-dra.yaml")
DEVICES = Published(tuple(one.described for one in claimable_devices(claimable())))


@asynccontextmanager
async def installed(folder: Path) -> AsyncIterator[tuple[SmallCluster, Api]]:
    """A cluster with both manifests and the nodes `n0` and `n1`; and the agent of `n0`."""
    async with small_cluster(folder, authorization="rbac") as cluster:
        for file in FILES:
            for document in yaml_values((FOLDER / file).read_text()):
                namespace = document["metadata"].get("namespace", "default")
                await cluster.create(KINDS[document["kind"]], deepcopy(document), namespace)
        for node in ("n0", "n1"):
            await cluster.create(NODES, {"metadata": {"name": node}})
        await cluster.pass_time(1)
        yield cluster, InsideApi(cluster.plane, AGENT, "shoal-agent")


@virtual
async def test_the_agent_may_publish_its_devices_and_read_a_claim(tmp_path: Path) -> None:
    async with installed(tmp_path) as (cluster, api):
        publisher = SlicePublisher(api, "n0")
        assert await publisher.publish(partitions_of(claimable()))
        assert await publisher.publish(DEVICES)
        claim = allocated("a", "gpu-1")
        await cluster.create(RESOURCE_CLAIMS, {"metadata": {"name": "a"}, "spec": claim["spec"]})
        assert (await api.get(RESOURCE_CLAIMS, "default", "a")).name == "a"


@virtual
async def test_the_agent_may_not_change_the_slices_of_another_node(tmp_path: Path) -> None:
    async with installed(tmp_path) as (cluster, api):
        with pytest.raises(ForbiddenError):
            await SlicePublisher(api, "n1").publish(DEVICES)
        await SlicePublisher(cluster.api, "n1").publish(DEVICES)
        (piece,) = await cluster.all(RESOURCE_SLICES)
        with pytest.raises(ForbiddenError):
            await api.delete(RESOURCE_SLICES, "", piece["metadata"]["name"])


@virtual
async def test_the_patch_adds_the_folders_of_the_kubelet_to_the_daemon_set(tmp_path: Path) -> None:
    async with installed(tmp_path) as (cluster, _):
        body = yaml_value((FOLDER / "agent-dra-patch.yaml").read_text())
        await cluster.api.patch(DAEMON_SETS, "shoal-system", "shoal-agent", Patch("strategic", body))
        spec = (await cluster.get(DAEMON_SETS, "shoal-agent", "shoal-system"))["spec"]["template"]["spec"]
        (agent,) = spec["containers"]
        assert agent["args"] == ["agent", "run", "--dra"]
        assert {mount["name"] for mount in agent["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}
        assert len(spec["volumes"]) == 5


def with_comments(text: str) -> str:
    """The manifest with all that it offers in comments: lines with a mapping or an item of a list."""
    return re.sub(r"(?m)^( *)# (?=- |hostPID: |env: |  hostPath: )", r"\1", text)


@virtual
async def test_what_the_patch_offers_for_mps_gives_the_agent_the_folder_of_the_daemons(tmp_path: Path) -> None:
    async with installed(tmp_path) as (cluster, _):
        body = yaml_value(with_comments((FOLDER / "agent-dra-patch.yaml").read_text()))
        await cluster.api.patch(DAEMON_SETS, "shoal-system", "shoal-agent", Patch("strategic", body))
        spec = (await cluster.get(DAEMON_SETS, "shoal-agent", "shoal-system"))["spec"]["template"]["spec"]
        (agent,) = spec["containers"]
        places = {mount["name"]: mount["mountPath"] for mount in agent["volumeMounts"]}
        hosts = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]}
        folders = MpsFolders(DEFAULT_MPS_ROOT, f"{CLAIM_DRIVER}/claim-u")
        # Containers of the host get these paths, so they are the same in the agent's container.
        assert places["mps"] == hosts["mps"] == DEFAULT_MPS_ROOT
        assert Path(folders.pipe).is_relative_to(hosts["mps"])
        assert (places["mps-shm"], hosts["mps-shm"]) == ("/dev/shm", folders.shared_memory)  # noqa: S108 - of a container
        assert places.keys() == hosts.keys()
        assert spec["hostPID"] is True
        values = {one["name"]: one.get("value") for one in agent["env"]}
        assert values["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
        assert values["NVIDIA_VISIBLE_DEVICES"] == "all"


def test_the_classes_of_the_manifest_are_those_of_the_embedded_cluster() -> None:
    documents = list(yaml_values((FOLDER / "agent-dra.yaml").read_text()))
    written = [one for one in documents if one["kind"] == "DeviceClass"]
    assert [{"metadata": one["metadata"], "spec": one["spec"]} for one in written] == list(device_classes())
