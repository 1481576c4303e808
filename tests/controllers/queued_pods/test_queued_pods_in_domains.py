"""Pods of a group whose admission has several topology domains: each is ungated with one of them, in one write.

Gates can only be removed from existing pods, so no other gate can hold them until a domain is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from build.queued_pod_scenarios import QueuedPodScenario, queued_pod_scenario
from build.virtual_time import virtual
from shoal.client.kind import PODS

_HOST = "kubernetes.io/hostname"
_INDEX = "kueue.x-k8s.io/pod-group-pod-index"


async def _admit(scenario: QueuedPodScenario, nodes: Sequence[str]) -> None:
    workload = await scenario.workload()
    values = {"individual": {"roots": list(nodes)}}
    slices = [{"domainCount": len(nodes), "valuesPerLevel": [values], "podCounts": {"universal": 1}}]
    topology = {"levels": [_HOST], "slices": slices}
    sets: list[dict[str, Any]] = [
        {"name": one["name"], "count": one["count"], "flavors": {}, "topologyAssignment": topology}
        for one in workload["spec"]["podSets"]
    ]
    await scenario.say(
        workload,
        {"admission": {"clusterQueue": "shared", "podSetAssignments": sets}},
        ("QuotaReserved", "True", "QuotaReserved", ""),
        ("Admitted", "True", "Admitted", "The workload is admitted"),
    )
    await scenario.cluster.pass_time(2)


async def _nodes(scenario: QueuedPodScenario) -> dict[str, str]:
    pods = await scenario.cluster.pods()
    return {pod["metadata"]["name"]: (pod["spec"].get("nodeSelector") or {}).get(_HOST, "") for pod in pods}


@virtual
async def test_each_pod_is_ungated_with_a_domain_of_its_own(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        for name in "ab":
            await scenario.member(name, "gang", 2, schedulerName="default-scheduler")
        await scenario.cluster.pass_time(1)
        await _admit(scenario, ["n2", "n1"])
        assert await scenario.held() == set()
        assert sorted((await _nodes(scenario)).values()) == ["n1", "n2"]


@virtual
async def test_pods_with_an_index_get_the_domain_of_that_index(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        for name, index in (("a", "2"), ("b", "0"), ("c", "1")):
            await scenario.member(name, "gang", 3, schedulerName="default-scheduler")
            await scenario.cluster.patch(PODS, name, {"metadata": {"labels": {_INDEX: index}}})
        await scenario.cluster.pass_time(1)
        await _admit(scenario, ["n3", "n2", "n1"])
        assert await _nodes(scenario) == {"b": "n3", "c": "n2", "a": "n1"}


@virtual
async def test_the_replacement_of_a_failed_pod_gets_its_domain(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        for name in "ab":
            await scenario.member(name, "gang", 2, schedulerName="default-scheduler")
        await scenario.cluster.pass_time(1)
        await _admit(scenario, ["n1", "n2"])
        freed = (await _nodes(scenario))["a"]
        await scenario.bind("a", "b")
        await scenario.phase("Failed", "a")
        await scenario.member("c", "gang", 2, schedulerName="default-scheduler")
        await scenario.cluster.pass_time(2)
        assert (await _nodes(scenario))["c"] == freed
        assert await scenario.held() == set()
