"""The metrics APIs answer only the API server's proxy, and are registered where no other server is."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.pod_autoscaling_rules import PodAutoscalingRules
from shoal.api.selectors import Selector
from shoal.autoscale.exposed_metrics.gpu_metrics import ObjectValue
from shoal.autoscale.exposed_metrics.prometheus_metrics import ObjectQuestion
from shoal.client.certificates import Pair, new_authority, new_client
from shoal.client.item import Obj
from shoal.client.kind import API_SERVICES, CLUSTER_ROLES, CONFIG_MAPS, NAMESPACES, SERVICES
from shoal.data.permissions import POD_AUTOSCALING
from shoal.embedded.controllers.garbage.collector import garbage_collector
from shoal.embedded.kubelets.endpoint.custom_metrics_routes import CustomMetricsRoutes, OtherMetrics
from shoal.embedded.kubelets.endpoint.external_metrics_routes import ExternalMetricsRoutes, ExternalValues
from shoal.install.objects.permissions import manifests, own_permissions
from shoal.prometheus.samples import MetricLine
from shoal.units.errors import UserError
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.written_objects import written_objects
from shoal.wiring.metrics_apis_server import OWN_ROLE, MetricsApisServer, TrustedProxy, leads_elsewhere, read_trust

NOW = datetime.now(UTC)  # noqa: TID251 - certificates need the real date
RULES = PodAutoscalingRules()
GROUPS = (("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1"))
USE = {"pod": "infer", "namespace": "team", "Hostname": "n1"}


class Series:
    def read(self) -> tuple[Sequence[MetricLine], float]:
        return [MetricLine("DCGM_FI_DEV_GPU_UTIL", USE, 90.0)], 0.0

    def pod_labels(self) -> Mapping[tuple[str, str], Mapping[str, str]]:
        return {("team", "infer"): {"app": "infer"}}


class Triggers:
    async def values(self, namespace: str, name: str, selector: Selector) -> ExternalValues:
        return [(name, {"of": namespace}, 2500)]

    def names(self) -> Sequence[str]:
        return ["s0-q"]


class Proxy:
    """The certificates of an API server's proxy, and of others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.authority = new_authority(NOW, "front-proxy-ca")

    def certificate(self, name: str, authority: Pair | None = None) -> Path:
        pair = new_client(authority or self.authority, name, (), NOW)
        path = self._folder / f"{name}.pem"
        path.write_bytes(pair.certificate + pair.key)
        return path


@asynccontextmanager
async def listening(proxy: Proxy, others: OtherMetrics | None = None) -> AsyncIterator[MetricsApisServer]:
    routes = [
        *CustomMetricsRoutes(Series(), lambda _: {}, others).routes(),
        *ExternalMetricsRoutes(Triggers(), lambda: 0.0).routes(),
    ]
    trusted = TrustedProxy(proxy.authority.certificate.decode(), ("front-proxy-client",))
    # Port 0 is not for users, who must make a Service for a port that they know.
    rules = PodAutoscalingRules(port=0)
    server = MetricsApisServer(rules, trusted, routes)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def answer(server: MetricsApisServer, path: str, certificate: Path | None) -> tuple[int, Obj]:
    context = ssl.create_default_context(cadata=server.ca)
    if certificate is not None:
        context.load_cert_chain(certificate)
    name = f"{RULES.service_name}.{RULES.service_namespace}.svc"
    url = f"https://127.0.0.1:{server.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context, server_hostname=name) as found:
        return found.status, await found.json()


async def test_only_the_proxy_of_the_api_server_is_answered(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path)
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/team/s0-q"
    async with listening(proxy) as server:
        code, body = await answer(server, path, proxy.certificate("front-proxy-client"))
        assert (code, body["items"][0]["value"], body["items"][0]["metricLabels"]) == (200, "2500m", {"of": "team"})
        code, body = await answer(server, path, None)
        assert (code, body["reason"]) == (401, "Unauthorized")
        code, body = await answer(server, path, proxy.certificate("somebody"))
        assert (code, body["reason"]) == (403, "Forbidden")
        other = proxy.certificate("front-proxy-client", new_authority(NOW, "other"))
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await answer(server, path, other)


async def test_the_use_of_gpus_is_a_metric_of_pods(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path)
    async with listening(proxy) as server:
        shown = proxy.certificate("front-proxy-client")
        root = "/apis/custom.metrics.k8s.io/v1beta2"
        path = f"{root}/namespaces/team/pods/*/DCGM_FI_DEV_GPU_UTIL"
        code, body = await answer(server, f"{path}?labelSelector=app%3Dinfer", shown)
        assert (code, [(one["describedObject"]["name"], one["value"]) for one in body["items"]]) == (
            200,
            [("infer", "90")],
        )
        assert (await answer(server, f"{path}?labelSelector=app%3Dother", shown))[1]["items"] == []
        code, body = await answer(server, root, shown)
        assert "pods/DCGM_FI_DEV_GPU_UTIL" in {one["name"] for one in body["resources"]}


class Others:
    """A Prometheus server that has one metric of pods, and one of services."""

    def __init__(self) -> None:
        self.asked: list[ObjectQuestion] = []

    def seconds(self) -> float:
        return 60.0

    def resources(self) -> Sequence[tuple[str, str, bool]]:
        return [("pods", "waiting", True), ("services", "waiting", True)]

    async def object_values(self, asked: ObjectQuestion, metric: str, selector: Selector) -> list[ObjectValue] | None:
        self.asked.append(asked)
        if metric != "waiting":
            return None
        return [ObjectValue(asked.namespace, name, 3.0) for name in asked.names]


async def test_metrics_of_a_prometheus_server_are_those_of_pods_and_of_other_objects(tmp_path: Path) -> None:
    proxy, others = Proxy(tmp_path), Others()
    async with listening(proxy, others) as server:
        shown = proxy.certificate("front-proxy-client")
        root = "/apis/custom.metrics.k8s.io/v1beta2"
        team = f"{root}/namespaces/team"
        _, body = await answer(server, f"{team}/pods/*/waiting?labelSelector=app%3Dinfer", shown)
        assert [(one["describedObject"]["name"], one["value"]) for one in body["items"]] == [("infer", "3")]
        _, body = await answer(server, f"{team}/pods/*/waiting?labelSelector=app%3Dother", shown)
        assert body["items"] == []
        _, body = await answer(server, f"{team}/services/web/waiting", shown)
        assert body["items"][0]["describedObject"]["name"] == "web"
        assert body["items"][0]["timestamp"] == "1970-01-01T00:01:00Z"
        code, body = await answer(server, f"{team}/services/web/none", shown)
        assert (code, body["reason"]) == (404, "NotFound")
        _, body = await answer(server, f"{team}/pods/infer/DCGM_FI_DEV_GPU_UTIL", shown)
        assert body["items"][0]["value"] == "90"
        _, body = await answer(server, root, shown)
        assert "services/waiting" in {one["name"] for one in body["resources"]}
    assert others.asked[:2] == [
        ObjectQuestion("pods", "team", ("infer",)),
        ObjectQuestion("services", "team", ("web",)),
    ]


async def with_service(cluster: SmallCluster) -> None:
    await cluster.create(NAMESPACES, {"metadata": {"name": RULES.service_namespace}})
    meta = {"name": RULES.service_name, "namespace": RULES.service_namespace}
    await cluster.create(SERVICES, {"metadata": meta, "spec": {"type": "ExternalName", "externalName": "localhost"}})


@virtual
async def test_the_apis_are_registered_once_the_service_exists(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        server = MetricsApisServer(RULES, TrustedProxy("", ()), [])
        assert await server.register(cluster.api, GROUPS) == []
        await with_service(cluster)
        names = ["v1beta2.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"]
        assert await server.register(cluster.api, GROUPS) == names
        assert await server.register(cluster.api, GROUPS) == names
        written = await written_objects(ClusterWriter(cluster.api, cluster.clock))
        assert {name for kind, _, name in written if kind == API_SERVICES} == set(names)
        found = await cluster.get(API_SERVICES, names[0], "")
        assert found["spec"]["service"] == {"namespace": "shoal-system", "name": "shoal-metrics-apis", "port": 443}


@virtual
async def test_the_registration_goes_with_the_role_of_the_installation(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [garbage_collector]) as cluster:
        await with_service(cluster)
        server = MetricsApisServer(RULES, TrustedProxy("", ()), [])
        # Of an older release: it has no owner yet.
        assert len(await server.register(cluster.api, GROUPS)) == 2
        await cluster.create(CLUSTER_ROLES, {"metadata": {"name": OWN_ROLE}, "rules": []})
        assert len(await server.register(cluster.api, GROUPS)) == 2
        await cluster.pass_time(120)
        assert len(await _registered(cluster)) == 2
        await cluster.delete(CLUSTER_ROLES, OWN_ROLE, namespace="")
        await cluster.pass_time(120)
        assert await _registered(cluster) == []


async def _registered(cluster: SmallCluster) -> list[str]:
    names = [each["metadata"]["name"] for each in await cluster.all(API_SERVICES, "")]
    return [name for name in names if name.endswith("metrics.k8s.io") and ("custom" in name or "external" in name)]


def test_the_role_is_the_one_that_an_installation_grants() -> None:
    for granted in (own_permissions(POD_AUTOSCALING, OWN_ROLE, "shoal-system"), manifests((POD_AUTOSCALING,))):
        roles = {one["metadata"]["name"] for one in granted if one["kind"] == "ClusterRole"}
        assert OWN_ROLE in roles


@virtual
async def test_the_registration_of_another_server_is_left_alone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await with_service(cluster)
        group, version = GROUPS[1]
        spec: Obj = {"group": group, "version": version, "groupPriorityMinimum": 1, "versionPriority": 1}
        spec["service"] = {"namespace": "keda", "name": "keda-metrics-apiserver"}
        spec["insecureSkipTLSVerify"] = True
        await cluster.create(API_SERVICES, {"metadata": {"name": f"{version}.{group}"}, "spec": spec})
        server = MetricsApisServer(RULES, TrustedProxy("", ()), [])
        assert await server.register(cluster.api, GROUPS) == ["v1beta2.custom.metrics.k8s.io"]
        assert await leads_elsewhere(cluster.api, f"{version}.{group}", RULES)
        assert (await cluster.get(API_SERVICES, f"{version}.{group}", ""))["spec"]["service"]["namespace"] == "keda"


@virtual
async def test_a_cluster_without_a_proxy_authority_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        name = "extension-apiserver-authentication"
        for one in await cluster.all(CONFIG_MAPS, "kube-system"):
            if one["metadata"]["name"] == name:
                await cluster.delete(CONFIG_MAPS, name, namespace="kube-system")
        with pytest.raises(UserError, match="no requestheader-client-ca-file"):
            await read_trust(cluster.api)
