"""Checks Services and serving kinds: missing Services, unprotected user interfaces, metrics without meaning."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import AUTOSCALER, DEPLOYMENT, SERVICE, STATEFUL_SET, WITH_PODS
from shoal.policy.pod_templates import pod_templates

_OPEN = ("comfyui", "open-webui", "ollama")
"""Images that require no login by default."""
SECRET_ENDINGS = ("SECRET", "SECRET_KEY", "PASSWORD", "TOKEN", "API_KEY", "ACCESS_KEY")


@check(
    Rule(
        "SHL-314",
        "NoHeadlessService",
        "warning",
        fault="the Service of a StatefulSet does not exist, or has a cluster IP",
        effect="the pods have no names in DNS",
        fix="create a Service of that name with clusterIP: None",
        evidence="cluster",
        links=("https://kubernetes.io/docs/concepts/services-networking/service/#headless-services",),
        at_admission="warning",
        bad="""\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: train}
spec:
  serviceName: train
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec: {containers: [{name: main, image: "registry.example/train:1.4"}]}
---
apiVersion: v1
kind: Service
metadata: {name: train}
spec: {clusterIP: 10.0.0.7, selector: {app: train}}
""",
        changes=(Change("10.0.0.7", "None"),),
    ),
    kinds=(STATEFUL_SET,),
)
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


@check(
    Rule(
        "SHL-313",
        "PlainSecret",
        "warning",
        fault="a secret is written in the manifest",
        effect="everyone who may read the manifest or the object has the secret",
        fix="store the value in a Secret, and use valueFrom.secretKeyRef",
        links=("https://kubernetes.io/docs/concepts/configuration/secret/",),
        at_admission="warning",
        bad="""\
name: serve
image: registry.example/serve:1.4
env: [{name: HF_TOKEN, value: hf_example}]
""",
        changes=(Change("value: hf_example", "valueFrom: {secretKeyRef: {name: hub, key: token}}"),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"SECRET", b'PASSWORD"', b'TOKEN"', b'_KEY"')),
)
def plain_secrets(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for path, container in template.containers():
            for at, one in enumerate(maps(container.get("env"))):
                name = str(one.get("name") or "")
                if one.get("value") and name.endswith(SECRET_ENDINGS):
                    what = f"{name} is in the manifest, readable by every user who may read the object"
                    fix = "store it in a Secret, and use valueFrom.secretKeyRef"
                    yield Advice("PlainSecret", f"{path}.env[{at}].value", what, fix)


@check(
    Rule(
        "SHL-315",
        "OpenDoor",
        "warning",
        fault="a load balancer exposes a program without a login",
        effect="everyone who reaches the address can use the program and its GPUs",
        fix="use ClusterIP, and an ingress with authentication",
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: Service
metadata: {name: chat}
spec: {type: LoadBalancer, selector: {app: chat}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec: {containers: [{name: main, image: "ollama/ollama:0.5.7"}]}
""",
        changes=(Change("type: LoadBalancer", "type: ClusterIP"),),
    ),
    kinds=(SERVICE,),
)
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


@check(
    Rule(
        "SHL-701",
        "CpuOfGpuPods",
        "warning",
        fault="GPU pods are scaled by their CPU utilization",
        effect="CPU utilization says little about GPU load, so replicas do not follow it",
        fix="scale by GPU utilization or by waiting requests",
        links=("https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/",),
        at_admission="warning",
        bad="""\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: serve}
spec:
  maxReplicas: 4
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: serve}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers: [{name: main, image: "registry.example/serve:1.4", resources: {limits: {nvidia.com/gpu: 1}}}]
""",
        changes=(
            Change(
                "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}",
                "{type: Pods, pods: {metric: {name: gpu_utilization}, target: {type: AverageValue, averageValue: 60}}}",
            ),
        ),
    ),
    kinds=(AUTOSCALER,),
)
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
