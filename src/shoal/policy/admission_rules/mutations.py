"""MutatingAdmissionPolicies that add to pods with GPUs what their namespace asks for by label.

Guarantees: nothing is added in a namespace without the label, and no value of a user is replaced. If an expression
fails, the object is created without the addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from shoal.policy.admission_rules.modes import LABEL_PREFIX, RuleModes
from shoal.policy.admission_rules.pod_expressions import VARIABLES, asks, variables_of
from shoal.policy.admission_rules.policies import API_VERSION, LABELS, AdmissionPolicy, outside
from shoal.policy.pod_templates import GPU
from shoal.policy.rules.gpu_requests import SELECTS_GPU_NODES, TOLERATES

Obj = dict[str, Any]
TRUE: Final = "true"
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
PRESETS: Final[Mapping[str, Mapping[str, str]]] = {
    "ethernet": {"NCCL_DEBUG": "WARN", "NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_DISABLE": "1"},
    "infiniband": {
        "NCCL_DEBUG": "WARN",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_IB_DISABLE": "0",
        "NCCL_IB_HCA": "mlx5",
    },
    "debug": {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"},
}
"""Environment variables of NCCL by the value of the label."""
_MOST_CONTAINERS: Final = 32
_MOST_TERMS: Final = 16
_REQUIRED: Final = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
_SHM: Final = "/dev/shm"  # noqa: S108 - the path in a container
_SUSPENDED: Final = "{'suspend': true}"
_VOLUME: Final = "shoal-shm"
_PODS: Final[list[Obj]] = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
_JOBS: Final[list[Obj]] = [
    {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": plurals}
    for group, plurals in (
        ("batch", ["jobs"]),
        ("jobset.x-k8s.io", ["jobsets"]),
        ("kubeflow.org", ["mpijobs", "pytorchjobs", "tfjobs", "xgboostjobs", "paddlejobs", "jaxjobs"]),
        ("trainer.kubeflow.org", ["trainjobs"]),
        ("ray.io", ["rayjobs", "rayclusters"]),
    )
]


class Addition(msgspec.Struct, frozen=True):
    name: str
    """Also of the label of a namespace that asks for it."""
    values: tuple[str, ...]
    """Of the label; empty: any."""
    what: str
    expression: str
    """A JSON patch."""
    is_for_jobs: bool = False
    """Whether jobs are changed, and not pods with GPUs."""

    @property
    def label(self) -> str:
        return f"{LABEL_PREFIX}{self.name}"


def mutating_policies(modes: RuleModes) -> list[AdmissionPolicy]:
    return [_policy(each, modes) for each in ADDITIONS]


def _policy(row: Addition, modes: RuleModes) -> AdmissionPolicy:
    name = f"shoal-{row.name}"
    spec: Obj = {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "namespaceSelector": outside(modes.excluded),
            "resourceRules": _JOBS if row.is_for_jobs else _PODS,
        },
        "matchConditions": [_IS_WHOLE_JOB if row.is_for_jobs else _HAS_GPUS],
        "variables": variables_of([row.expression], _OWN_VARIABLES),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": row.expression}}],
    }
    meta = {"name": name, "labels": dict(LABELS), "annotations": {"shoal.dev/rule": row.what}}
    asking: Obj = {"key": row.label, "operator": "In", "values": list(row.values)}
    if not row.values:
        asking = {"key": row.label, "operator": "Exists"}
    selector = {"namespaceSelector": {"matchExpressions": [asking]}}
    policy = {"apiVersion": API_VERSION, "kind": "MutatingAdmissionPolicy", "metadata": meta, "spec": spec}
    binding = {
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "spec": {"policyName": name, "matchResources": selector},
    }
    return AdmissionPolicy(policy, (binding,))


def _quoted(text: str) -> str:
    return f"'{text}'"


def _added(path: str, value: str) -> str:
    return f"[JSONPatch{{op: 'add', path: {path}, value: {value}}}]"


def _label_of(name: str) -> str:
    return f"namespaceObject.metadata.?labels[?'{LABEL_PREFIX}{name}'].orValue('')"


def _of_each_container(lacks: str, path: str, value: str, entry: str) -> str:
    """Adds to a list of each container with GPUs for which `lacks` is true; `c` is the container."""
    parts = []
    for part in ("containers", "initContainers"):
        places = ", ".join(map(str, range(_MOST_CONTAINERS)))
        one = f"variables.pod.{part}[i]"
        is_meant = f"[{one}].exists(c, {asks('c')} && {lacks})"
        here = f"'/spec/{part}/' + string(i) + '/{path}'"
        whole = f"JSONPatch{{op: 'add', path: {here}, value: {value.replace('CONTAINER', one)}}}"
        single = f"JSONPatch{{op: 'add', path: {here} + '/-', value: {entry}}}"
        made = f"has({one}.{path}) ? {single} : {whole}" if entry else whole
        parts.append(
            f"(has(variables.pod.{part}) ? [{places}].filter(i, i < size(variables.pod.{part}) && {is_meant})"
            f".map(i, {made}) : [])"
        )
    return " + ".join(parts)


def _toleration() -> str:
    value = f"{{'key': '{GPU}', 'operator': 'Exists', 'effect': 'NoSchedule'}}"
    appended, made = _added(_quoted("/spec/tolerations/-"), value), _added(_quoted("/spec/tolerations"), f"[{value}]")
    return f"({TOLERATES}) ? [] : (has(variables.pod.tolerations) ? {appended} : {made})"


def _affinity() -> str:
    wanted = "{'key': dyn('nvidia.com/gpu.present'), 'operator': dyn('In'), 'values': dyn(['true'])}"
    term = f"{{'nodeSelectorTerms': [{{'matchExpressions': [{wanted}]}}]}}"
    node = f"{{'requiredDuringSchedulingIgnoredDuringExecution': {term}}}"
    places = ", ".join(map(str, range(_MOST_TERMS)))
    here = f"'{_REQUIRED}/nodeSelectorTerms/' + string(i) + '/matchExpressions'"
    each = (
        f"[{places}].filter(i, i < size(variables.terms)).map(i, has(variables.terms[i].matchExpressions)"
        f" ? JSONPatch{{op: 'add', path: {here} + '/-', value: {wanted}}}"
        f" : JSONPatch{{op: 'add', path: {here}, value: [{wanted}]}})"
    )
    affinity = _added(_quoted("/spec/affinity"), f"{{'nodeAffinity': {node}}}")
    return (
        f"({SELECTS_GPU_NODES}) ? [] : !has(variables.pod.affinity) ? {affinity} : "
        f"!has(variables.pod.affinity.nodeAffinity) ? {_added(_quoted('/spec/affinity/nodeAffinity'), node)} : "
        f"size(variables.terms) == 0 ? {_added(_quoted(_REQUIRED), term)} : {each}"
    )


def _shared_memory() -> str:
    volume = f"{{'name': dyn('{_VOLUME}'), 'emptyDir': dyn({{'medium': 'Memory'}})}}"
    mount = f"{{'name': '{_VOLUME}', 'mountPath': '{_SHM}'}}"
    lacks = f"!c.?volumeMounts.orValue([]).exists(m, m.mountPath == '{_SHM}')"
    appended, made = _added(_quoted("/spec/volumes/-"), volume), _added(_quoted("/spec/volumes"), f"[{volume}]")
    volumes = f"(has(variables.pod.volumes) ? {appended} : {made})"
    mounts = _of_each_container(lacks, "volumeMounts", f"[{mount}]", mount)
    is_meant = f"variables.containers.exists(c, {asks('c')} && {lacks})"
    has_name = f"variables.pod.?volumes.orValue([]).exists(v, v.name == '{_VOLUME}')"
    return f"!({is_meant}) || {has_name} ? [] : {volumes} + {mounts}"


def _presets() -> str:
    chosen = _label_of("add-nccl")
    branches = [
        f"{chosen} == '{name}' ? [" + ", ".join(f"{{'name': '{k}', 'value': '{v}'}}" for k, v in each.items()) + "]"
        for name, each in PRESETS.items()
    ]
    return " : ".join([*branches, "[]"])


def _nccl() -> str:
    env = "CONTAINER.?env.orValue([])"
    value = f"variables.nccl.filter(s, !{env}.exists(e, e.name == s.name)) + {env}"
    return _of_each_container("true", "env", value, "")


def _priority() -> str:
    """The priority that the server has computed before is computed anew from the class."""
    former = "variables.pod.?priorityClassName.orValue('')"
    removed = " + ".join(
        f"(has(variables.pod.{field}) ? [JSONPatch{{op: 'remove', path: '/spec/{field}'}}] : [])"
        for field in ("priority", "preemptionPolicy")
    )
    made = _added(_quoted("/spec/priorityClassName"), _label_of("add-priority-class"))
    return f"{former} != '' ? [] : {removed} + {made}"


def _queue() -> str:
    """The job is suspended, as the policies for jobs that name their queue do: they do not see what is added here."""
    labels = "variables.top.metadata.?labels.orValue({})"
    pointer = _quoted("/metadata/labels/" + QUEUE_LABEL.replace("/", "~1"))
    made = f"(has(variables.top.metadata.labels) ? [] : {_added(_quoted('/metadata/labels'), '{}')})"
    policy = "has(variables.top.spec.runPolicy)"
    suspended = (
        f"(request.kind.group != 'kubeflow.org' ? {_added(_quoted('/spec/suspend'), TRUE)} : {policy}"
        f" ? {_added(_quoted('/spec/runPolicy/suspend'), TRUE)}"
        f" : {_added(_quoted('/spec/runPolicy'), _SUSPENDED)})"
    )
    named = _added(pointer, _label_of("add-queue"))
    return f"'{QUEUE_LABEL}' in {labels} ? [] : {made} + {named} + {suspended}"


_CONTAINERS: Final = "(dyn(object).spec.containers + dyn(object).spec.?initContainers.orValue([]))"
_HAS_GPUS: Final = {"name": "has-gpus", "expression": f"{_CONTAINERS}.exists(c, {asks('c')})"}
_IS_WHOLE_JOB: Final = {
    "name": "is-no-part-of-another-job",
    "expression": "!dyn(object).metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))",
}
_OWN_VARIABLES: Final = {**VARIABLES, "nccl": _presets()}

ADDITIONS: Final[tuple[Addition, ...]] = (
    Addition("add-toleration", (TRUE,), f"adds the toleration of the taint {GPU} to pods with GPUs", _toleration()),
    Addition("add-node-affinity", (TRUE,), "adds the affinity to nodes with GPUs to pods with GPUs", _affinity()),
    Addition("add-shm", (TRUE,), "mounts memory at /dev/shm in containers with GPUs", _shared_memory()),
    Addition("add-nccl", tuple(PRESETS), "sets environment variables of NCCL in containers with GPUs", _nccl()),
    Addition("add-priority-class", (), "sets the priority class of pods with GPUs that have none", _priority()),
    Addition("add-queue", (), "sets the queue of jobs that have none", _queue(), is_for_jobs=True),
)
