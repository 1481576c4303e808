"""Policies, owners of pods, queued pods and nodes together: what a user sees from creation to the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.fleets import FleetRun, fleet_cluster
from build.queued_pod_scenarios import QueuedPodScenario
from build.virtual_time import virtual
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import RESOURCE_FLAVORS, WORKLOADS
from shoal.client.kind import DEFINITIONS, DEPLOYMENTS, NODES, PODS, STATEFUL_SETS
from shoal.client.served import Served
from shoal.controllers.gatekeeping.held_kinds import QUEUE_LABEL
from shoal.controllers.gatekeeping.installer import gatekeeping_controller
from shoal.controllers.gatekeeping.policies import BINDINGS
from shoal.controllers.queued_pods.controller import queued_pods_controller
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.controllers.deployments.controller import deployment_controller
from shoal.embedded.controllers.replicas.controller import replica_set_controller
from shoal.embedded.controllers.stateful_sets.controller import stateful_set_controller
from shoal.embedded.scheduler.controller import default_scheduler

Obj = dict[str, Any]
_LABELS = {QUEUE_LABEL: "team"}


class _Gatekeepers:
    """Policies and queued pods, with one view of what is served."""

    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._served = Served(context)
        self._parts = [gatekeeping_controller(context, self._served), queued_pods_controller(context, self._served)]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._served.run())
            for part in self._parts:
                group.create_task(part.run())


@asynccontextmanager
async def _together(folder: Path) -> AsyncIterator[tuple[FleetRun, QueuedPodScenario]]:
    async with fleet_cluster(folder) as run:
        cluster = run.cluster
        for definition in definitions():
            if definition["spec"]["group"] in (WORKLOADS.group, "leaderworkerset.x-k8s.io"):
                await cluster.create(DEFINITIONS, definition)
        # Nobody here looks after nodes: it is ready from the start.
        await cluster.patch(NODES, "node-0", {"spec": {"taints": None}})
        await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "any"}, "spec": {}})
        keepers = (stateful_set_controller, deployment_controller, replica_set_controller, default_scheduler)
        cluster.start(_Gatekeepers, *keepers)

        async def is_installed() -> bool:
            return len(await cluster.all(BINDINGS)) > 10

        await cluster.until(is_installed, 120)
        await cluster.pass_time(2)
        yield run, QueuedPodScenario(cluster)


def _serving(name: str, replicas: int, **more: Any) -> Obj:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "nginx"}], "terminationGracePeriodSeconds": 2},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **more}
    return {"metadata": {"name": name, "labels": dict(_LABELS)}, "spec": spec}


@virtual
async def test_a_stateful_set_runs_when_admitted_and_is_requeued_when_evicted(tmp_path: Path) -> None:
    async with _together(tmp_path) as (run, scenario):
        await scenario.cluster.create(STATEFUL_SETS, _serving("db", 2, serviceName="db"))
        await scenario.cluster.pass_time(3)
        assert await scenario.held() == {"db-0"}
        workload = await scenario.workload()
        await scenario.admit(workload, "any")
        await run.until_phase("db-1", "Running")
        await scenario.cluster.pass_time(2)
        assert (await scenario.conditions())["PodsReady"] == ("True", "Started")
        await scenario.evict(workload)
        await scenario.cluster.pass_time(15)
        conditions = await scenario.conditions()
        assert conditions["QuotaReserved"][0] == "False"
        assert conditions["Admitted"][0] == "False"
        assert await scenario.held() == {"db-0"}
        await scenario.admit(await scenario.workload(), "any")
        await run.until_phase("db-1", "Running")


@virtual
async def test_pods_of_a_deployment_come_back_as_new_workloads_when_evicted(tmp_path: Path) -> None:
    async with _together(tmp_path) as (run, scenario):
        await scenario.cluster.create(DEPLOYMENTS, _serving("web", 1))
        await scenario.cluster.pass_time(3)
        first = await scenario.workload()
        await scenario.admit(first, "any")
        (pod,) = await scenario.names()
        await run.until_phase(pod, "Running")
        await scenario.evict(first)
        await run.until_gone(pod)
        await scenario.cluster.pass_time(5)
        second = await scenario.workload()
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert await scenario.held() == await scenario.names()


@virtual
async def test_a_group_of_pods_runs_to_its_end(tmp_path: Path) -> None:
    async with _together(tmp_path) as (_, scenario):
        for name in ("a", "b"):
            meta = {
                "name": name,
                "labels": {**_LABELS, "kueue.x-k8s.io/pod-group-name": "gang"},
                "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2", "shoal.dev/run-for": "5s"},
            }
            spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
            await scenario.cluster.create(PODS, {"metadata": meta, "spec": spec})
        await scenario.cluster.pass_time(2)
        assert await scenario.held() == {"a", "b"}
        await scenario.admit(await scenario.workload(), "any")
        await scenario.cluster.pass_time(20)
        finished = next(one for one in (await scenario.workload())["status"]["conditions"] if one["type"] == "Finished")
        assert finished["message"] == "Pods succeeded: 2/2."


@virtual
async def test_an_evicted_group_releases_its_quota_when_its_pods_have_terminated(tmp_path: Path) -> None:
    async with _together(tmp_path) as (run, scenario):
        for name in ("a", "b"):
            meta = {
                "name": name,
                "labels": {**_LABELS, "kueue.x-k8s.io/pod-group-name": "gang"},
                "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
            }
            spec = {"terminationGracePeriodSeconds": 2, "containers": [{"name": "main", "image": "nginx"}]}
            await scenario.cluster.create(PODS, {"metadata": meta, "spec": spec})
        await scenario.cluster.pass_time(2)
        await scenario.admit(await scenario.workload(), "any")
        await run.until_phase("a", "Running")
        await run.until_phase("b", "Running")
        await scenario.evict(await scenario.workload())
        await scenario.cluster.pass_time(20)
        assert (await scenario.conditions())["QuotaReserved"] == ("False", "PendingEvaluation")
