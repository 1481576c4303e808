"""Checks Services and serving kinds: missing Services, unprotected user interfaces, metrics without meaning."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext, rule
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import DEPLOYMENT, SERVICE, STATEFUL_SET
from shoal.policy.pod_templates import pod_templates

_OPEN = ("comfyui", "open-webui", "ollama")
"""Images that require no login by default."""
SECRET_ENDINGS = ("SECRET", "SECRET_KEY", "PASSWORD", "TOKEN", "API_KEY", "ACCESS_KEY")


@rule(NoHeadlessService="the Service of a StatefulSet does not exist, or has a cluster IP")
def governing_services(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """The pods of a StatefulSet have DNS names below its headless Service."""
    namespace, name = str(dig(obj, "metadata", "namespace") or ""), dig(obj, "spec", "serviceName")
    if not isinstance(name, str) or not name:
        return
    what = ""
    if context.lacks(SERVICE, namespace, name):
        what = f'Service "{name}" not found in namespace {namespace}'
    elif (service := context.find(SERVICE, namespace, name)) and dig(service, "spec", "clusterIP") != "None":
        what = f"Service {name} is not headless"
    if what:
        fix = "create a Service of that name with clusterIP: None"
        yield Advice("NoHeadlessService", "spec.serviceName", f"{what}: the pods have no DNS names", fix)


@rule(PlainSecret="a secret is written in the manifest")
def plain_secrets(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for path, container in template.containers():
            for at, one in enumerate(maps(container.get("env"))):
                name = str(one.get("name") or "")
                if one.get("value") and name.endswith(SECRET_ENDINGS):
                    what = f"{name} is in the manifest, readable by every user who may read the object"
                    fix = "store it in a Secret, and use valueFrom.secretKeyRef"
                    yield Advice("PlainSecret", f"{path}.env[{at}].value", what, fix)


@rule(OpenDoor="a load balancer exposes a program without a login")
def open_load_balancers(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Finds Services of type LoadBalancer in front of programs without a login."""
    spec = string_keys(obj.get("spec"))
    wanted = string_keys(spec.get("selector"))
    if spec.get("type") != "LoadBalancer" or not wanted:
        return
    namespace = str(dig(obj, "metadata", "namespace") or "")
    for kind in (DEPLOYMENT, STATEFUL_SET):
        for server in context.all(kind, namespace):
            for template in pod_templates(server):
                image = next((name for name in map(_image, template.containers()) if name in _OPEN), "")
                if image and wanted.items() <= template.labels.items():
                    what = f"exposes {image} without a login to every client that reaches the load balancer"
                    fix = "use ClusterIP, and an ingress with authentication"
                    yield Advice("OpenDoor", "spec.type", what, fix)
                    return


def _image(placed: tuple[str, Obj]) -> str:
    """`open-webui` of `ghcr.io/open-webui/open-webui:main`."""
    return str(placed[1].get("image") or "").rpartition("/")[2].partition(":")[0].partition("@")[0]


@rule(CpuOfGpuPods="GPU pods are scaled by their CPU utilization")
def cpu_of_gpu_pods(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Finds autoscalers that scale GPU pods by their CPU utilization."""
    target = string_keys(dig(obj, "spec", "scaleTargetRef"))
    kind = {"Deployment": DEPLOYMENT, "StatefulSet": STATEFUL_SET}.get(str(target.get("kind")))
    if kind is None:
        return
    scaled = context.find(kind, str(dig(obj, "metadata", "namespace") or ""), str(target.get("name")))
    if scaled is None or not any(template.asks_gpus() for template in pod_templates(scaled)):
        return
    for at, metric in enumerate(maps(dig(obj, "spec", "metrics"))):
        if metric.get("type") == "Resource" and dig(metric, "resource", "name") == "cpu":
            yield Advice(
                "CpuOfGpuPods",
                f"spec.metrics[{at}].resource.name",
                "the CPU utilization hardly depends on the load of the GPU: it would scale too late or never",
                "scale by GPU utilization or by waiting requests",
            )
