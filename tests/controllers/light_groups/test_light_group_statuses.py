"""Pod groups of scheduler-plugins have the status that the project's own controller would write, unless it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.foreign_kinds import established
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import LIGHT_POD_GROUPS
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, DEPLOYMENTS, NAMESPACES, PODS
from shoal.client.port import Deletion
from shoal.client.served import Served
from shoal.controllers.light_groups.controller import light_groups_controller
from shoal.controllers.light_groups.group_phase import GroupMember, group_progress
from shoal.embedded.apiserver.foreign.definitions import definitions

PHASES = {
    "none": ("", "Pending"),
    "too few": ("P", "Pending"),
    "enough that wait": ("PP", "Scheduling"),
    "some that run": ("RP", "Scheduling"),
    "enough that run": ("RR", "Running"),
    "enough that run or are done": ("RS", "Running"),
    "one that failed beside enough": ("RF", "Failed"),
    "one that failed before enough began": ("FPP", "Scheduling"),
    "enough that are done": ("SSF", "Finished"),
}
_WORDS = {"P": "Pending", "R": "Running", "S": "Succeeded", "F": "Failed"}


@pytest.mark.parametrize("case", PHASES)
def test_the_phase_of_a_group_of_two(case: str) -> None:
    letters, phase = PHASES[case]
    members = [GroupMember(str(at), _WORDS[letter], ("b", "a")) for at, letter in enumerate(letters)]
    progress = group_progress(members, 2, "ns")
    assert progress.phase == phase
    assert (progress.running, progress.succeeded, progress.failed) == tuple(map(letters.count, "RSF"))
    assert progress.occupied_by == ("" if phase == "Pending" else "ns/a,ns/b")


class _Served:
    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._served = Served(context)
        self._made = light_groups_controller(context, self._served)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._served.run())
            group.create_task(self._made.run())


def _controller(context: Context) -> Controller:
    return _Served(context)


async def _furnish(cluster: SmallCluster) -> None:
    for one in definitions():
        if one["spec"]["group"] == LIGHT_POD_GROUPS.group:
            await cluster.create(DEFINITIONS, one)
    await established(cluster)
    await cluster.create(LIGHT_POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 2}})


async def _pod(cluster: SmallCluster, name: str) -> None:
    meta: Obj = {"name": name, "labels": {"scheduling.x-k8s.io/pod-group": "g"}}
    meta["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"}]
    await cluster.create(PODS, {"metadata": meta, "spec": {"containers": [{"name": "main", "image": "busybox"}]}})


async def _status(cluster: SmallCluster) -> Obj:
    await cluster.pass_time(2)
    progress: Obj = (await cluster.get(LIGHT_POD_GROUPS, "g")).get("status") or {}
    return progress


async def _phase(cluster: SmallCluster, phase: str, *names: str) -> None:
    for name in names:
        await cluster.patch(PODS, name, {"status": {"phase": phase}}, "status")


@virtual
async def test_a_group_is_told_how_far_its_pods_are_until_it_comes_to_its_end(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _furnish(cluster)
        cluster.start(_controller)
        assert (await _status(cluster))["phase"] == "Pending"
        for name in ("a", "b"):
            await _pod(cluster, name)
        begun = await _status(cluster)
        assert (begun["phase"], begun["occupiedBy"]) == ("Scheduling", "default/train")
        await _phase(cluster, "Running", "a", "b")
        running = await _status(cluster)
        assert (running["phase"], running["running"]) == ("Running", 2)
        assert running["scheduleStartTime"] == begun["scheduleStartTime"]
        await cluster.delete(PODS, "a", Deletion(grace_s=0))
        assert (await _status(cluster))["phase"] == "Pending"
        await _pod(cluster, "a")
        await _phase(cluster, "Succeeded", "a", "b")
        done = await _status(cluster)
        assert (done["phase"], done["running"], done["succeeded"]) == ("Finished", 0, 2)
        for name in ("a", "b"):
            await cluster.delete(PODS, name, Deletion(grace_s=0))
        assert await _status(cluster) == done


@virtual
async def test_where_the_projects_own_controller_runs_nothing_is_written(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await _furnish(cluster)
        space = "scheduler-plugins"
        await cluster.create(NAMESPACES, {"metadata": {"name": space}})
        labels = {"app": "c"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        meta = {"name": "scheduler-plugins-controller", "namespace": space}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        await cluster.create(DEPLOYMENTS, {"metadata": meta, "spec": spec})
        ready = {"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}}
        await cluster.patch(DEPLOYMENTS, meta["name"], ready, "status", namespace=space)
        cluster.start(_controller)
        assert await _status(cluster) == {}
