"""Smoke tests run on simulated nodes in virtual time, leave nothing behind, and fail with what their pods wait for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.fleets import FleetRun, machine
from build.live_schedulers import start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import NAMESPACES
from shoal.embedded.controllers.deployments.controller import deployment_controller
from shoal.embedded.controllers.jobs.controller import job_controller
from shoal.embedded.controllers.namespaces.controller import namespace_controller
from shoal.embedded.controllers.node_lifecycle.controller import node_lifecycle_controller
from shoal.embedded.controllers.replicas.controller import replica_set_controller
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.policy.readiness.outcomes import Outcome
from shoal.store.watched.cluster import WatchSettings
from shoal.units.errors import UserError
from shoal.wiring.smoke_tests.running import SmokeSettings, SmokeTests

GOOD_LOG = b"[Vector addition of 50000 elements]\nTest PASSED\nDone\n"
_CONTROLLERS = [
    job_controller,
    deployment_controller,
    replica_set_controller,
    namespace_controller,
    node_lifecycle_controller,
]


class Logs:
    """The logs of all pods."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    async def ask(self, method: str, path: str, query: Mapping[str, str]) -> bytes:
        assert (method, path.endswith("/log"), "limitBytes" in query) == ("GET", True, True)
        return self._text


@asynccontextmanager
async def cluster_with(folder: Path, gpus: int) -> AsyncIterator[SmallCluster]:
    async with small_cluster(folder, _CONTROLLERS) as cluster:
        start_scheduler(cluster, watch=WatchSettings(schedulers=frozenset({"default-scheduler"})))
        fleet = FleetRun(cluster, (machine("node-0", gpus=gpus),), FleetSettings())
        await cluster.until(lambda: _has_nodes(cluster), 60)
        try:
            yield cluster
        finally:
            await fleet.kill()


async def _has_nodes(cluster: SmallCluster) -> bool:
    from shoal.client.kind import NODES

    return bool(await cluster.all(NODES))


async def _run(
    cluster: SmallCluster, *names: str, log: bytes = GOOD_LOG, settings: SmokeSettings | None = None
) -> dict[str, Outcome]:
    tests = SmokeTests(cluster.api, Logs(log), cluster.clock, settings or SmokeSettings())
    return await tests.run(names, lambda _: None)


@virtual
async def test_all_tests_that_a_simulated_cluster_can_run_pass_and_leave_nothing(tmp_path: Path) -> None:
    async with cluster_with(tmp_path, 8) as cluster:
        done = await _run(cluster, "vectoradd", "all-reduce", "spot-interruption", "scale-from-zero")
        assert {name: outcome.state for name, outcome in done.items()} == {
            "vectoradd": "pass",
            "all-reduce": "not run",
            "spot-interruption": "pass",
            "scale-from-zero": "pass",
        }
        assert "was evicted from node node-0" in done["spot-interruption"].evidence[0]

        async def is_gone() -> bool:
            return "shoal-smoke-test" not in {one["metadata"]["name"] for one in await cluster.all(NAMESPACES)}

        await cluster.until(is_gone, 300)


@virtual
async def test_a_log_without_results_of_nccl_is_not_a_pass(tmp_path: Path) -> None:
    async with cluster_with(tmp_path, 8) as cluster:
        done = await _run(cluster, "all-reduce", settings=SmokeSettings(nccl_image="nccl-tests"))
        assert done["all-reduce"].state == "not run"
        assert "its last line: Done" in done["all-reduce"].evidence[0]


@virtual
async def test_too_few_gpus_fail_in_time_with_the_reason(tmp_path: Path) -> None:
    async with cluster_with(tmp_path, 1) as cluster:
        settings = SmokeSettings(timeout_s=60, replicas=4)
        found = (await _run(cluster, "scale-from-zero", settings=settings))["scale-from-zero"]
        assert found.state == "fail"
        assert "not all 4 replicas were ready after 60 s" in found.evidence[0]
        assert "not scheduled" in found.evidence[0]


@virtual
async def test_without_a_gpu_nothing_is_created(tmp_path: Path) -> None:
    async with cluster_with(tmp_path, 0) as cluster:
        done = await _run(cluster, "vectoradd", "scale-from-zero")
        assert {outcome.state for outcome in done.values()} == {"not applicable"}
        assert "shoal-smoke-test" not in {one["metadata"]["name"] for one in await cluster.all(NAMESPACES)}


@virtual
async def test_a_namespace_of_others_is_not_used(tmp_path: Path) -> None:
    async with cluster_with(tmp_path, 1) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "shoal-smoke-test"}})
        with pytest.raises(UserError, match="Namespace shoal-smoke-test: exists already"):
            await _run(cluster, "vectoradd")
        names = {one["metadata"]["name"] for one in await cluster.all(NAMESPACES)}
        assert "shoal-smoke-test" in names
