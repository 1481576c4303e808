"""Queued pods that can never be admitted as they are written have a condition, and one Event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.queued_pod_scenarios import QueuedPodScenario, queued_pod_scenario
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import WORKLOAD_PRIORITY_CLASSES
from shoal.client.kind import PODS, STATEFUL_SETS
from shoal.controllers.gatekeeping.held_kinds import PARENT, QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.holding import held
from shoal.controllers.queued_work.quota_condition import QUOTA_CONDITION

Obj = dict[str, Any]
CLASS = {"kueue.x-k8s.io/priority-class": "late"}
NO_CLASS = 'workloadpriorityclasses.kueue.x-k8s.io "late" not found'
NO_QUEUE = "LocalQueue team doesn't exist"


async def _marks(scenario: QueuedPodScenario) -> dict[str, tuple[str, str]]:
    """By pod, what it says of itself."""
    return {
        pod["metadata"]["name"]: (one["reason"], one["message"])
        for pod in await scenario.cluster.pods()
        for one in pod["status"].get("conditions") or ()
        if one["type"] == QUOTA_CONDITION and one["status"] == "False"
    }


async def _told(scenario: QueuedPodScenario, name: str, reason: str) -> int:
    events = [one for one in await scenario.cluster.events(name) if one["reason"] == reason]
    return sum(int(one["count"]) for one in events)


@virtual
async def test_all_pods_of_a_group_with_an_unknown_class_have_the_condition_until_it_exists(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        for name in ("g-0", "g-1"):
            meta = {"labels": {**CLASS, "kueue.x-k8s.io/pod-group-name": "g"}}
            await scenario.pod(name, **meta, notes={"kueue.x-k8s.io/pod-group-total-count": "2"})
        await scenario.cluster.pass_time(5)
        said = ("WorkloadPriorityClassNotFound", NO_CLASS)
        assert await _marks(scenario) == {"g-0": said, "g-1": said}
        await scenario.cluster.patch(PODS, "g-0", {"metadata": {"annotations": {"touched": "yes"}}})
        await scenario.cluster.pass_time(60)
        for name in ("g-0", "g-1"):
            assert await _told(scenario, name, "WorkloadPriorityClassNotFound") == 1
        await scenario.cluster.create(WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": "late"}, "value": 3})
        await scenario.cluster.pass_time(5)
        assert len(await scenario.workloads()) == 1
        assert await _marks(scenario) == {}


@virtual
async def test_a_pod_in_a_missing_queue_has_the_condition_until_it_is_admitted(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        await scenario.pod("alone")
        await scenario.cluster.pass_time(1)
        workload = await scenario.workload()
        await scenario.say(workload, {}, ("QuotaReserved", "False", "Misconfigured", NO_QUEUE))
        await scenario.cluster.pass_time(2)
        assert await _marks(scenario) == {"alone": ("Misconfigured", NO_QUEUE)}
        assert await _told(scenario, "alone", "Misconfigured") == 1
        await scenario.admit(workload)
        await scenario.cluster.pass_time(1)
        assert (await _marks(scenario), await scenario.held()) == ({}, set())


@virtual
async def test_a_stateful_set_in_a_missing_queue_is_reported_once_with_its_pods(tmp_path: Path) -> None:
    async with queued_pod_scenario(tmp_path) as scenario:
        template = {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "main", "image": "busybox"}]},
        }
        spec = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "template": template}
        obj = {"metadata": {"name": "db", "namespace": "default", "labels": {QUEUE_LABEL: "team"}}, "spec": spec}
        wanted = held(obj, ("apps", "StatefulSet"), HoldingRules(), lambda: False)
        owner = await scenario.cluster.create(STATEFUL_SETS, wanted)
        uid = owner["metadata"]["uid"]
        reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": uid, "controller": True}
        await scenario.pod("db-0", labels={"app": "db"}, notes={PARENT: "statefulset"}, owners=[reference])
        await scenario.cluster.pass_time(1)
        refused = ("QuotaReserved", "False", "Misconfigured", NO_QUEUE)
        for _ in range(3):
            await scenario.say(await scenario.workload(), {"requeueState": {"count": 1}}, refused)
            await scenario.cluster.pass_time(2)
        assert await _told(scenario, "db", "Misconfigured") == 1
        assert await _marks(scenario) == {"db-0": ("Misconfigured", NO_QUEUE)}
