"""Pods of a group whose admission has several topology domains: each is ungated with one of them, in one write.

Gates can only be removed from existing pods, so no other gate can hold them until a domain is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from build.queued_scenes import QueuedScene, queued_scene
from build.virtual_time import virtual
from shoal.store.live.kind import PODS

_HOST = "kubernetes.io/hostname"
_INDEX = "kueue.x-k8s.io/pod-group-pod-index"


async def _admit(scene: QueuedScene, nodes: Sequence[str]) -> None:
    workload = await scene.workload()
    values = {"individual": {"roots": list(nodes)}}
    slices = [{"domainCount": len(nodes), "valuesPerLevel": [values], "podCounts": {"universal": 1}}]
    topology = {"levels": [_HOST], "slices": slices}
    sets: list[dict[str, Any]] = [
        {"name": one["name"], "count": one["count"], "flavors": {}, "topologyAssignment": topology}
        for one in workload["spec"]["podSets"]
    ]
    await scene.say(
        workload,
        {"admission": {"clusterQueue": "shared", "podSetAssignments": sets}},
        ("QuotaReserved", "True", "QuotaReserved", ""),
        ("Admitted", "True", "Admitted", "The workload is admitted"),
    )
    await scene.cluster.pass_time(2)


async def _nodes(scene: QueuedScene) -> dict[str, str]:
    pods = await scene.cluster.pods()
    return {pod["metadata"]["name"]: (pod["spec"].get("nodeSelector") or {}).get(_HOST, "") for pod in pods}


@virtual
async def test_each_pod_is_ungated_with_a_domain_of_its_own(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        for name in "ab":
            await scene.member(name, "gang", 2, schedulerName="default-scheduler")
        await scene.cluster.pass_time(1)
        await _admit(scene, ["n2", "n1"])
        assert await scene.held() == set()
        assert sorted((await _nodes(scene)).values()) == ["n1", "n2"]


@virtual
async def test_pods_with_an_index_get_the_domain_of_that_index(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        for name, index in (("a", "2"), ("b", "0"), ("c", "1")):
            await scene.member(name, "gang", 3, schedulerName="default-scheduler")
            await scene.cluster.patch(PODS, name, {"metadata": {"labels": {_INDEX: index}}})
        await scene.cluster.pass_time(1)
        await _admit(scene, ["n3", "n2", "n1"])
        assert await _nodes(scene) == {"b": "n3", "c": "n2", "a": "n1"}


@virtual
async def test_the_replacement_of_a_failed_pod_gets_its_domain(tmp_path: Path) -> None:
    async with queued_scene(tmp_path) as scene:
        for name in "ab":
            await scene.member(name, "gang", 2, schedulerName="default-scheduler")
        await scene.cluster.pass_time(1)
        await _admit(scene, ["n1", "n2"])
        freed = (await _nodes(scene))["a"]
        await scene.bind("a", "b")
        await scene.phase("Failed", "a")
        await scene.member("c", "gang", 2, schedulerName="default-scheduler")
        await scene.cluster.pass_time(2)
        assert (await _nodes(scene))["c"] == freed
        assert await scene.held() == set()
