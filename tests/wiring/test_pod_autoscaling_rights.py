"""The part pod-autoscaling does its work with the rights of its role, and is refused nothing."""

from __future__ import annotations

import base64
from pathlib import Path

from build.ruled_clusters import ruled_cluster
from build.virtual_time import virtual
from shoal.api.pod_autoscaling_rules import PodAutoscalingRules
from shoal.client.ecosystem_kinds import SCALED_JOBS, SCALED_OBJECTS, TRIGGER_AUTHENTICATIONS
from shoal.client.item import Obj
from shoal.client.kind import AUTOSCALERS, DEPLOYMENTS, JOBS, SECRETS, SERVICES
from shoal.client.presence import KEDA, Presence
from shoal.controllers.scaled_objects.controller import scaled_object_controller
from shoal.controllers.scaled_objects.metric_source import MetricSource
from shoal.controllers.scaled_objects.scaled_jobs_controller import scaled_job_controller
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.controllers.serving.controller import serving_scaler
from shoal.controllers.serving.server_metrics import ServerMetrics
from shoal.data.permissions import IN_NAMESPACE, PARTS, POD_AUTOSCALING
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.scaling import InsideScaling
from shoal.install.objects.permissions import RoleSubjects, manifests
from shoal.units.errors import TemporaryError
from shoal.wiring.metrics_apis_server import MetricsApisServer, TrustedProxy, read_trust

RULES = PodAutoscalingRules()
TEMPLATE: Obj = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
CRON = {
    "type": "cron",
    "metadata": {"timezone": "UTC", "start": "0 0 * * *", "end": "59 23 * * *", "desiredReplicas": "3"},
    "authenticationRef": {"name": "auth"},
}


async def fetch(url: str) -> bytes:
    raise TemporaryError(f"{url} cannot be asked", 1.0)


def deployment(name: str, **annotations: str) -> Obj:
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


@virtual
async def test_the_rights_of_the_part_suffice(tmp_path: Path) -> None:
    async with ruled_cluster(tmp_path, "keda", "lws") as ruled:
        cluster = ruled.cluster
        await ruled.apply(manifests((POD_AUTOSCALING,), RoleSubjects(user="ann")))
        api = ruled.way_in("ann")
        scaling = InsideScaling(cluster.plane, Actor("ann", ("system:authenticated",)), "ann")
        context = cluster.context("pod-autoscaling", api)
        keda, source = Presence(context, KEDA), MetricSource(context, HttpSource())

        async def keda_runs() -> bool:
            await keda.look()
            return keda.is_there

        cluster.start(
            lambda one: scaled_object_controller(one, scaling, source, keda_runs),
            lambda one: scaled_job_controller(one, source.values, keda_runs),
            lambda one: serving_scaler(one, DEPLOYMENTS, scaling, ServerMetrics(fetch)),
            api=api,
        )
        await cluster.create(SECRETS, {"metadata": {"name": "s"}, "data": {"k": base64.b64encode(b"x").decode()}})
        reference = {"parameter": "p", "name": "s", "key": "k"}
        auth: Obj = {"metadata": {"name": "auth"}, "spec": {"secretTargetRef": [reference]}}
        await cluster.create(TRIGGER_AUTHENTICATIONS, auth)
        await cluster.create(DEPLOYMENTS, deployment("web"))
        spec: Obj = {"scaleTargetRef": {"name": "web"}, "triggers": [CRON], "minReplicaCount": 2}
        await cluster.create(SCALED_OBJECTS, {"metadata": {"name": "web"}, "spec": spec})
        jobs: Obj = {"triggers": [CRON], "jobTargetRef": {"template": {"spec": {**TEMPLATE["spec"]}}}}
        jobs["jobTargetRef"]["template"]["spec"]["restartPolicy"] = "Never"
        await cluster.create(SCALED_JOBS, {"metadata": {"name": "work"}, "spec": jobs})
        await cluster.create(DEPLOYMENTS, deployment("llm", **{"serving.shoal.dev/max-replicas": "2"}))

        async def is_done() -> bool:
            status = (await cluster.get(DEPLOYMENTS, "llm"))["metadata"]["annotations"]
            has_made = bool(await cluster.all(AUTOSCALERS)) and bool(await cluster.all(JOBS))
            return has_made and "serving.shoal.dev/status" in status

        await cluster.until(is_done, within_s=120)
        await read_trust(api)
        meta = {"name": RULES.service_name, "namespace": RULES.service_namespace}
        await cluster.create(
            SERVICES, {"metadata": meta, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        )
        server = MetricsApisServer(RULES, TrustedProxy("", ()), [])
        assert len(await server.register(api, [("external.metrics.k8s.io", "v1beta1")])) == 1
        await server.register(api, [("external.metrics.k8s.io", "v1beta1")])
        assert ruled.refused == []


def test_this_part_alone_reads_secrets_and_changes_none() -> None:
    lines = {part: [*PARTS[part], *IN_NAMESPACE.get(part, ())] for part in PARTS}
    named = {
        part
        for part, found in lines.items()
        for line in found
        if "secrets" in line.split()[1].split(",") and "=" not in line and "create" not in line.split()[0]
    }
    assert named == {POD_AUTOSCALING}
    assert [line for line in lines[POD_AUTOSCALING] if "secrets" in line] == ["get configmaps,secrets"]
