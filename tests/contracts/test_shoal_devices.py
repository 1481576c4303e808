"""Devices that Shoal chooses, and the kubelet that gives just those: whole GPUs, replicas, MIG instances.

The simulated nodes that offer replicas and instances are joined by the test, and are gone after it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from build.api_objects import IMAGE
from build.cluster_api import Api, Obj
from build.live_waits import create, name_of, until_items
from build.shoal_pods import SHOAL, is_refused, node_of, words
from build.shoal_process import ShoalProcess
from build.simulated_pods import GPU, pod, simulated_nodes, statuses, until_phase

pytestmark = [pytest.mark.needs("controllers", "kubelet"), pytest.mark.usefixtures("shoal", "simulated_gpus")]
CHOSEN = "shoal.dev/devices"
MIG = "nvidia.com/mig-1g.10gb"


@asynccontextmanager
async def joined(api: Api, kubeconfig: Path, machine: str, *options: str) -> AsyncIterator[str]:
    """The name of one more simulated node."""
    prefix = f"joined-{uuid4().hex[:8]}"
    fleet = f"1x{machine}[{','.join((*options, f'name={prefix}'))}]"
    process = ShoalProcess(kubeconfig, "cluster", "nodes", "--nodes", fleet, "--metrics-port", "0")
    try:
        assert process.is_ready(), process.said
        (node,) = [
            name_of(one) for one in (await api.get("/api/v1/nodes")).ok()["items"] if name_of(one).startswith(prefix)
        ]
        yield node
    finally:
        for one in (await api.get(api.core("pods"))).ok()["items"]:
            await api.delete(api.core("pods", name_of(one)), gracePeriodSeconds=0)
        process.stop()
        for one in (await api.get("/api/v1/nodes")).ok()["items"]:
            if name_of(one).startswith(prefix):
                await api.delete(f"/api/v1/nodes/{name_of(one)}")


async def ask(api: Api, name: str, node: str, *containers: Obj) -> None:
    made = pod(name, *containers, schedulerName=SHOAL, nodeSelector={"kubernetes.io/hostname": node})
    await create(api, made, "pods")


def taking(amount: int, resource: str = GPU, name: str = "main") -> Obj:
    return {"name": name, "image": IMAGE, "resources": {"limits": {resource: str(amount)}}}


def chosen(found: Obj) -> dict[str, dict[str, list[str]]]:
    said: dict[str, dict[str, list[str]]] = json.loads(found["metadata"]["annotations"][CHOSEN])
    return said


def held(found: Obj, resource: str = GPU, name: str = "main") -> list[str]:
    reported = statuses(found)[name]["allocatedResourcesStatus"]
    return [one["resourceID"] for each in reported if each["name"] == resource for one in each["resources"]]


async def test_the_kubelet_gives_what_was_chosen(api: Api) -> None:
    node = name_of((await simulated_nodes(api))[-1])
    await ask(api, "pod", node, taking(2), taking(1, name="other"))
    found = await until_phase(api, "Running")
    said = chosen(found)
    assert {name: {GPU: sorted(held(found, name=name))} for name in ("main", "other")} == {
        name: {GPU: sorted(ids[GPU])} for name, ids in said.items()
    }
    ids = [*said["main"][GPU], *said["other"][GPU]]
    assert (len(said["main"][GPU]), len(ids), len(set(ids))) == (2, 3, 3)


async def test_no_device_is_chosen_twice_and_who_comes_too_late_waits(api: Api) -> None:
    node = (await simulated_nodes(api))[-1]
    number = int(node["status"]["allocatable"][GPU]) // 2
    for place in range(number + 1):
        await ask(api, f"pod-{place}", name_of(node), taking(2))
    found = await until_items(
        api,
        api.core("pods"),
        lambda pods: (
            sum(one["status"].get("phase") == "Running" for one in pods) == number and any(map(is_refused, pods))
        ),
    )
    ids = [one for pod in found if node_of(pod) for one in chosen(pod)["main"][GPU]]
    assert len(set(ids)) == len(ids) == 2 * number
    (left,) = [one for one in found if not node_of(one)]
    assert f"1 Insufficient {GPU}" in words(left)
    (await api.delete(api.core("pods", "pod-0" if name_of(left) != "pod-0" else "pod-1"))).ok()
    await until_phase(api, "Running", name_of(left))


async def test_instances_are_chosen_by_their_own_ids(api: Api, kubeconfig: Path) -> None:
    async with joined(api, kubeconfig, "dgx-a100-80", "mig=all-1g.10gb") as node:
        for place in range(3):
            await ask(api, f"pod-{place}", node, taking(2, MIG))
        ids: list[str] = []
        for place in range(3):
            found = await until_phase(api, "Running", f"pod-{place}")
            assert sorted(chosen(found)["main"][MIG]) == sorted(held(found, MIG))
            ids += held(found, MIG)
        assert len(set(ids)) == 6
        assert all(one.startswith("MIG-") for one in ids)


async def test_replicas_of_shared_gpus_are_chosen_one_by_one(api: Api, kubeconfig: Path) -> None:
    async with joined(api, kubeconfig, "g5.12xlarge", "time-slicing=2") as node:
        for place in range(9):
            await ask(api, f"pod-{place}", node, taking(1))
        found = await until_items(
            api,
            api.core("pods"),
            lambda pods: (
                sum(one["status"].get("phase") == "Running" for one in pods) == 8 and any(map(is_refused, pods))
            ),
        )
        running = [one for one in found if node_of(one)]
        assert all(chosen(one)["main"][GPU] == held(one) for one in running)
        ids = [held(one)[0] for one in running]
        assert len(set(ids)) == 8
        assert len({one.partition("::")[0] for one in ids}) == 4


async def test_instances_that_pods_request_are_created_and_those_of_running_pods_stay(
    api: Api, kubeconfig: Path
) -> None:
    async with joined(api, kubeconfig, "dgx-h100", "mig=dynamic") as node:
        two, seven = "nvidia.com/mig-2g.20gb", "nvidia.com/mig-7g.80gb"
        await ask(api, "first", node, taking(1, two))
        first = await until_phase(api, "Running", "first")
        assert chosen(first)["main"][two] == held(first, two)
        for number in range(8):
            await ask(api, f"whole-{number}", node, taking(1, seven))
        await until_items(
            api,
            api.core("pods"),
            lambda pods: (
                sum(one["status"].get("phase") == "Running" for one in pods) == 8 and any(map(is_refused, pods))
            ),
        )
        found = (await api.get(api.core("pods", "first"))).ok()
        assert held(found, two) == held(first, two)
        # Its instance is idle now, and makes room.
        await api.delete(api.core("pods", "first"), gracePeriodSeconds=0)
        await until_items(
            api, api.core("pods"), lambda pods: sum(one["status"].get("phase") == "Running" for one in pods) == 8
        )
        left = (await api.get(f"/api/v1/nodes/{node}")).ok()
        assert [name for name in left["metadata"]["annotations"] if name.startswith("mig.shoal.dev/")] == []
        assert left["status"]["allocatable"][seven] == "8"
