"""Checks references between objects of a set: selectors that select nothing, and targets that do not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, label_selector, maps, string_keys
from shoal.policy.kinds import (
    AUTOSCALER,
    DEPLOYMENT,
    JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    POD,
    SCALED_OBJECT,
    SERVICE,
    STATEFUL_SET,
    TRAINING_JOBS,
    VOLCANO_JOB,
    GroupKind,
)
from shoal.policy.object_set import key_of, kind_of
from shoal.policy.pod_templates import PodTemplateView, pod_templates

_WORKLOADS = (
    *(DEPLOYMENT, STATEFUL_SET, JOB, GroupKind("apps", "DaemonSet"), GroupKind("apps", "ReplicaSet"), POD),
    *(LEADER_WORKER_SET, JOB_SET, VOLCANO_JOB, *TRAINING_JOBS),
)
_SET_BY_CONTROLLERS = ("leaderworkerset.sigs.k8s.io/", "jobset.sigs.k8s.io/", "training.kubeflow.org/", "volcano.sh/")
"""Labels of pods that their templates do not have."""
_SCALABLE = {"Deployment": DEPLOYMENT, "StatefulSet": STATEFUL_SET}


@check(
    Rule(
        "SHL-215",
        "SelectsNothing",
        "error",
        fault="a selector matches no pods of the files",
        effect="the object has no effect",
        fix="select labels of the pod template",
        bad="""\
apiVersion: v1
kind: Service
metadata: {name: serve}
spec: {selector: {app: sreve}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: serve, labels: {app: serve}}
spec: {containers: [{name: main, image: "registry.example/serve:1.4"}]}
""",
        changes=(Change("app: sreve", "app: serve"),),
    ),
    Rule(
        "SHL-216",
        "NoSuchTargetPort",
        "error",
        fault="a Service names a port that its pods do not have",
        effect="connections to the Service are refused",
        fix="name a port of the container",
        bad="""\
apiVersion: v1
kind: Service
metadata: {name: serve}
spec: {selector: {app: serve}, ports: [{port: 80, targetPort: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: serve, labels: {app: serve}}
spec: {containers: [{name: main, image: "registry.example/serve:1.4", ports: [{name: http, containerPort: 8000}]}]}
""",
        changes=(Change("targetPort: web", "targetPort: http"),),
    ),
    Rule(
        "SHL-217",
        "NoSuchScaleTarget",
        "error",
        fault="an autoscaler names a workload that does not exist",
        effect="the autoscaler does nothing",
        fix="name a workload that exists",
        bad="""\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: serve}
spec: {scaleTargetRef: {name: serv}, triggers: [{type: cpu, metadata: {value: "60"}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec: {containers: [{name: main, image: "registry.example/serve:1.4"}]}
""",
        changes=(Change("name: serv}", "name: serve}"),),
    ),
    options=CheckOptions(in_files=True),
)
def file_references(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    check = _CHECKS.get(kind_of(obj))
    if check is not None:
        yield from check(obj, context)


def _service(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Only where the set has workloads of the namespace: the pods may be created by something else."""
    written = string_keys(dig(obj, "spec", "selector"))
    selector = {key: value for key, value in written.items() if not key.startswith(_SET_BY_CONTROLLERS)}
    namespace = key_of(obj)[0]
    templates = list(_templates(context, namespace)) if selector else []
    if not templates:
        return
    chosen = [each for each in templates if all(each.labels.get(key) == value for key, value in selector.items())]
    if not chosen:
        pairs = ",".join(f"{key}={value}" for key, value in selector.items())
        what = f"no workload of namespace {namespace} here has pods with {pairs}: the Service has no endpoints"
        yield Advice("SelectsNothing", "spec.selector", what, "use labels of the pod template")
        return
    names = {
        str(port.get("name")) for each in chosen for _, one in each.containers() for port in maps(one.get("ports"))
    }
    for at, port in enumerate(maps(dig(obj, "spec", "ports"))):
        target = port.get("targetPort")
        if isinstance(target, str) and not target.isdecimal() and target not in names:
            what = f"no container of the selected pods has a port {target}"
            yield Advice("NoSuchTargetPort", f"spec.ports[{at}].targetPort", what, "name a port of the container")


def _budget(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    namespace = key_of(obj)[0]
    selector, templates = label_selector(dig(obj, "spec", "selector")), list(_templates(context, namespace))
    if selector is None or not templates:
        return
    if not any(selector.matches({key: str(value) for key, value in each.labels.items()}) for each in templates):
        what = f"no workload of namespace {namespace} here has such pods: the budget protects nothing"
        yield Advice("SelectsNothing", "spec.selector", what, "use labels of the pod template")


def _scaled(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    target = string_keys(dig(obj, "spec", "scaleTargetRef"))
    namespace, name = key_of(obj)[0], str(target.get("name") or "")
    kind = _SCALABLE.get(str(target.get("kind") or "Deployment"))
    if name and kind is not None and context.lacks(kind, namespace, name):
        what = f'{kind.name} "{name}" not found in namespace {namespace}: nothing is scaled'
        yield Advice("NoSuchScaleTarget", "spec.scaleTargetRef.name", what, "name an existing workload")


def _templates(context: RuleContext, namespace: str) -> Iterator[PodTemplateView]:
    for kind in _WORKLOADS:
        for obj in context.all(kind):
            if key_of(obj)[0] == namespace:
                yield from pod_templates(obj)


_CHECKS: Mapping[GroupKind, Callable[[Obj, RuleContext], Iterator[Advice]]] = {
    SERVICE: _service,
    GroupKind("policy", "PodDisruptionBudget"): _budget,
    AUTOSCALER: _scaled,
    SCALED_OBJECT: _scaled,
}
