"""Checks whether the language model of a pod fits into the memory of the GPUs that the pod requests.

Only pods that hold the model alone are checked: groups of pods, such as those of a training job, divide it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from shoal.data.gpus import PRODUCT_LABEL, read_product
from shoal.data.instances import find_instance
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys, strings
from shoal.policy.kinds import DEPLOYMENT, INFERENCE_SERVICE, JOB, POD, STATEFUL_SET
from shoal.policy.named_models import NamedModel, named_model
from shoal.policy.pod_templates import GPU, PodTemplateView, command_words, gpus_of, pod_templates
from shoal.policy.sizing.memory import FRAGMENTATION, RUNTIME_BYTES
from shoal.units.numbers import whole_of

_MIB, _GB = 2**20, 10**9
_MOST_PRODUCTS = 1024
"""Users choose the labels in files, so that a cache of them is bounded."""
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_GPUMEM, _GPUMEM_PERCENT = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage"
_MEMORY_ANNOTATION, _PARTS_ANNOTATION = "gpu-memory", "gpu-fraction-num-devices"
_GIGABYTES = re.compile(r"-([0-9]{2,3})GB", re.ASCII)
_OF_SEVERAL_PODS = ("pipeline", "nnodes", "torchrun", "rdzv", "mpirun", "deepspeed", "ray")
_GROUP_LABELS = ("leaderworkerset.sigs.k8s.io/name", "training.kubeflow.org/job-name", "ray.io/cluster")


class _Offered(NamedTuple):
    """Memory of a GPU, or of a part of one."""

    name: str
    memory_bytes: float
    path: str


@check(
    Rule(
        "SHL-218",
        "ModelExceedsMemory",
        "warning",
        fault="the model of a pod is larger than the memory of the GPUs that the pod requests",
        effect="the process ends with an out-of-memory error when it loads the weights",
        fix="request more GPUs or larger ones, or use quantized weights: `shoal size MODEL` lists what holds it",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: serve}
spec:
  nodeSelector: {nvidia.com/gpu.product: Tesla-T4}
  containers:
  - name: main
    image: registry.example/serve:1.4
    args: [--model=meta-llama/Llama-3.1-70B-Instruct]
    resources: {limits: {nvidia.com/gpu: 1}}
""",
        changes=(Change("Llama-3.1-70B-Instruct", "Llama-3.2-3B-Instruct"),),
    ),
    kinds=(POD, DEPLOYMENT, STATEFUL_SET, JOB, INFERENCE_SERVICE),
    options=CheckOptions(hints=(b"nvidia.com/gpu", b"gpu-memory")),
)
def models_in_memory(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    if dig(obj, "metadata", "ownerReferences") or dig(obj, "spec", "predictor", "workerSpec"):
        # The creator of the pod is checked.
        return
    for template in pod_templates(obj):
        if any(label in template.labels for label in _GROUP_LABELS):
            continue
        for path, container in template.containers():
            model = named_model(container)
            if model is None or model.is_offloaded or _is_of_group(container):
                continue
            gpus, offered = _offered(path, container, template, context)
            largest = max(offered, key=lambda each: each.memory_bytes, default=None)
            if largest is not None and not _holds(model, gpus, largest):
                yield _advice(model, gpus, largest)


def _advice(model: NamedModel, gpus: int, offered: _Offered) -> Advice:
    memory = f"{offered.memory_bytes / _GB:.0f} GB"
    group = memory if gpus == 1 else f"{gpus} x {memory}"
    return Advice(
        "ModelExceedsMemory",
        offered.path,
        f"{model} for its weights, and {offered.name} has {group}, of which {1 - FRAGMENTATION:.0%} can be used",
        f"request more or larger GPUs, or quantize it: `shoal size --params {model.billions}e9` lists what holds it",
    )


def _holds(model: NamedModel, gpus: int, offered: _Offered) -> bool:
    return model.weights_gb * _GB / gpus + RUNTIME_BYTES <= offered.memory_bytes * (1 - FRAGMENTATION)


def _is_of_group(container: Obj) -> bool:
    """Whether the command divides the model among pods."""
    return any(mark in word.lower() for word in command_words(container) for mark in _OF_SEVERAL_PODS)


def _offered(
    path: str, container: Obj, template: PodTemplateView, context: RuleContext
) -> tuple[int, Iterable[_Offered]]:
    """How many GPUs, and what each of them may be."""
    limits, gpus = string_keys(dig(container, "resources", "limits")), gpus_of(container)
    part = whole_of(str(limits.get(_GPUMEM, "")))
    if part:
        return gpus or 1, [_Offered(_GPUMEM, part * _MIB, f"{path}.resources.limits[{_GPUMEM}]")]
    part = whole_of(str(template.annotations.get(_MEMORY_ANNOTATION, "")))
    if part and not gpus:
        place = template.path.removesuffix("spec") + f"metadata.annotations[{_MEMORY_ANNOTATION}]"
        count = whole_of(str(template.annotations.get(_PARTS_ANNOTATION, ""))) or 1
        return count, [_Offered(_MEMORY_ANNOTATION, part * _MIB, place)]
    if not gpus:
        return 0, []
    percent = whole_of(str(limits.get(_GPUMEM_PERCENT, ""))) or 100
    here = f"{path}.resources.limits[{GPU}]"
    products = list(dict.fromkeys(_products(template, context)))
    sizes = [_memory_of(product) for product in products]
    if not all(sizes):
        return gpus, []
    return gpus, [_Offered(product, size * percent / 100, here) for product, size in zip(products, sizes, strict=True)]


def _products(template: PodTemplateView, context: RuleContext) -> Iterator[str]:
    """The products on which the pod may run: those that it selects, else those of the nodes that it selects."""
    selector = string_keys(template.spec.get("nodeSelector"))
    chosen = [selector[PRODUCT_LABEL]] if isinstance(selector.get(PRODUCT_LABEL), str) else []
    chosen = chosen or _of_affinity(template)
    machine = find_instance(str(selector.get(_INSTANCE_TYPE, "")))
    if chosen:
        yield from chosen
    elif machine is not None and machine.fraction == 1.0:
        yield machine.gpu
    else:
        wanted = selector.items()
        for node in context.nodes():
            if PRODUCT_LABEL in node.labels and (not wanted or wanted <= node.labels.items()):
                yield node.labels[PRODUCT_LABEL]


def _of_affinity(template: PodTemplateView) -> list[str]:
    """The values of the product in required node affinity; empty if a term does not name one."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    found: list[str] = []
    for term in maps(dig(template.spec, "affinity", "nodeAffinity", required, "nodeSelectorTerms")):
        named = [
            strings(each.get("values"))
            for each in maps(term.get("matchExpressions"))
            if each.get("key") == PRODUCT_LABEL and each.get("operator") == "In"
        ]
        if not named:
            return []
        found += named[0]
    return found


@lru_cache(maxsize=_MOST_PRODUCTS)
def _memory_of(label: str) -> float:
    """0 if it is not known. Some labels name the larger of two sizes that a model is sold with."""
    product = read_product(label)
    if product.model is None:
        return 0.0
    if product.mig_profile:
        layout = product.model.mig_layout()
        profile = layout.profile(product.mig_profile) if layout is not None else None
        return float((profile.memory_mib or 0) * _MIB) if profile is not None else 0.0
    named = _GIGABYTES.search(label)
    return float(max(product.model.memory_mib() * _MIB, int(named[1]) * _GB if named else 0))
