"""The HorizontalPodAutoscaler controller against an API server in memory, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.context import Context, Controller
from shoal.client.item import Obj
from shoal.client.kind import AUTOSCALERS, DEPLOYMENTS, PODS
from shoal.client.refusals import BusyError, NotFoundError, RefusedError
from shoal.embedded.apiserver.inside.scaling import InsideScaling
from shoal.embedded.controllers.autoscalers.controller import autoscaler_controller
from shoal.embedded.controllers.deployments.controller import deployment_controller
from shoal.embedded.controllers.replicas.controller import replica_set_controller

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
WAITING = {
    "type": "External",
    "external": {
        "metric": {"name": "waiting", "selector": {"matchLabels": {"queue": "a"}}},
        "target": {"type": "AverageValue", "averageValue": "10"},
    },
}


class MeteredScaling(InsideScaling):
    """The scales of the cluster, with metrics APIs that answer what the test says."""

    answers: dict[str, Obj | Exception]
    asked: list[tuple[str, Mapping[str, str]]]

    async def ask(self, path: str, query: Mapping[str, str]) -> Obj:
        self.asked.append((path, query))
        found = self.answers.get(path, RefusedError("the server could not find the requested resource (get x)"))
        if isinstance(found, Exception):
            raise found
        return found


def metered(cluster: SmallCluster) -> MeteredScaling:
    api = MeteredScaling(cluster.plane, ADMIN, "hpa")
    api.answers, api.asked = {}, []

    def make(context: Context) -> Controller:
        return autoscaler_controller(context, api)

    cluster.start(make, deployment_controller, replica_set_controller)
    return api


def external(*values: str) -> Obj:
    items = [{"metricName": "waiting", "timestamp": "2026-01-01T00:00:00Z", "value": value} for value in values]
    return {"kind": "ExternalMetricValueList", "items": items}


EXTERNAL_PATH = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/waiting"
POD_PATH = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"


async def deployment(cluster: SmallCluster, replicas: int = 1) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    await cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    await cluster.until(lambda: _has_pods(cluster, replicas))


async def _has_pods(cluster: SmallCluster, count: int) -> bool:
    return len(await cluster.pods()) == count


async def autoscaler(cluster: SmallCluster, *metrics: Obj, name: str = "web", **spec: Any) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 10, "metrics": list(metrics), **spec}
    await cluster.create(AUTOSCALERS, {"metadata": {"name": name}, "spec": spec})


async def condition(cluster: SmallCluster, type_: str, name: str = "web") -> str:
    status = (await cluster.get(AUTOSCALERS, name)).get("status") or {}
    found: Obj = next((one for one in status.get("conditions") or () if one["type"] == type_), {})
    return str(found.get("reason", ""))


async def has(cluster: SmallCluster, type_: str, reason: str) -> bool:
    return await condition(cluster, type_) == reason


@virtual
async def test_a_deployment_follows_an_external_metric_up_and_after_the_window_down(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = metered(cluster)
        await deployment(cluster)
        api.answers[EXTERNAL_PATH] = external("20", "15")
        await autoscaler(cluster, WAITING)
        await cluster.until(lambda: _has_pods(cluster, 4), within_s=40)
        status = (await cluster.get(AUTOSCALERS, "web"))["status"]
        assert status["desiredReplicas"] == 4
        current = status["currentMetrics"][0]["external"]
        assert current["current"] == {"averageValue": "35"}
        assert current["metric"]["selector"] == {"matchLabels": {"queue": "a"}}
        assert (api.asked[0][0].rpartition("/")[2], api.asked[0][1]) == ("waiting", {"labelSelector": "queue=a"})
        events = {one["reason"]: one["message"] for one in await cluster.events("web") if "size" in one["message"]}
        assert events["SuccessfulRescale"].startswith("New size: 4; reason: external metric waiting(&LabelSelector{")
        api.answers[EXTERNAL_PATH] = external("1")
        await cluster.pass_time(200)
        assert await condition(cluster, "AbleToScale") == "ScaleDownStabilized"
        assert len(await cluster.pods()) == 4
        await cluster.until(lambda: _has_pods(cluster, 1), within_s=150)


@virtual
async def test_cpu_usage_is_related_to_the_requests(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = metered(cluster)
        await deployment(cluster)
        (pod,) = await cluster.pods()
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}
        status = {"phase": "Running", "startTime": "2025-01-01T00:00:00Z", "conditions": [ready]}
        await cluster.patch(PODS, pod["metadata"]["name"], {"status": status}, "status")
        usage = {"name": "c", "usage": {"cpu": "90m", "memory": "1Mi"}}
        item = {
            "metadata": {"name": pod["metadata"]["name"], "namespace": "default"},
            "timestamp": "2026-01-01T00:00:00Z",
            "window": "15s",
            "containers": [usage],
        }
        api.answers[POD_PATH] = {"items": [item]}
        await autoscaler(cluster, CPU)
        await cluster.until(lambda: _has_pods(cluster, 2), within_s=40)
        current = (await cluster.get(AUTOSCALERS, "web"))["status"]["currentMetrics"][0]["resource"]["current"]
        assert current == {"averageUtilization": 90, "averageValue": "90m"}


CUSTOM = "/apis/custom.metrics.k8s.io/{}/namespaces/default/pods/*/load"
LOAD = {"type": "Pods", "pods": {"metric": {"name": "load"}, "target": {"type": "AverageValue", "averageValue": "2"}}}


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_custom_metrics_are_read_in_either_version(tmp_path: Path, version: str) -> None:
    @virtual
    async def run() -> None:
        async with small_cluster(tmp_path) as cluster:
            api = metered(cluster)
            api.answers[CUSTOM.format("v1beta2")] = NotFoundError(
                "the server could not find the requested resource (get pods.custom.metrics.k8s.io)"
            )
            await deployment(cluster)
            (pod,) = await cluster.pods()
            await cluster.patch(PODS, pod["metadata"]["name"], {"status": {"phase": "Running"}}, "status")
            described = {"kind": "Pod", "name": pod["metadata"]["name"]}
            item = {"describedObject": described, "timestamp": "2026-01-01T00:00:00Z", "value": "6"}
            api.answers[CUSTOM.format(version)] = {"items": [item]}
            await autoscaler(cluster, LOAD)
            await cluster.until(lambda: _has_pods(cluster, 3), within_s=40)

    run()


OBJECTS = [
    ("a Service", {"kind": "Service", "apiVersion": "v1", "name": "s"}, "default/services/s/load"),
    ("a Node", {"kind": "Node", "apiVersion": "v1", "name": "n"}, "default/nodes/n/load"),
    ("a Namespace", {"kind": "Namespace", "apiVersion": "v1", "name": "team"}, "team/metrics/load"),
    (
        "a Deployment",
        {"kind": "Deployment", "apiVersion": "apps/v1", "name": "web"},
        "default/deployments.apps/web/load",
    ),
]


@pytest.mark.parametrize(("_name", "described", "path"), OBJECTS, ids=[row[0] for row in OBJECTS])
def test_the_metric_of_an_object_is_asked_for_by_its_resource(
    tmp_path: Path, _name: str, described: Obj, path: str
) -> None:
    @virtual
    async def run() -> None:
        async with small_cluster(tmp_path) as cluster:
            api = metered(cluster)
            await deployment(cluster)
            answer = {"items": [{"timestamp": "2026-01-01T00:00:00Z", "value": "9"}]}
            api.answers[f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{path}"] = answer
            source = {
                "metric": {"name": "load"},
                "describedObject": described,
                "target": {"type": "AverageValue", "averageValue": "3"},
            }
            await autoscaler(cluster, {"type": "Object", "object": source})
            await cluster.until(lambda: _has_pods(cluster, 3), within_s=40)

    run()


@virtual
async def test_without_a_metrics_api_nothing_is_scaled_and_the_condition_says_why(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = metered(cluster)
        await deployment(cluster, 3)
        for version in ("v1beta1", "v1beta2"):
            api.answers[CUSTOM.format(version)] = NotFoundError("the server could not find the requested resource")
        await autoscaler(cluster, LOAD)
        await cluster.until(lambda: has(cluster, "ScalingActive", "FailedGetPodsMetric"), within_s=40)
        status = (await cluster.get(AUTOSCALERS, "web"))["status"]
        assert status["currentReplicas"] == 3
        message = next(one["message"] for one in status["conditions"] if one["type"] == "ScalingActive")
        assert message.endswith("no custom metrics API (custom.metrics.k8s.io) registered")


BROKEN: list[tuple[str, Obj | Exception]] = [
    ("a server that is away", BusyError("the server is currently unable to handle the request (get waiting)")),
    ("an answer without a value", {"items": [{"timestamp": "2026-01-01T00:00:00Z"}]}),
    ("a value that is no number", external("NaN")),
    ("no series", external()),
]


@pytest.mark.parametrize(("_name", "answer"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_metric_that_cannot_be_read_keeps_the_size(tmp_path: Path, _name: str, answer: Obj | Exception) -> None:
    @virtual
    async def run() -> None:
        async with small_cluster(tmp_path) as cluster:
            api = metered(cluster)
            await deployment(cluster, 3)
            api.answers[EXTERNAL_PATH] = answer
            await autoscaler(cluster, WAITING)
            await cluster.until(lambda: has(cluster, "ScalingActive", "FailedGetExternalMetric"), within_s=40)
            await cluster.pass_time(600)
            assert len(await cluster.pods()) == 3
            assert (await cluster.get(DEPLOYMENTS, "web"))["spec"]["replicas"] == 3

    run()


@virtual
async def test_a_target_that_is_not_there_is_named_and_scaled_once_it_is(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = metered(cluster)
        api.answers[EXTERNAL_PATH] = external("20")
        await autoscaler(cluster, WAITING)
        await cluster.until(lambda: has(cluster, "AbleToScale", "FailedGetScale"), within_s=40)
        await deployment(cluster)
        await cluster.until(lambda: _has_pods(cluster, 2), within_s=40)


@virtual
async def test_two_autoscalers_of_the_same_pods_do_not_scale_them(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = metered(cluster)
        api.answers[EXTERNAL_PATH] = external("10")
        await deployment(cluster)
        await autoscaler(cluster, WAITING)
        await autoscaler(cluster, WAITING, name="other")
        await cluster.until(lambda: has(cluster, "ScalingActive", "AmbiguousSelector"), within_s=40)
        await cluster.delete(AUTOSCALERS, "other")
        await cluster.until(lambda: has(cluster, "ScalingActive", "ValidMetricFound"), within_s=40)


@virtual
async def test_a_target_at_zero_is_left_alone(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = metered(cluster)
        api.answers[EXTERNAL_PATH] = external("500")
        await deployment(cluster, 0)
        await autoscaler(cluster, WAITING)
        await cluster.until(lambda: has(cluster, "ScalingActive", "ScalingDisabled"), within_s=40)
        assert api.asked == []
        assert not await cluster.pods()


@virtual
async def test_a_change_of_the_limits_counts_at_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        api = metered(cluster)
        api.answers[EXTERNAL_PATH] = external("20")
        await deployment(cluster, 2)
        await autoscaler(cluster, WAITING)
        await cluster.until(lambda: has(cluster, "ScalingActive", "ValidMetricFound"), within_s=40)
        await cluster.patch(AUTOSCALERS, "web", {"spec": {"maxReplicas": 1}})
        await cluster.until(lambda: _has_pods(cluster, 1), within_s=5)
