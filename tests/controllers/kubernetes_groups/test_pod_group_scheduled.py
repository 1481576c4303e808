"""Kubernetes' PodGroup says whether its pods are scheduled, as kube-scheduler would."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.foreign_kinds import established
from build.live_schedulers import add_node, pod, start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import GROUP_POD_GROUPS
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, PODS
from shoal.client.served import Served
from shoal.controllers.kubernetes_groups.controller import KubernetesGroups
from shoal.controllers.kubernetes_groups.scheduled import ScheduledMember, scheduled

_WAITS = ScheduledMember("b", reason="Unschedulable", message="0/1 nodes are available")
_GATED = ScheduledMember("c", reason="SchedulingGated", message="gates")
CASES = {
    "no pods": ([], 2, None),
    "enough pods are bound": ([ScheduledMember("a", True), ScheduledMember("b", True)], 2, (True, "Scheduled", "")),
    "more pods than needed, some wait": ([ScheduledMember("a", True), _WAITS], 1, (True, "Scheduled", "")),
    "no pod has been tried": ([ScheduledMember("a"), ScheduledMember("b")], 2, None),
    "a pod was refused": ([ScheduledMember("a", True), _WAITS], 2, (False, "Unschedulable", "0/1 nodes are available")),
    "the scheduler failed": (
        [ScheduledMember("a", reason="SchedulerError", message="no"), _WAITS],
        2,
        (False, "SchedulerError", "no"),
    ),
    "too few pods": ([_WAITS], 2, None),
    "pods that are gated": ([ScheduledMember("a"), _GATED], 2, None),
    "basic, one is bound": ([ScheduledMember("a", True), _WAITS], 0, (True, "Scheduled", "")),
    "basic, none is bound": ([_WAITS], 0, (False, "Unschedulable", "0/1 nodes are available")),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_said_of_a_group_with(case: str) -> None:
    members, least, says = CASES[case]
    assert scheduled(members, least) == says


class _Groups:
    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._served = Served(context)
        self._made = KubernetesGroups(context, self._served, frozenset({"shoal"}))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._served.run())
            group.create_task(self._made.run())


def _controller(context: Context) -> Controller:
    return _Groups(context)


def _definition() -> Obj:
    """The group's API is off by default, as in Kubernetes: a definition stands in for it."""
    kind = GROUP_POD_GROUPS
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "subresources": {"status": {}}}
    meta = {
        "name": f"{kind.plural}.{kind.group}",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1"},
    }
    spec = {
        "group": kind.group,
        "scope": "Namespaced",
        "names": {"plural": kind.plural, "kind": kind.name, "singular": "podgroup", "listKind": "PodGroupList"},
        "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
    }
    return {"metadata": meta, "spec": spec}


async def _conditions(cluster: SmallCluster) -> dict[str, Obj]:
    group = await cluster.get(GROUP_POD_GROUPS, "train")
    return {one["type"]: one for one in group.get("status", {}).get("conditions", ())}


@virtual
async def test_a_group_is_unschedulable_until_it_is_scheduled_and_scheduled_from_then_on(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(DEFINITIONS, _definition())
        await established(cluster)
        cluster.start(_controller)
        start_scheduler(cluster)
        await add_node(cluster, "n1", gpus=1)
        policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        made = await cluster.create(GROUP_POD_GROUPS, {"metadata": {"name": "train"}, "spec": policy})
        member: Obj = {"schedulingGroup": {"podGroupName": "train"}}
        await cluster.create(PODS, pod("a", gpus=1, **member))
        await cluster.pass_time(10)
        assert await _conditions(cluster) == {}, "kube-scheduler has not tried it either"
        await cluster.create(PODS, pod("b", gpus=1, **member))

        async def is_reported(status: str) -> bool:
            return (await _conditions(cluster)).get("PodGroupScheduled", {}).get("status") == status

        await cluster.until(lambda: is_reported("False"), 60)
        waits = (await _conditions(cluster))["PodGroupScheduled"]
        assert (waits["reason"], waits["observedGeneration"]) == ("Unschedulable", made["metadata"]["generation"])
        assert "0/1 nodes are available" in waits["message"]
        await add_node(cluster, "n2", gpus=1)
        await cluster.until(lambda: is_reported("True"), 60)
        runs = (await _conditions(cluster))["PodGroupScheduled"]
        assert (runs["reason"], runs["message"]) == ("Scheduled", "")
        await cluster.delete(PODS, "a")
        await cluster.create(PODS, pod("c", gpus=8, **member))
        await cluster.pass_time(60)
        assert (await _conditions(cluster))["PodGroupScheduled"] == runs


@virtual
async def test_a_group_of_another_schedulers_pods_is_left_to_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(DEFINITIONS, _definition())
        await established(cluster)
        cluster.start(_controller)
        policy = {"schedulingPolicy": {"gang": {"minCount": 1}}}
        await cluster.create(GROUP_POD_GROUPS, {"metadata": {"name": "train"}, "spec": policy})
        other: Obj = {
            "schedulingGroup": {"podGroupName": "train"},
            "schedulerName": "default-scheduler",
            "nodeName": "n",
        }
        await cluster.create(PODS, pod("a", **other))
        await cluster.pass_time(10)
        assert await _conditions(cluster) == {}
