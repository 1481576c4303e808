"""Checks placement: names of GPUs that no driver reports, labels that no node has, too strict expressions.

The scheduler also reports on the pod that no node meets a required expression; here it is reported on the object that
the user wrote, and for preferences too, which the scheduler ignores silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from shoal.api.taints import HARD_EFFECTS, Taint
from shoal.data.gpus import PRODUCT_LABEL, is_short_product, meant_products
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, label_selector, maps, string_keys, strings
from shoal.policy.kinds import OPERATED, POD_CREATORS, WITH_PODS
from shoal.policy.pod_templates import PodTemplateView, pod_templates
from shoal.units.near_texts import near_keys

_COUNT = "nvidia.com/gpu.count"
_PRESENT = "nvidia.com/gpu.present"
_MOST_NAMED = 3
_NODE_AFFINITY = "affinity.nodeAffinity"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@check(
    Rule(
        "SHL-203",
        "UnknownProductName",
        "error",
        fault="nvidia.com/gpu.product is compared with a name that no driver reports",
        effect="labels carry the driver's full name, so no node matches and the pods stay pending",
        fix="write the name of the label nvidia.com/gpu.product: `kubectl get nodes -L nvidia.com/gpu.product`",
        at_admission="warning",
        bad="""\
nodeSelector: {nvidia.com/gpu.product: A100-SXM4-80GB}
containers: [{name: main, image: "registry.example/train:1.4"}]
""",
        changes=(Change("A100-SXM4", "NVIDIA-A100-SXM4"),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"nvidia.com/gpu.",)),
)
def product_names(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """The label is the name that the driver reports, with dashes for blanks, and with the vendor since R470."""
    for template in pod_templates(obj):
        for path, key, _, values in conditions(template):
            short = [value for value in values if key == PRODUCT_LABEL and is_short_product(value)]
            # Only now: there may be thousands of nodes, and few objects name a product.
            known = {node.labels.get(PRODUCT_LABEL, "") for node in context.nodes()} if short else set()
            wrong = [value for value in short if value not in known]
            if wrong:
                meant = " or ".join(dict.fromkeys(one for value in wrong for one in meant_products(value, known)))
                yield Advice(
                    "UnknownProductName",
                    path,
                    f"no driver reports {' or '.join(wrong)}: the names begin with the vendor",
                    f"did you mean {meant}?",
                )


@check(
    also={"SelectsNothing": "a selector of a spread constraint does not match the pod itself"},
    options=CheckOptions(in_files=True),
)
def spreading(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """A constraint counts the pods that its selector matches, which are meant to be those of the workload."""
    for template in pod_templates(obj):
        for at, one in enumerate(maps(template.spec.get("topologySpreadConstraints"))):
            selector = label_selector(one.get("labelSelector"))
            labels = {key: str(value) for key, value in template.labels.items()}
            if selector is not None and labels and not selector.matches(labels):
                what = "the selector does not match the pod itself, so its pods are not spread"
                here = f"{template.path}.topologySpreadConstraints[{at}].labelSelector"
                yield Advice("SelectsNothing", here, what, "use labels of the pod template")


@check(
    Rule(
        "SHL-201",
        "CountTooStrict",
        "warning",
        fault="nvidia.com/gpu.count must be greater than the number of requested GPUs",
        effect="nodes with exactly as many GPUs as requested are left out",
        fix="compare with Gt and a number below that of the requested GPUs",
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers: [{name: main, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 4}}}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: nvidia.com/gpu.count, operator: Gt, values: ["4"]}]
""",
        changes=(Change('["4"]', '["3"]'),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"nvidia.com/gpu.",)),
)
def strict_counts(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """`Gt` excludes the number itself, and the number of GPUs does not say how they are connected."""
    for template in pod_templates(obj):
        asked = template.gpus()
        for path, key, operator, values in conditions(template):
            if key != _COUNT or operator != "Gt" or not asked or values != [str(asked)]:
                continue
            yield Advice(
                "CountTooStrict",
                path,
                f"Gt {asked} excludes nodes with exactly {asked} GPUs, which these pods would fit on, and the count "
                "does not say whether NVLink connects them",
                f"write Gt {asked - 1}, and name the product to have NVLink",
            )


@check(
    Rule(
        "SHL-202",
        "UnknownNodeLabel",
        "error",
        fault="a node selector has a label that no node has",
        effect="no node fits, so the pods stay pending",
        fix="select a label that nodes have: `kubectl get nodes --show-labels`",
        evidence="cluster",
        at_admission="warning",
        bad="""\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {accelerator: nvidia}
      containers: [{name: main, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: v1
kind: Node
metadata: {name: gpu-1, labels: {nvidia.com/gpu.present: "true"}}
""",
        changes=(Change("accelerator: nvidia", 'nvidia.com/gpu.present: "true"'),),
    ),
    kinds=POD_CREATORS,
)
def unknown_node_labels(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Finds node selectors with a label that no node has."""
    templates = [template for template in pod_templates(obj) if template.spec.get("nodeSelector")]
    nodes = list(context.nodes()) if templates else []
    if not nodes:
        return
    for template in templates:
        for key, value in string_keys(template.spec.get("nodeSelector")).items():
            if any(key in node.labels for node in nodes):
                continue
            near = near_keys(key, sorted({known for node in nodes for known in node.labels}))
            has_better = template.asks_gpus() and any(node.labels.get(_PRESENT) == "true" for node in nodes)
            fix = f"did you mean {_PRESENT}=true?" if has_better else "label the nodes"
            if near:
                fix = f"did you mean {near[0]}?"
            yield Advice(
                "UnknownNodeLabel",
                f"{template.path}.nodeSelector[{key}]",
                f"no node has the label {key}, and no component sets {key}={value}: the pods stay pending",
                fix,
            )


@check(
    Rule(
        "SHL-205",
        "RepelsOthersOnly",
        "warning",
        fault="a required anti-affinity does not match the pod itself",
        effect="the pods of the workload may all be placed on one node",
        fix="give the pods the labels that their anti-affinity selects",
        links=("https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/",),
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: train, labels: {app: training}}
spec:
  containers: [{name: main, image: "registry.example/train:1.4"}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: train}}}
""",
        changes=(Change("{app: train}}}", "{app: training}}}"),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"requiredDuring",)),
)
def one_sided_anti_affinity(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Pods that should be on different nodes must have the labels that their anti-affinity selects."""
    for template in pod_templates(obj):
        path = f"{template.path}.affinity.podAntiAffinity.{_REQUIRED}"
        for at, term in enumerate(maps(dig(template.spec, "affinity", "podAntiAffinity", _REQUIRED))):
            selector = label_selector(term.get("labelSelector"))
            if selector is None or selector.matches({key: str(value) for key, value in template.labels.items()}):
                continue
            yield Advice(
                "RepelsOthersOnly",
                f"{path}[{at}].labelSelector",
                "does not match the labels of the pod itself: two such pods may still share a node",
                "add the selected labels to the pod",
            )


@check(
    Rule(
        "SHL-204",
        "UntoleratedTaint",
        "error",
        fault="all nodes with GPUs have a taint that the pods do not tolerate",
        effect="no node with a GPU accepts the pods, so they stay pending",
        fix="add a toleration for the taint of the GPU nodes",
        evidence="cluster",
        links=("https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",),
        at_admission="warning",
        bad="""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          tolerations: []
          containers: [{name: pytorch, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: v1
kind: Node
metadata: {name: gpu-1, labels: {nvidia.com/gpu.present: "true"}}
spec: {taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]}
""",
        changes=(Change("tolerations: []", "tolerations: [{key: nvidia.com/gpu, operator: Exists}]"),),
    ),
    kinds=OPERATED,
)
def untolerated(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """For kinds whose pods an operator creates: they would wait for tainted GPU nodes, but do not exist yet."""
    templates = [template for template in pod_templates(obj) if template.asks_gpus()]
    tainted = _taints_of_gpu_nodes(context) if templates else []
    for template in templates:
        missed = _untolerated_everywhere(template, tainted)
        if missed:
            named = ", ".join(map(str, missed[:_MOST_NAMED])) + (", ..." if len(missed) > _MOST_NAMED else "")
            what = f"the taint {named}, which" if len(missed) == 1 else f"one of the taints {named}, all of which"
            yield Advice(
                "UntoleratedTaint",
                f"{template.path}.tolerations",
                f"all nodes with GPUs have {what} the pods do not tolerate: they would wait",
                f"add a toleration: key {missed[0].key}, operator Exists",
            )


def _taints_of_gpu_nodes(context: RuleContext) -> list[tuple[Taint, ...]]:
    """Equal ones once: there may be thousands of nodes, and few sorts of them."""
    nodes = (node.taints for node in context.nodes() if _PRESENT in node.labels)
    hard = (tuple(Taint(each.key, each.effect, each.value) for each in taints) for taints in nodes)
    return [tuple(one for one in taints if one.effect in HARD_EFFECTS) for taints in dict.fromkeys(hard)]


def _untolerated_everywhere(template: PodTemplateView, tainted: list[tuple[Taint, ...]]) -> list[Taint]:
    """A taint that all nodes have, or else one of each node; none if the pods tolerate all taints of some node."""
    missed = [[taint for taint in taints if not template.tolerates(taint)] for taints in tainted]
    if not missed or not all(missed):
        return []
    common = [taint for taint in missed[0] if all(taint in each for each in missed)]
    return common[:1] or list(dict.fromkeys(each[0] for each in missed))


Condition = tuple[str, str, str, list[str]]
"""Path, key, operator and values."""


def conditions(template: PodTemplateView) -> Iterator[Condition]:
    """All required and preferred expressions over labels of nodes."""
    for key, value in string_keys(template.spec.get("nodeSelector")).items():
        yield f"{template.path}.nodeSelector[{key}]", key, "In", [str(value)]
    affinity = dig(template.spec, "affinity", "nodeAffinity")
    here = f"{template.path}.{_NODE_AFFINITY}"
    for at, term in enumerate(maps(dig(affinity, _REQUIRED, "nodeSelectorTerms"))):
        yield from _of_term(f"{here}.{_REQUIRED}.nodeSelectorTerms[{at}]", term)
    for at, weighed in enumerate(maps(dig(affinity, _PREFERRED))):
        yield from _of_term(f"{here}.{_PREFERRED}[{at}].preference", weighed.get("preference"))


def _of_term(path: str, term: Any) -> Iterable[Condition]:
    for at, one in enumerate(maps(dig(term, "matchExpressions"))):
        yield (
            f"{path}.matchExpressions[{at}]",
            str(one.get("key")),
            str(one.get("operator")),
            strings(one.get("values")),
        )
