"""How pods request GPUs: rules that clusters may enforce, on objects of any kind with pod templates.

Each is an expression for API servers as well; a test compares both on generated pods. They are not part of `shoal
lint`: many sound manifests do not keep the rules of one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.policy.admission_rules.modes import MAXIMUM_LABEL
from shoal.policy.admission_rules.pod_expressions import is_gpu_name, listed
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, PodCheck, Policy, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.gpu_pods import all_containers, asks_gpus, gpu_amounts
from shoal.policy.kinds import NAMESPACE
from shoal.policy.object_set import key_of
from shoal.policy.pod_templates import GPU, PodTemplateView, pod_templates
from shoal.units.numbers import whole_of

EQUAL: Final = "GPU requests must equal limits"
TOLERATION: Final = "GPU pods must tolerate nvidia.com/gpu taint"
AFFINITY: Final = "GPU pods must specify nodeAffinity for GPU nodes"
NODE_LABELS: Final = ("nvidia.com/", "gpu", "accelerator", "pci-10de", "node.kubernetes.io/instance-type")
"""A label whose name contains one of these tells nodes with GPUs from others."""
SELECTING: Final = ("In", "Exists", "Gt", "Lt")
_MOST_DIGITS: Final = 6


def _label(name: str) -> str:
    return "(" + " || ".join(f"{name}.contains('{part}')" for part in NODE_LABELS) + ")"


def _count(list_name: str) -> str:
    each = (
        f"c.?resources.?limits.orValue({{}}).filter(k, {is_gpu_name('k')})"
        f".map(k, quantity(string(c.resources.limits[k])).asInteger()).sum()"
    )
    return f"variables.pod.?{list_name}.orValue([]).map(c, {each})"


TOLERATES: Final = (
    "!variables.gpus || variables.pod.?tolerations.orValue([]).exists(t, "
    f"(t.?key.orValue('') == '{GPU}' || (t.?key.orValue('') == '' && t.?operator.orValue('') == 'Exists'))"
    " && t.?effect.orValue('') in ['', 'NoSchedule'])"
)
SELECTS_GPU_NODES: Final = (
    "!variables.gpus || variables.pod.?nodeName.orValue('') != ''"
    f" || variables.pod.?nodeSelector.orValue({{}}).exists(k, {_label('k')})"
    " || (variables.terms.size() > 0 && variables.terms.all(t, t.?matchFields.orValue([]).size() > 0"
    f" || t.?matchExpressions.orValue([]).exists(m, {_label('m.key')} && m.operator in {listed(SELECTING)})))"
)
_HAS_EQUAL: Final = (
    f"variables.containers.all(c, c.?resources.?requests.orValue({{}}).all(k, !{is_gpu_name('k')} || "
    f"string(c.?resources.?limits[?k].orValue('')) == string(c.resources.requests[k])))"
)
_IS_BELOW_MAXIMUM: Final = (
    "!variables.maximum.matches('^[0-9]{1,6}$') || "
    f"({_count('containers')}.sum() <= int(variables.maximum)"
    f" && {_count('initContainers')}.all(n, n <= int(variables.maximum)))"
)
_OVER: Final = "'pods of this namespace must not request more than ' + variables.maximum + ' GPUs'"


@check(
    Rule(
        "SHL-351",
        "UnequalGpus",
        "error",
        fault="a container requests another number of GPUs than its limit, or has no limit",
        effect="the API server refuses the pods",
        fix="set the limit to the same number, or leave out the request",
        links=("https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/",),
        policy=Policy((PodCheck(_HAS_EQUAL, EQUAL),), is_failure_ignored=True),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: main
    image: registry.example/train:1.4
    resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}
""",
        changes=(Change("limits: {nvidia.com/gpu: 2}", "limits: {nvidia.com/gpu: 1}"),),
    ),
)
def equal_gpus(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for path, container in all_containers(template):
            limits = gpu_amounts(container, "limits")
            for name, amount in gpu_amounts(container, "requests").items():
                if str(limits.get(name, "")) != str(amount):
                    here = f"{path}.resources.requests[{name}]"
                    yield Advice(
                        "UnequalGpus", here, EQUAL, f"set limits[{name}] to {amount}, or leave out the request"
                    )


@check(
    Rule(
        "SHL-352",
        "NoGpuToleration",
        "warning",
        fault="a pod with GPUs does not tolerate the taint of GPU nodes",
        effect="tainted nodes do not accept the pods, so they stay pending",
        fix="add the toleration key nvidia.com/gpu, operator Exists, effect NoSchedule",
        links=("https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",),
        policy=Policy((PodCheck(TOLERATES, TOLERATION),), is_failure_ignored=True),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  tolerations: []
  containers: [{name: main, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 1}}}]
""",
        changes=(
            Change("tolerations: []", "tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]"),
        ),
    ),
)
def gpu_tolerations(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        if asks_gpus(template) and not any(map(_tolerates, maps(template.spec.get("tolerations")))):
            fix = f"add the toleration key {GPU}, operator Exists, effect NoSchedule"
            yield Advice("NoGpuToleration", f"{template.path}.tolerations", TOLERATION, fix)


def _tolerates(toleration: Obj) -> bool:
    key = toleration.get("key") or ""
    is_meant = key == GPU or (not key and toleration.get("operator") == "Exists")
    return is_meant and (toleration.get("effect") or "") in ("", "NoSchedule")


@check(
    Rule(
        "SHL-353",
        "NoGpuNodeAffinity",
        "info",
        fault="a pod with GPUs does not select nodes with GPUs",
        effect="only the resource keeps the pods from other nodes",
        fix="select a label of the nodes, such as nvidia.com/gpu.present=true",
        policy=Policy((PodCheck(SELECTS_GPU_NODES, AFFINITY),), is_failure_ignored=True),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  nodeSelector: {kubernetes.io/os: linux}
  containers: [{name: main, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 1}}}]
""",
        changes=(Change("kubernetes.io/os: linux", 'nvidia.com/gpu.present: "true"'),),
    ),
)
def gpu_node_affinity(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """A node selector counts as well."""
    for template in pod_templates(obj):
        if asks_gpus(template) and not selects_gpu_nodes(template.spec):
            fix = "select a label of the nodes, such as nvidia.com/gpu.present=true"
            yield Advice("NoGpuNodeAffinity", f"{template.path}.affinity.nodeAffinity", AFFINITY, fix)


def selects_gpu_nodes(spec: Obj) -> bool:
    if spec.get("nodeName") or any(map(_is_node_label, string_keys(spec.get("nodeSelector")))):
        return True
    required = dig(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = maps(dig(required, "nodeSelectorTerms"))
    return bool(terms) and all(
        bool(term.get("matchFields")) or any(map(_is_selecting, maps(term.get("matchExpressions")))) for term in terms
    )


def _is_selecting(expression: Obj) -> bool:
    return _is_node_label(str(expression.get("key") or "")) and expression.get("operator") in SELECTING


def _is_node_label(name: str) -> bool:
    return any(part in name for part in NODE_LABELS)


@check(
    Rule(
        "SHL-355",
        "OverNamespaceMaximum",
        "error",
        fault="a pod requests more GPUs than its namespace allows one pod",
        effect="a pod takes more GPUs than its namespace allows one pod",
        fix="divide the GPUs among several pods",
        evidence="cluster",
        policy=Policy((PodCheck(_IS_BELOW_MAXIMUM, "the pod requests more GPUs than its namespace allows", _OVER),)),
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: team-a}
spec:
  containers: [{name: main, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 4}}}]
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a, labels: {admission.shoal.dev/max-gpus-per-pod: "2"}}
""",
        changes=(Change("nvidia.com/gpu: 4", "nvidia.com/gpu: 2"),),
    ),
)
def namespace_maximum(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """The maximum is a label of the namespace."""
    namespace, _ = key_of(obj)
    labels = string_keys(dig(context.find(NAMESPACE, "", namespace), "metadata", "labels"))
    most = maximum_of(labels)
    for template in pod_templates(obj):
        asked = _gpu_count(template)
        if most is not None and asked > most:
            what = over_maximum(most)
            yield Advice(
                "OverNamespaceMaximum", f"{template.path}.containers", what, "divide the GPUs among several pods"
            )


def maximum_of(labels: Mapping[str, Any]) -> int | None:
    text = str(labels.get(MAXIMUM_LABEL, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def over_maximum(most: int) -> str:
    return f"pods of this namespace must not request more than {most} GPUs"


def _gpu_count(template: PodTemplateView) -> int:
    together = sum(_limit_count(each) for each in maps(template.spec.get("containers")))
    return max([together, *(_limit_count(each) for each in maps(template.spec.get("initContainers")))])


def _limit_count(container: Obj) -> int:
    return sum(whole_of(str(amount)) or 0 for amount in gpu_amounts(container, "limits").values())
