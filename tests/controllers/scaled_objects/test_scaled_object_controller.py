"""The controller of ScaledObjects against an API server in memory, in virtual time."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from build.server_processes import LOOPBACK
from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.selector_text import parse_label_selector
from shoal.autoscale.scaled_objects.trigger_sources import HttpRequest
from shoal.client.ecosystem_kinds import SCALED_OBJECTS, TRIGGER_AUTHENTICATIONS
from shoal.client.item import Obj
from shoal.client.kind import AUTOSCALERS, DEFINITIONS, DEPLOYMENTS, PODS, SECRETS
from shoal.client.refusals import NotFoundError
from shoal.controllers.scaled_objects.controller import scaled_object_controller
from shoal.controllers.scaled_objects.metric_source import MetricSource
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.apiserver.inside.scaling import InsideScaling
from shoal.embedded.controllers.garbage.collector import garbage_collector
from shoal.units.errors import TemporaryError, UserError

WORKLOAD = {"type": "kubernetes-workload", "metadata": {"podSelector": "job=a", "value": "2"}}
PROMETHEUS = {
    "type": "prometheus",
    "metadata": {"serverAddress": "http://prom", "query": "q", "threshold": "10", "authModes": "bearer"},
    "authenticationRef": {"name": "auth"},
}


class SaidSource(HttpSource):
    """HTTP servers that answer what the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.body: bytes | None = None
        self.asked: list[HttpRequest] = []

    async def get(self, asked: HttpRequest) -> bytes:
        self.asked.append(asked)
        if self.body is None:
            raise TemporaryError("http://prom cannot be asked", 1.0)
        return self.body


class Scaled:
    def __init__(self, cluster: SmallCluster, source: MetricSource, http: SaidSource) -> None:
        self.cluster = cluster
        self.source = source
        self.http = http
        self.keda_runs = False

    async def has_replicas(self, count: int) -> bool:
        return int((await self.cluster.get(DEPLOYMENTS, "web"))["spec"].get("replicas", 0)) == count

    async def condition(self, type_: str) -> str:
        status = (await self.cluster.get(SCALED_OBJECTS, "web")).get("status") or {}
        found: Obj = next((one for one in status.get("conditions") or () if one["type"] == type_), {})
        return f"{found.get('status')} {found.get('reason')}"

    async def says(self, type_: str, wanted: str) -> bool:
        return await self.condition(type_) == wanted

    async def has_autoscaler(self) -> bool:
        return bool(await self.cluster.all(AUTOSCALERS))

    async def jobs(self, count: int) -> None:
        for pod in await self.cluster.pods():
            await self.cluster.delete(PODS, pod["metadata"]["name"])
        for number in range(count):
            meta = {"name": f"job-{number}", "labels": {"job": "a"}}
            await self.cluster.create(PODS, {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}})


@asynccontextmanager
async def scaled(folder: Path) -> AsyncIterator[Scaled]:
    async with small_cluster(folder) as cluster:
        for definition in definitions():
            if definition["spec"]["group"] == "keda.sh":
                await cluster.create(DEFINITIONS, definition)
        context = cluster.context("keda-operator")
        http = SaidSource()
        found = Scaled(cluster, MetricSource(context, http), http)

        async def keda_runs() -> bool:
            return found.keda_runs

        scaling = InsideScaling(cluster.plane, ADMIN, "keda-operator")
        cluster.start(lambda one: scaled_object_controller(one, scaling, found.source, keda_runs), garbage_collector)
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        await cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
        yield found


async def scaled_object(cluster: SmallCluster, *triggers: Obj, **spec: Any) -> None:
    spec = {"scaleTargetRef": {"name": "web"}, "triggers": list(triggers), "pollingInterval": 10, **spec}
    await cluster.create(SCALED_OBJECTS, {"metadata": {"name": "web"}, "spec": spec})


OWNER = parse_label_selector("scaledobject.keda.sh/name=web")


@virtual
async def test_a_target_goes_to_zero_after_its_cooldown_and_comes_back_with_work(tmp_path: Path) -> None:
    async with scaled(tmp_path) as found:
        cluster = found.cluster
        await found.jobs(3)
        await scaled_object(cluster, WORKLOAD, cooldownPeriod=60)
        await cluster.until(lambda: found.says("Active", "True ScalerActive"))
        autoscaler = (await cluster.all(AUTOSCALERS))[0]
        assert autoscaler["metadata"]["name"] == "keda-hpa-web"
        assert await found.source.external_value("default", "s0-workload-default", OWNER) == (
            {"scaledobject.keda.sh/name": "web"},
            3000,
        )
        await found.jobs(0)
        await cluster.until(lambda: found.says("Active", "False ScalerCooldown"))
        assert await found.has_replicas(2)
        await cluster.until(lambda: found.has_replicas(0), within_s=90)
        await cluster.until(lambda: found.says("Active", "False ScalerNotActive"))
        await found.jobs(1)
        await cluster.until(lambda: found.has_replicas(1))
        reasons = [one["reason"] for one in await cluster.events("web")]
        assert {"KEDAScaleTargetDeactivated", "KEDAScaleTargetActivated"} <= set(reasons)


@virtual
async def test_values_are_polled_anew_when_the_autoscaler_asks(tmp_path: Path) -> None:
    async with scaled(tmp_path) as found:
        await found.jobs(1)
        await scaled_object(found.cluster, WORKLOAD, pollingInterval=1000)
        await found.cluster.until(found.has_autoscaler)
        await found.jobs(4)
        await found.cluster.pass_time(5)
        assert (await found.source.external_value("default", "s0-workload-default", OWNER))[1] == 4000
        with pytest.raises(UserError, match="no matching metrics found"):
            await found.source.external_value("default", "s9-none", OWNER)
        with pytest.raises(UserError, match="there is no such ScaledObject"):
            await found.source.external_value("other", "s0-workload-default", OWNER)


@virtual
async def test_a_trigger_that_fails_keeps_the_size_until_the_fallback(tmp_path: Path) -> None:
    async with scaled(tmp_path) as found:
        cluster = found.cluster
        token = base64.b64encode(b"t0p").decode()
        await cluster.create(SECRETS, {"metadata": {"name": "s"}, "data": {"k": token}})
        reference = {"name": "s", "key": "k", "parameter": "bearerToken"}
        spec: Obj = {"secretTargetRef": [reference]}
        await cluster.create(TRIGGER_AUTHENTICATIONS, {"metadata": {"name": "auth"}, "spec": spec})
        await scaled_object(cluster, PROMETHEUS, cooldownPeriod=0, fallback={"failureThreshold": 3, "replicas": 5})
        await cluster.until(lambda: found.says("Fallback", "True FallbackExists"), within_s=90)
        assert found.http.asked[0].headers == {"Authorization": "Bearer t0p"}
        assert await found.has_replicas(2)
        assert (await found.source.external_value("default", "s0-prometheus", OWNER))[1] == 50_000
        found.http.body = b'{"data": {"resultType": "vector", "result": [{"value": [1, "40"]}]}}'
        await cluster.until(lambda: found.says("Fallback", "False NoFallbackFound"))
        assert (await found.source.external_value("default", "s0-prometheus", OWNER))[1] == 40_000


@virtual
async def test_without_a_fallback_a_failing_trigger_is_a_condition_and_nothing_is_scaled(tmp_path: Path) -> None:
    async with scaled(tmp_path) as found:
        trigger = {**PROMETHEUS, "metadata": {**PROMETHEUS["metadata"], "authModes": ""}, "authenticationRef": None}  # type: ignore[dict-item]
        del trigger["authenticationRef"]
        await scaled_object(found.cluster, trigger, cooldownPeriod=0)
        await found.cluster.until(lambda: found.says("Ready", "False TriggerError"))
        await found.cluster.pass_time(600)
        assert await found.has_replicas(2)
        with pytest.raises(TemporaryError, match="cannot be asked"):
            await found.source.external_value("default", "s0-prometheus", OWNER)
        found.http.body = b'{"data": {"resultType": "vector", "result": [{"value": [1, "NaN"]}]}}'
        await found.cluster.pass_time(60)
        assert await found.condition("Ready") == "False TriggerError"
        assert await found.has_replicas(2)
        said = [one["message"] for one in await found.cluster.events("web") if one["reason"] == "KEDAScalerFailed"]
        assert any("s0-prometheus: http://prom cannot be asked" in one for one in said)


@virtual
async def test_an_external_scaler_that_does_not_answer_is_a_condition_until_it_does(tmp_path: Path) -> None:
    async with scaled(tmp_path) as found:
        trigger = {"type": "external", "metadata": {"scalerAddress": "127.0.0.1:1"}}
        await scaled_object(found.cluster, trigger, cooldownPeriod=0)
        await found.cluster.until(lambda: found.says("Ready", "False ScaledObjectCheckFailed"))
        said = [one["message"] for one in await found.cluster.events("web")]
        assert any("loopback addresses are not asked" in one for one in said)
        assert await found.has_replicas(2)


INVALID: list[tuple[str, Obj, str]] = [
    ("an unknown type", {"triggers": [{"type": "nats", "metadata": {}}]}, "no scaler found for type: nats"),
    (
        "an authentication that is not there",
        {"triggers": [PROMETHEUS]},
        "error getting TriggerAuthentication auth: it does not exist",
    ),
    ("a minimum above the maximum", {"minReplicaCount": 3, "maxReplicaCount": 2}, "MinReplicaCount=3 must be less"),
    ("a target that is not there", {"scaleTargetRef": {"name": "none"}}, 'deployments.apps "none" not found'),
    ("a kind that is not there", {"scaleTargetRef": {"name": "w", "kind": "Lost"}}, 'no matches for kind "Lost"'),
]


@pytest.mark.parametrize(("_name", "fields", "part"), INVALID, ids=[row[0] for row in INVALID])
def test_an_invalid_scaled_object_scales_nothing_and_says_why(
    tmp_path: Path, _name: str, fields: Obj, part: str
) -> None:
    @virtual
    async def run() -> None:
        async with scaled(tmp_path) as found:
            spec = {"triggers": [WORKLOAD], "scaleTargetRef": {"name": "web"}, "cooldownPeriod": 0, **fields}
            await found.cluster.create(SCALED_OBJECTS, {"metadata": {"name": "web"}, "spec": spec})
            await found.cluster.until(lambda: found.says("Ready", "False ScaledObjectCheckFailed"))
            conditions = (await found.cluster.get(SCALED_OBJECTS, "web"))["status"]["conditions"]
            assert part in next(one["message"] for one in conditions if one["type"] == "Ready")
            assert not await found.has_autoscaler()
            assert await found.has_replicas(2)

    run()


@virtual
async def test_a_pause_with_a_size_removes_the_autoscaler_and_its_end_brings_it_back(tmp_path: Path) -> None:
    async with scaled(tmp_path) as found:
        cluster = found.cluster
        await found.jobs(3)
        await scaled_object(cluster, WORKLOAD)
        await cluster.until(found.has_autoscaler)
        note = "autoscaling.keda.sh/paused-replicas"
        await cluster.patch(SCALED_OBJECTS, "web", {"metadata": {"annotations": {note: "5"}}})
        await cluster.until(lambda: found.has_replicas(5))
        await cluster.until(lambda: found.says("Paused", "True ScaledObjectPaused"))
        assert not await found.has_autoscaler()
        await cluster.patch(SCALED_OBJECTS, "web", {"metadata": {"annotations": {note: None}}})
        await cluster.until(found.has_autoscaler)
        await cluster.until(lambda: found.says("Paused", "False ScaledObjectUnpaused"))


@virtual
async def test_a_deleted_scaled_object_restores_the_first_size_if_asked_and_takes_its_autoscaler_along(
    tmp_path: Path,
) -> None:
    async with scaled(tmp_path) as found:
        cluster = found.cluster
        await found.jobs(0)
        await scaled_object(cluster, WORKLOAD, advanced={"restoreToOriginalReplicaCount": True})
        await cluster.until(lambda: found.has_replicas(0))
        await cluster.delete(SCALED_OBJECTS, "web")
        await cluster.until(lambda: found.has_replicas(2))

        async def is_gone() -> bool:
            try:
                await cluster.get(SCALED_OBJECTS, "web")
            except NotFoundError:
                return not await found.has_autoscaler()
            return False

        await cluster.until(is_gone)


@virtual
async def test_where_keda_runs_nothing_is_done(tmp_path: Path) -> None:
    async with scaled(tmp_path) as found:
        found.keda_runs = True
        await scaled_object(found.cluster, WORKLOAD, cooldownPeriod=0)
        await found.cluster.pass_time(100)
        assert not await found.has_autoscaler()
        assert await found.has_replicas(2)
        found.keda_runs = False
        await found.cluster.until(found.has_autoscaler, within_s=90)


async def test_servers_are_asked_with_bounds() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/long":
            return web.Response(body=b"x" * (5 << 20))
        if request.path == "/bad":
            return web.Response(status=500)
        return web.json_response({"query": dict(request.query), "user": request.headers.get("Authorization", "")})

    application = web.Application()
    application.router.add_get("/{path}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    root = f"http://127.0.0.1:{runner.addresses[0][1]}"
    source = HttpSource(LOOPBACK)
    try:
        body = await source.get(HttpRequest(f"{root}/x", {"query": "a b"}, username="u", password="p"))  # noqa: S106 - of the test
        assert body == b'{"query": {"query": "a b"}, "user": "Basic dTpw"}'
        with pytest.raises(TemporaryError, match="status code 500"):
            await source.get(HttpRequest(f"{root}/bad"))
        with pytest.raises(TemporaryError, match="longer than 4 MiB"):
            await source.get(HttpRequest(f"{root}/long"))
    finally:
        await source.close()
        await runner.cleanup()
    with pytest.raises(TemporaryError, match="cannot be asked"):
        await source.get(HttpRequest(f"{root}/x"))
    await source.close()
