"""Finds misspelled names that no schema has: labels and annotations, roles, events, types of triggers, images.

Only a name that resembles a known one is reported, except where the known ones are all that there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.policy.advice import Advice, Correction, Obj, RuleContext, rule
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.object_set import kind_of
from shoal.policy.placement_rules import conditions
from shoal.policy.pod_templates import pod_templates
from shoal.units.near_texts import nearest_name

_KEYS: Final = (
    *("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class", "kueue.x-k8s.io/pod-group-name"),
    *("kueue.x-k8s.io/pod-group-total-count", "kueue.x-k8s.io/podset-required-topology"),
    *("kueue.x-k8s.io/podset-preferred-topology", "kueue.x-k8s.io/podset-unconstrained-topology"),
    *("kueue.x-k8s.io/max-exec-time-seconds", "kueue.x-k8s.io/elastic-job", "kueue.x-k8s.io/job-min-parallelism"),
    *("kueue.x-k8s.io/job-completions-equal-parallelism", "kueue.x-k8s.io/prebuilt-workload-name"),
    *("kueue.x-k8s.io/pod-group-fast-admission", "kueue.x-k8s.io/retriable-in-group"),
    *("scheduling.k8s.io/group-name", "scheduling.volcano.sh/queue-name", "volcano.sh/queue-name"),
    *("volcano.sh/preemptable", "kai.scheduler/queue", "runai/queue", "gpu-fraction", "gpu-memory"),
    *("karpenter.sh/do-not-disrupt", "karpenter.sh/capacity-type", "karpenter.sh/nodepool"),
    *("cluster-autoscaler.kubernetes.io/safe-to-evict", "leaderworkerset.sigs.k8s.io/exclusive-topology"),
    *("alpha.jobset.sigs.k8s.io/exclusive-topology", "nvidia.com/mig.config", "nvidia.com/device-plugin.config"),
    *("pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/warn", "pod-security.kubernetes.io/audit"),
    *("topology.kubernetes.io/zone", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type"),
    *("nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/gpu.present"),
    *("nvidia.com/gpu.family", "nvidia.com/mig.strategy", "nvidia.com/gpu.compute.major"),
    *("kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os", "kubernetes.io/metadata.name"),
)
_LEAST_LENGTH: Final = 12
"""Shorter keys resemble too many others."""
_ROLES: Final[Mapping[str, tuple[str, tuple[str, ...], str]]] = {
    "PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker"), "pytorch"),
    "TFJob": ("tfReplicaSpecs", ("Chief", "Master", "Worker", "PS", "Evaluator"), "tensorflow"),
    "XGBoostJob": ("xgbReplicaSpecs", ("Master", "Worker"), "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", ("Master", "Worker"), "paddle"),
    "JAXJob": ("jaxReplicaSpecs", ("Worker",), "jax"),
    "MPIJob": ("mpiReplicaSpecs", ("Launcher", "Worker"), ""),
}
"""The field of the roles, the roles, and the name that the controller looks for among the containers."""
_TRIGGERS: Final = (
    *("prometheus", "cron", "cpu", "memory", "kafka", "rabbitmq", "redis", "redis-streams", "aws-sqs-queue", "mysql"),
    *("postgresql", "metrics-api", "kubernetes-workload", "external", "external-push", "nats-jetstream", "pulsar"),
    *("aws-cloudwatch", "aws-kinesis-stream", "azure-queue", "azure-servicebus", "azure-monitor", "gcp-pubsub"),
    *("gcp-stackdriver", "datadog", "elasticsearch", "graphite", "influxdb", "mongodb", "mssql", "new-relic", "loki"),
)
_TRIGGER_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "prometheus": (
        *("serverAddress", "query", "threshold", "activationThreshold", "namespace", "customHeaders", "authModes"),
        *("ignoreNullValues", "unsafeSsl", "queryParameters", "timeout", "awsRegion", "identityOwner", "cortexOrgId"),
    ),
    "cron": ("timezone", "start", "end", "desiredReplicas"),
    "cpu": ("value", "containerName", "type"),
    "memory": ("value", "containerName", "type"),
    "kubernetes-workload": ("podSelector", "value", "activationValue"),
}
_REQUIRED_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "prometheus": ("serverAddress", "query", "threshold"),
    "cron": ("timezone", "start", "end", "desiredReplicas"),
    "kubernetes-workload": ("podSelector", "value"),
}
_ACTIONS: Final = (
    *("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob"),
    "ResumeJob",
)
_COMPONENTS: Final = (
    *("operator", "daemonsets", "driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "gfd", "mig"),
    *("migManager", "nodeStatusExporter", "validator", "psa", "gds", "gdrcopy", "cdi", "kataManager", "ccManager"),
    *("vgpuManager", "vgpuDeviceManager", "vfioManager", "sandboxWorkloads", "sandboxDevicePlugin", "hostPaths"),
)
_MEDIA: Final = ("", "Memory")
_IMAGE = re.compile(r"[a-zA-Z0-9.-]+(?::\d+)?(?:/[a-z0-9._/-]+)?|[a-z0-9._/-]+")


@rule(UnknownKey="a label or annotation resembles one that a controller reads")
def misspelled_keys(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for field in ("labels", "annotations"):
        yield from _keys(f"metadata.{field}", dig(obj, "metadata", field))
    for template in pod_templates(obj):
        if obj.get("kind") != "Pod":
            above = template.path.removesuffix("spec") + "metadata"
            yield from _keys(f"{above}.labels", template.labels)
            yield from _keys(f"{above}.annotations", template.annotations)
        for path, key, _operator, _values in conditions(template):
            yield from _key(path, key)
        for at, each in enumerate(maps(template.spec.get("topologySpreadConstraints"))):
            yield from _key(f"{template.path}.topologySpreadConstraints[{at}].topologyKey", each.get("topologyKey"))


def _keys(path: str, found: Any) -> Iterator[Advice]:
    """The name of each entry can be corrected in its place."""
    for key in string_keys(found):
        yield from _key(f"{path}[{key}]", key, is_name=True)


def _key(path: str, key: Any, *, is_name: bool = False) -> Iterator[Advice]:
    if not isinstance(key, str) or key in _KEYS or len(key) < _LEAST_LENGTH or "/" not in key:
        return
    domain, _, name = key.partition("/")
    same_domain = [known for known in _KEYS if known.startswith(f"{domain}/")]
    same_name = [known for known in _KEYS if known.endswith(f"/{name}") and _is_near(domain, known.partition("/")[0])]
    near = nearest_name(key, same_domain) if same_domain else next(iter(same_name), "")
    if near and _is_misspelled(key, near):
        correction = Correction(key=near) if is_name else None
        yield Advice("UnknownKey", path, f"no controller reads {key}", f"did you mean {near}?", correction)


def _is_near(one: str, other: str) -> bool:
    return one != other and bool(nearest_name(one, (other,)))


def _is_misspelled(key: str, known: str) -> bool:
    """Differs in a letter or two, or is the beginning of it: longer keys are of their own."""
    short = known.partition("/")[2]
    name = key.partition("/")[2]
    plain = str.maketrans("", "", "-_.")
    return (
        name.translate(plain).lower() == short.translate(plain).lower()
        or (short.startswith(f"{name}-") and key.startswith("kueue."))
        or (abs(len(key) - len(known)) <= 2 and _distance(key, known) <= 2)
    )


def _distance(one: str, other: str) -> int:
    """Letters to insert, remove or replace; both are short."""
    before = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        row = [at]
        for to, wanted in enumerate(other, 1):
            row.append(min(before[to] + 1, row[-1] + 1, before[to - 1] + (letter != wanted)))
        before = row
    return before[-1]


@rule(
    UnknownRole="a training job has a role that its kind does not have",
    UnnamedContainer="no container has the name that the training operator looks for",
)
def training_roles(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    field, roles, container = _ROLES.get(str(obj.get("kind")), ("", (), ""))
    if kind_of(obj).group != "kubeflow.org":
        return
    for role, spec in string_keys(dig(obj, "spec", field)).items():
        here = f"spec.{field}.{role}"
        if role not in roles:
            near = nearest_name(role, roles)
            fix = f"did you mean {near}?" if near else f"its roles are {', '.join(roles)}"
            what = f"{obj['kind']} has no role {role}"
            yield Advice("UnknownRole", here, what, fix, Correction(key=near) if near else None)
        names = [each.get("name") for each in maps(dig(spec, "template", "spec", "containers"))]
        if container and names and container not in names:
            what = f"the training operator sets its variables and ports in a container named {container}; there is none"
            yield Advice("UnnamedContainer", f"{here}.template.spec.containers", what, f"name one of them {container}")


@rule(UnknownTrigger="a trigger of KEDA has a type or a field that no scaler has, or lacks one that it needs")
def trigger_names(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for at, trigger in enumerate(maps(dig(obj, "spec", "triggers"))):
        kind, here = str(trigger.get("type")), f"spec.triggers[{at}]"
        near = nearest_name(kind, _TRIGGERS)
        if kind not in _TRIGGERS and near:
            fix = f"did you mean {near}?"
            yield Advice("UnknownTrigger", f"{here}.type", f"KEDA has no scaler {kind}", fix, Correction(value=near))
        written = string_keys(trigger.get("metadata"))
        for name in written:
            near = nearest_name(name, _TRIGGER_FIELDS.get(kind, ()))
            if near and name not in _TRIGGER_FIELDS[kind]:
                what, fix = f"the scaler {kind} has no field {name}", f"did you mean {near}?"
                yield Advice("UnknownTrigger", f"{here}.metadata.{name}", what, fix, Correction(key=near))
        for name in _REQUIRED_FIELDS.get(kind, ()):
            if name not in written:
                what = f"the scaler {kind} needs {name}: the trigger fails"
                yield Advice("UnknownTrigger", f"{here}.metadata", what, f"set {name}")


@rule(UnknownAction="a policy of a Volcano job has an action that Volcano does not have")
def job_actions(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    places = [("spec", obj.get("spec"))]
    places += [(f"spec.tasks[{at}]", task) for at, task in enumerate(maps(dig(obj, "spec", "tasks")))]
    for path, holder in places:
        for at, policy in enumerate(maps(dig(holder, "policies"))):
            action = policy.get("action")
            if isinstance(action, str) and action not in _ACTIONS:
                near = nearest_name(action, _ACTIONS)
                fix = f"did you mean {near}?" if near else f"write {', '.join(_ACTIONS)}"
                what = f"Volcano has no action {action}, and refuses the job"
                correction = Correction(value=near) if near else None
                yield Advice("UnknownAction", f"{path}.policies[{at}].action", what, fix, correction)


@rule(UnknownField="a ClusterPolicy names a component that the operator does not have")
def policy_components(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for name in string_keys(obj.get("spec")):
        near = nearest_name(name, _COMPONENTS)
        if near and name not in _COMPONENTS:
            what = "is no component of the operator, which drops it"
            yield Advice("UnknownField", f"spec.{name}", what, f"did you mean {near}?", Correction(key=near))


@rule(
    InvalidImageName="an image has a name that cannot be pulled",
    UnknownMedium="an emptyDir has a medium that the kubelet does not know",
)
def images_and_media(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for path, container in template.containers():
            image = container.get("image")
            name = image.partition("@")[0] if isinstance(image, str) else ""
            if isinstance(image, str) and name and not _is_placeholder(name) and not _is_image(name):
                what = f'"{image}" is refused by the container runtime: repositories have lower-case letters only'
                yield Advice("InvalidImageName", f"{path}.image", what, "correct the name")
        for at, volume in enumerate(maps(template.spec.get("volumes"))):
            medium = dig(volume, "emptyDir", "medium")
            if isinstance(medium, str) and medium not in _MEDIA and not medium.startswith("HugePages"):
                near = nearest_name(medium, ("Memory",))
                fix = "did you mean Memory?" if near else "write Memory, or leave it out"
                what = f"the kubelet does not know the medium {medium}: the pods do not start"
                here = f"{template.path}.volumes[{at}].emptyDir.medium"
                yield Advice("UnknownMedium", here, what, fix, Correction(value=near) if near else None)


def _is_placeholder(name: str) -> bool:
    """Whether another name has to be written there first."""
    return any(mark in name for mark in ("$", "{", "<", "YOUR", "IMAGE", "PROJECT"))


def _is_image(name: str) -> bool:
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        repository, tag = name, "x"
    return bool(_IMAGE.fullmatch(repository)) and bool(re.fullmatch(r"[\w][\w.-]{0,127}", tag, re.ASCII))
