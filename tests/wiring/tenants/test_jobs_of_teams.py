"""The queue of a team admits what the team may run: a job needs CPU and memory beside its GPUs. In virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from build.kai_clusters import bound, kai_cluster
from build.live_schedulers import add_node, pod
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.cli.run import run_choice
from shoal.cli.run_files import read_run_files
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES
from shoal.client.kind import NODES, PODS
from shoal.client.served_writer import ServedWriter
from shoal.policy.tenants.team import read_team
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.shoal import start_shoal
from shoal.wiring.tenants.applying import TenantObjects
from shoal.wiring.tenants.quota_requests import QUOTAS

_CONFIGURATION = """
apiVersion: config.shoal.dev/v1alpha1
kind: ShoalConfiguration
controllers: [scheduler, queues, pods, gatekeeper]
"""
_RDMA = "rdma/hca"


@asynccontextmanager
async def _cluster(folder: Path) -> AsyncIterator[SmallCluster]:
    file = folder / "shoal.yaml"
    file.write_text(_CONFIGURATION)
    async with kai_cluster(folder, "kueue") as cluster:
        await add_node(cluster, "n1", gpus=8, cpu="64")
        amounts = {_RDMA: "8", "ephemeral-storage": "1Ti"}
        await cluster.patch(NODES, "n1", {"status": {"allocatable": amounts, "capacity": amounts}}, "status")
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        try:
            await start_shoal(tasks, lambda _: cluster.api, run_choice(read_run_files([file])))
            tasks.start("caches", tasks.informers.run)
            yield cluster
        finally:
            await tasks.end()


async def _apply(cluster: SmallCluster, name: str, spec: dict[str, Any]) -> None:
    raw = {"apiVersion": "shoal.dev/v1alpha1", "kind": "Team", "metadata": {"name": name}, "spec": spec}
    writer = await ServedWriter.of(cluster.api)
    await TenantObjects(cluster.api, writer, cluster.clock).apply(read_team(raw), adopts=False)


async def _submit(cluster: SmallCluster, team: str, name: str, gpus: int, **requests: str) -> None:
    made = pod(name, gpus=gpus, cpu="1", labels={"kueue.x-k8s.io/queue-name": team}, schedulerName="shoal")
    made["metadata"]["namespace"] = team
    container = made["spec"]["containers"][0]
    container["securityContext"] = _RESTRICTED
    container["resources"]["requests"] |= requests
    container["resources"]["limits"] = {**container["resources"].get("limits", {}), **_extended(requests)}
    made["spec"]["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    await cluster.create(PODS, made, team)


def _extended(requests: dict[str, str]) -> dict[str, str]:
    """Requests of these need limits."""
    return {name: amount for name, amount in requests.items() if "/" in name}


_RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@virtual
async def test_jobs_of_a_team_that_has_a_quota_of_gpus_only_run_whatever_else_they_request(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        await _apply(cluster, "team-a", {"quota": {"gpus": 4}})
        await cluster.pass_time(10)
        await _submit(cluster, "team-a", "trains", 4, **{"ephemeral-storage": "10Gi", _RDMA: "1"})
        await _submit(cluster, "team-a", "prepares", 0)
        await cluster.until(lambda: _is_bound(cluster, "trains", "prepares"))


@virtual
async def test_a_team_without_a_limit_of_memory_lends_none_of_it(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        await _apply(cluster, "team-a", {"quota": {"gpus": 4}})
        await _apply(cluster, "team-b", {"quota": {"gpus": 4, "cpu": "1"}})
        # So that the queue alone limits.
        await cluster.patch(QUOTAS, "team-quota", {"spec": {"hard": {"requests.cpu": "2"}}}, namespace="team-b")
        await cluster.pass_time(10)
        for name in ("first", "second"):
            await _submit(cluster, "team-b", name, 1)
        await cluster.pass_time(20)
        assert len(await bound(cluster)) == 1


async def _is_bound(cluster: SmallCluster, *names: str) -> bool:
    return {*await bound(cluster)} == {*names}


@virtual
async def test_names_of_gpus_that_the_team_may_not_use_are_not_in_its_queue(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as cluster:
        mig = {"nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu.shared": "4"}
        await cluster.patch(NODES, "n1", {"status": {"allocatable": mig, "capacity": mig}}, "status")
        await _apply(cluster, "team-a", {"quota": {"gpus": 4}})
        queue = await cluster.get(CLUSTER_QUEUES, "team-a")
        covered = queue["spec"]["resourceGroups"][0]["coveredResources"]
        assert [name for name in covered if name.startswith("nvidia.com/")] == ["nvidia.com/gpu"]
