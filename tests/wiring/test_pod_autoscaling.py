"""The part pod-autoscaling of `shoal run`, composed as the process composes it, in real time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from build.server_processes import free_port
from build.small_clusters import ADMIN, small_cluster
from shoal.api.pod_autoscaling_rules import PodAutoscalingRules
from shoal.api.run_configuration import RunConfiguration
from shoal.cli.run import run_choice
from shoal.cli.run_files import RunFiles
from shoal.client.ecosystem_kinds import SCALED_OBJECTS
from shoal.client.item import Obj
from shoal.client.kind import API_SERVICES, AUTOSCALERS, DEFINITIONS, DEPLOYMENTS, NAMESPACES, SERVICES
from shoal.client.served import Served
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.apiserver.inside.scaling import InsideScaling
from shoal.wiring.pod_autoscaling import start_pod_autoscaling
from shoal.wiring.process_tasks import ProcessTasks

TEMPLATE: Obj = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
WORKLOAD = {"type": "kubernetes-workload", "metadata": {"podSelector": "job=a", "value": "2"}}


async def test_scaled_objects_and_the_metrics_apis_run_together(tmp_path: Path) -> None:
    rules = PodAutoscalingRules(port=free_port())
    choice = run_choice(RunFiles(RunConfiguration(controllers=("pod-autoscaling",), pod_autoscaling=rules)))
    async with small_cluster(tmp_path) as cluster:
        for definition in definitions():
            if definition["spec"]["group"] == "keda.sh":
                await cluster.create(DEFINITIONS, definition)
        await cluster.create(NAMESPACES, {"metadata": {"name": rules.service_namespace}})
        meta = {"name": rules.service_name, "namespace": rules.service_namespace}
        service: Obj = {"metadata": meta, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        await cluster.create(SERVICES, service)
        spec: Obj = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
        await cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
        scaled: Obj = {"scaleTargetRef": {"name": "web"}, "triggers": [WORKLOAD], "minReplicaCount": 3}
        await cluster.create(SCALED_OBJECTS, {"metadata": {"name": "web"}, "spec": scaled})
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        context = tasks.context("shoal-pod-autoscaling", cluster.api)
        served = Served(context)
        try:
            start_pod_autoscaling(tasks, context, InsideScaling(cluster.plane, ADMIN, "test"), served, choice)
            await served.look()
            tasks.start("caches", tasks.informers.run)

            async def is_done() -> bool:
                apis = {one["metadata"]["name"] for one in await cluster.all(API_SERVICES)}
                size = (await cluster.get(DEPLOYMENTS, "web"))["spec"]["replicas"]
                wanted = {"v1beta2.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"}
                return wanted <= apis and size == 3 and bool(await cluster.all(AUTOSCALERS))

            await cluster.until(is_done)
            reader, writer = await asyncio.open_connection("127.0.0.1", rules.port)
            writer.close()
            assert not reader.at_eof()
        finally:
            await tasks.end()
