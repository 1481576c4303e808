"""Finds misspelled names that no schema has: labels and annotations, roles, events, types of triggers, images.

Only a name that resembles a known one is reported, except where the known ones are all that there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.policy.advice import Advice, Correction, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import CLUSTER_POLICY, SCALED_OBJECT, TRAINING_JOBS, VOLCANO_JOB
from shoal.policy.object_set import kind_of
from shoal.policy.pod_templates import pod_templates
from shoal.policy.rules.placement import conditions
from shoal.units.near_texts import is_typo, nearest_name

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


@check(
    Rule(
        "SHL-112",
        "UnknownKey",
        "warning",
        fault="a label or annotation resembles one that a controller reads",
        effect="nothing reads the label or annotation",
        fix="write the key as the controller reads it",
        bad="""\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  labels: {kueue.x-k8s.io/queue: team-a}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example/train:1.4"}]
""",
        changes=(Change("kueue.x-k8s.io/queue:", "kueue.x-k8s.io/queue-name:"),),
    ),
    options=CheckOptions(in_files=True),
)
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
        or is_typo(key, known)
    )


@check(
    Rule(
        "SHL-328",
        "UnknownRole",
        "error",
        fault="a training job has a role that its kind does not have",
        effect="the object is refused, or the pods of the role are not created",
        fix="use a role of the kind, such as Master and Worker",
        bad="""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Wroker:
      template:
        spec: {containers: [{name: pytorch, image: "registry.example/train:1.4"}]}
""",
        changes=(Change("Wroker", "Worker"),),
    ),
    Rule(
        "SHL-329",
        "UnnamedContainer",
        "error",
        fault="no container has the name that the training operator looks for",
        effect="the training operator refuses the job",
        fix="give the container of the program the name that the operator looks for",
        bad="""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec: {containers: [{name: main, image: "registry.example/train:1.4"}]}
""",
        changes=(Change("name: main", "name: pytorch"),),
    ),
    kinds=TRAINING_JOBS,
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


@check(
    Rule(
        "SHL-709",
        "UnknownTrigger",
        "error",
        fault="a trigger of KEDA has a type or a field that no scaler has, or lacks one that it needs",
        effect="KEDA refuses the object, or the trigger fails",
        fix="write the type and the fields of the scaler",
        links=("https://keda.sh/docs/latest/scalers/",),
        bad="""\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: serve}
spec:
  scaleTargetRef: {name: serve}
  triggers:
  - {type: cron, metadata: {timezone: UTC, start: 0 8 * * *, end: 0 18 * * *, desiredReplica: "4"}}
""",
        changes=(Change("desiredReplica:", "desiredReplicas:"),),
    ),
    kinds=(SCALED_OBJECT,),
)
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


@check(
    Rule(
        "SHL-331",
        "UnknownAction",
        "error",
        fault="a policy of a Volcano job has an action that Volcano does not have",
        effect="Volcano refuses the job",
        fix="use an action of Volcano, such as RestartJob",
        bad="""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  policies: [{event: PodFailed, action: RestartJobs}]
  tasks:
  - name: worker
    replicas: 2
    template: {spec: {containers: [{name: main, image: "registry.example/train:1.4"}]}}
""",
        changes=(Change("RestartJobs", "RestartJob"),),
    ),
    kinds=(VOLCANO_JOB,),
)
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


@check(
    Rule(
        "SHL-106",
        "UnknownField",
        "warning",
        fault="a ClusterPolicy names a component that the operator does not have",
        effect="a controller that does not know the field drops it without a message",
        fix="write the field as the controller reads it, or leave it out",
        bad="""\
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec: {dcgmExportr: {enabled: true}}
""",
        changes=(Change("dcgmExportr", "dcgmExporter"),),
    ),
    kinds=(CLUSTER_POLICY,),
)
def policy_components(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for name in string_keys(obj.get("spec")):
        near = nearest_name(name, _COMPONENTS)
        if near and name not in _COMPONENTS:
            what = "is no component of the operator, which drops it"
            yield Advice("UnknownField", f"spec.{name}", what, f"did you mean {near}?", Correction(key=near))


@check(
    Rule(
        "SHL-326",
        "InvalidImageName",
        "error",
        fault="an image has a name that cannot be pulled",
        effect="the container does not start",
        fix="write the repository in lower-case letters",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec: {containers: [{name: main, image: "registry.example/Train:1.4"}]}
""",
        changes=(Change("/Train", "/train"),),
    ),
    Rule(
        "SHL-327",
        "UnknownMedium",
        "error",
        fault="an emptyDir has a medium that the kubelet does not know",
        effect="the pods wait in ContainerCreating",
        fix="write Memory, or leave the medium out",
        links=("https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers: [{name: main, image: "registry.example/train:1.4"}]
  volumes: [{name: shm, emptyDir: {medium: memory}}]
""",
        changes=(Change("medium: memory", "medium: Memory"),),
    ),
    options=CheckOptions(in_files=True),
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
