"""The names of devices in a pod's binding: the node's kubelet gives those, and a later process reads them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.deciders import decider
from build.gpu_pods import device_manager, granted, status_of
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import in_virtual_time, virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.embedded.gpus.device_manager import DeviceManager

GPU, SHARED, MIG = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"
DEVICES = "shoal.dev/devices"


async def add_machine(cluster: SmallCluster, spec: str) -> DeviceManager:
    machine = device_manager(spec)
    has = {"cpu": "96", "memory": "1Ti", "pods": "110"}
    has |= {name: str(one.allocatable) for name, one in machine.resources().items()}
    words = {
        field: {name: text for name, text in found.items() if text is not None}
        for field, found in (("labels", machine.labels()), ("annotations", machine.annotations()))
    }
    await cluster.create(NODES, {"metadata": {"name": "n1", **words}, "status": {"capacity": has, "allocatable": has}})
    await cluster.patch(NODES, "n1", {"spec": {"taints": None}})
    return machine


def pod(name: str, *amounts: dict[str, str], **annotations: str) -> Obj:
    containers = [
        {"name": f"c{at}", "image": "i", "resources": {"limits": limits, "requests": limits}}
        for at, limits in enumerate(amounts)
    ]
    noted = {key.replace("_", "-"): text for key, text in annotations.items()}
    return {"metadata": {"name": name, "annotations": noted}, "spec": {"containers": containers}}


async def named(cluster: SmallCluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode((await cluster.get(PODS, name))["metadata"]["annotations"][DEVICES])
    return found


CASES = {
    "whole GPUs": ("p5.48xlarge", [pod("a", {GPU: "2"}, {GPU: "1"}), pod("b", {GPU: "4"})]),
    "parts of GPUs": ("p5.48xlarge", [pod("a", {}, gpu_fraction="0.5"), pod("b", {}, gpu_fraction="0.4")]),
    "time slices": ("g5.12xlarge[time-slicing=3]", [pod("a", {GPU: "2"}, {GPU: "3"}), pod("b", {GPU: "4"})]),
    "MPS by another name": ("g5.12xlarge[mps=4,rename]", [pod("a", {SHARED: "1"}), pod("b", {SHARED: "1"})]),
    "fixed instances": ("dgx-a100-80[mig=all-1g.10gb]", [pod("a", {MIG: "3"}, {MIG: "1"}), pod("b", {MIG: "2"})]),
    "instances as GPUs": ("dgx-a100-40[mig=all-1g.5gb,strategy=single]", [pod("a", {GPU: "3"}), pod("b", {GPU: "1"})]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_kubelet_gives_what_the_binding_names_and_a_successor_knows_it(tmp_path: Path, case: str) -> None:
    async def story() -> None:
        spec, pods = CASES[case]
        async with small_cluster(tmp_path) as cluster:
            machine = await add_machine(cluster, spec)
            for one in pods:
                await cluster.create(PODS, msgspec.json.decode(msgspec.json.encode(one)))
            async with decider(cluster) as first:
                for name in ("a", "b"):
                    await first.bind(name)
                await cluster.pass_time(1)
                before = first.facts()
            for name in ("b", "a"):
                chosen = await named(cluster, name)
                for grant in granted(machine.admit(await cluster.get(PODS, name))):
                    assert list(grant.device_ids) == chosen[grant.container][grant.resource]
            async with decider(cluster) as second:
                after = second.facts()
            for was, now in zip(before.devices.planes, after.devices.planes, strict=True):
                assert (was == now).all()
            assert {key: one.grant for key, one in before.pods.items()} == {
                key: one.grant for key, one in after.pods.items()
            }

    in_virtual_time(story())


@virtual
async def test_pods_that_are_prepared_at_one_time_get_different_replicas(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_machine(cluster, "g5.xlarge[time-slicing=3]")
        for name in ("a", "b", "c"):
            await cluster.create(PODS, pod(name, {GPU: "1"}))
        async with decider(cluster) as first:
            found = []
            for name in ("a", "b", "c"):
                decided = first.decided(name)
                assert not isinstance(decided, str)
                found.append((await first.writer.prepare(*decided))[DEVICES])
            assert len(set(found)) == 3
            again = first.decided("b")
            assert not isinstance(again, str)
            assert (await first.writer.prepare(*again))[DEVICES] == found[1]


@virtual
async def test_replicas_that_the_kubelet_gave_to_a_pod_of_others_are_passed_over(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        machine = await add_machine(cluster, "g5.xlarge[time-slicing=3]")
        foreign = pod("foreign", {GPU: "2"})
        foreign["spec"]["nodeName"] = "n1"
        made = await cluster.create(PODS, foreign)
        given = granted(machine.admit(made))
        status = {"phase": "Running", **status_of(given)}
        for one in status["containerStatuses"]:
            one |= {"image": "i", "imageID": "", "ready": True, "restartCount": 0}
        await cluster.patch(PODS, "foreign", {"status": status}, "status")
        await cluster.create(PODS, pod("a", {GPU: "1"}))
        async with decider(cluster) as first:
            await first.bind("a")
        ((chosen,),) = (await named(cluster, "a"))["c0"].values()
        assert chosen not in given[0].device_ids
        (grant,) = granted(machine.admit(await cluster.get(PODS, "a")))
        assert grant.device_ids == (chosen,)


@virtual
async def test_a_pod_without_devices_gets_no_annotation(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_machine(cluster, "p5.48xlarge")
        await cluster.create(PODS, pod("a", {"cpu": "1"}))
        async with decider(cluster) as first:
            decided = first.decided("a")
            assert not isinstance(decided, str)
            assert await first.writer.prepare(*decided) == {}
