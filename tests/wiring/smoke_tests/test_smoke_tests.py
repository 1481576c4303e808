"""Smoke tests run on simulated nodes in virtual time, leave nothing behind, and fail with what their pods wait for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.fleets import FleetRun, machine
from build.foreign_kinds import established
from build.live_schedulers import start_scheduler
from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import CALM, StormyApi, Weather
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import PYTORCH_JOBS
from shoal.client.kind import DEFINITIONS, EVENTS, NAMESPACES, PODS
from shoal.client.refusals import NotFoundError
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.controllers.deployments.controller import deployment_controller
from shoal.embedded.controllers.jobs.controller import job_controller
from shoal.embedded.controllers.namespaces.controller import namespace_controller
from shoal.embedded.controllers.node_lifecycle.controller import node_lifecycle_controller
from shoal.embedded.controllers.replicas.controller import replica_set_controller
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.policy.readiness.checklist import RUNNABLE
from shoal.policy.readiness.outcomes import Outcome
from shoal.store.watched.cluster import WatchSettings
from shoal.units.errors import UserError
from shoal.wiring.smoke_tests.inference_load import InferenceLoad
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
        done = await _run(cluster, *RUNNABLE)
        assert {name: outcome.state for name, outcome in done.items()} == {
            "vectoradd": "pass",
            "distributed-job": "pass",
            "all-reduce": "not run",
            "pytorch-single": "not run",
            "pytorch-multi": "not run",
            "inference-load": "not run",
            "spot-interruption": "pass",
            "scale-from-zero": "pass",
        }
        assert done["distributed-job"].evidence == ("2 of 2 pods with one nvidia.com/gpu each ended, on node-0",)
        assert done["pytorch-multi"].commands == ("shoal check --smoke pytorch-multi --pytorch-image IMAGE",)
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


@virtual
async def test_a_pytorch_job_is_not_run_where_no_operator_would_run_it(tmp_path: Path) -> None:
    settings = SmokeSettings(timeout_s=30, pytorch_image="train")
    async with cluster_with(tmp_path, 8) as cluster:
        without = await _run(cluster, "pytorch-single", settings=settings)
        assert "no kind PyTorchJob" in without["pytorch-single"].evidence[0]
        (definition,) = (one for one in definitions() if one["metadata"]["name"] == "pytorchjobs.kubeflow.org")
        await cluster.create(DEFINITIONS, definition)
        await established(cluster)
        await cluster.pass_time(120)
        silent = await _run(cluster, "pytorch-multi", settings=settings)
        assert silent["pytorch-multi"].state == "not run"
        assert "no controller made pods" in silent["pytorch-multi"].evidence[0]


@virtual
async def test_a_pytorch_job_that_succeeds_passes(tmp_path: Path) -> None:
    async with cluster_with(tmp_path, 8) as cluster:
        (definition,) = (one for one in definitions() if one["metadata"]["name"] == "pytorchjobs.kubeflow.org")
        await cluster.create(DEFINITIONS, definition)
        await established(cluster)

        async def operator() -> None:
            """What the training operator writes in the end."""
            while not await cluster.all(PYTORCH_JOBS):
                await cluster.pass_time(1)
            (job,) = await cluster.all(PYTORCH_JOBS)
            assert set(job["spec"]["pytorchReplicaSpecs"]) == {"Master", "Worker"}
            ended = {"type": "Succeeded", "status": "True", "reason": "x", "message": ""}
            body = {"status": {"conditions": [ended]}}
            await cluster.patch(PYTORCH_JOBS, job["metadata"]["name"], body, "status", "shoal-smoke-test")

        beside = asyncio.ensure_future(operator())
        done = await _run(cluster, "pytorch-multi", settings=SmokeSettings(pytorch_image="train"))
        await beside
        assert done["pytorch-multi"].state == "pass"


@virtual
async def test_a_pytorch_job_whose_pods_are_refused_fails_with_the_event(tmp_path: Path) -> None:
    async with cluster_with(tmp_path, 8) as cluster:
        (definition,) = (one for one in definitions() if one["metadata"]["name"] == "pytorchjobs.kubeflow.org")
        await cluster.create(DEFINITIONS, definition)
        await established(cluster)

        async def operator() -> None:
            while not await cluster.all(PYTORCH_JOBS):
                await cluster.pass_time(1)
            (job,) = await cluster.all(PYTORCH_JOBS)
            about = {"kind": "PyTorchJob", "name": job["metadata"]["name"], "namespace": job["metadata"]["namespace"]}
            meta = {"name": "e", "namespace": about["namespace"]}
            event = {"metadata": meta, "involvedObject": about, "type": "Warning", "reason": "FailedCreatePod"}
            await cluster.create(EVENTS, {**event, "message": "exceeded quota: gpus"})

        beside = asyncio.ensure_future(operator())
        done = await _run(cluster, "pytorch-single", settings=SmokeSettings(timeout_s=30, pytorch_image="train"))
        await beside
        assert done["pytorch-single"].state == "fail"
        assert "Event FailedCreatePod: exceeded quota: gpus" in done["pytorch-single"].evidence


@virtual
async def test_an_api_server_that_stops_answering_ends_a_test_and_not_the_command(tmp_path: Path) -> None:
    async with cluster_with(tmp_path, 8) as cluster:
        stormy = StormyApi(cluster.api, cluster.clock, random.Random(1), CALM)
        tests = SmokeTests(stormy, Logs(GOOD_LOG), cluster.clock, SmokeSettings(timeout_s=30))
        reports: list[str] = []

        def report(words: str) -> None:
            reports.append(words)
            stormy.weather = Weather(refused=1.0)

        done = await tests.run(["vectoradd"], report)
        assert done["vectoradd"].state == "not run"
        assert "the API server did not answer" in done["vectoradd"].evidence[0]
        assert "kubectl delete namespace shoal-smoke-test" in reports[-1]


@virtual
async def test_a_short_outage_while_a_test_waits_is_not_its_end(tmp_path: Path) -> None:
    async with cluster_with(tmp_path, 8) as cluster:
        stormy = StormyApi(cluster.api, cluster.clock, random.Random(1), CALM)

        async def outage() -> None:
            while not await cluster.all(PODS):
                await cluster.pass_time(0.2)
            stormy.weather = Weather(refused=1.0)
            await cluster.pass_time(3)
            stormy.calm()

        beside = asyncio.ensure_future(outage())
        tests = SmokeTests(stormy, Logs(GOOD_LOG), cluster.clock, SmokeSettings())
        done = await tests.run(["vectoradd"], lambda _: None)
        await beside
        assert stormy.happened["refused"] > 0
        assert done["vectoradd"].state == "pass"


class Server:
    """A model server behind the proxy: each answer takes as long as its turn says."""

    def __init__(self, cluster: SmallCluster, *latencies_ms: float, refuses: bool = False) -> None:
        self._cluster = cluster
        self._latencies_ms = latencies_ms
        self._refuses = refuses
        self.paths: list[str] = []
        self.at_once = self.most_at_once = 0

    async def ask(self, method: str, path: str, query: Mapping[str, str]) -> bytes:
        self.paths.append(f"{method} {path}")
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self._cluster.pass_time(self._latencies_ms[len(self.paths) % len(self._latencies_ms)] / 1000)
        self.at_once -= 1
        if self._refuses:
            raise NotFoundError("the Service has no endpoint")
        return b"{}"


@virtual
@pytest.mark.parametrize(
    ("latencies_ms", "bar_ms", "state"),
    [((20.0,), 50, "pass"), ((20.0,), 10, "fail"), ((20.0,), 0, "manual"), ((20.0,) * 9 + (400.0,), 50, "fail")],
)
async def test_the_latency_of_a_model_server_is_measured_with_few_requests_at_once(
    tmp_path: Path, latencies_ms: tuple[float, ...], bar_ms: float, state: str
) -> None:
    load = InferenceLoad("serving", "llama", "8000", "v1/models", 40, bar_ms)
    async with small_cluster(tmp_path) as cluster:
        server = Server(cluster, *latencies_ms)
        tests = SmokeTests(cluster.api, server, cluster.clock, SmokeSettings(inference=load))
        done = await tests.run(["inference-load"], lambda _: None)
        assert done["inference-load"].state == state
        assert len(server.paths) == 43
        assert server.most_at_once == 4
        assert set(server.paths) == {"GET /api/v1/namespaces/serving/services/llama:8000/proxy/v1/models"}


@virtual
async def test_a_service_that_refuses_fails_after_one_request(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        server = Server(cluster, 1.0, refuses=True)
        load = InferenceLoad("serving", "llama", "8000")
        tests = SmokeTests(cluster.api, server, cluster.clock, SmokeSettings(inference=load))
        done = await tests.run(["inference-load"], lambda _: None)
        assert done["inference-load"].state == "fail"
        assert "no endpoint" in done["inference-load"].evidence[0]
        assert len(server.paths) == 1
