"""Checks pods on parts of GPUs: whether nodes advertise the MIG instance, and whether a language model fits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shoal.data.mig import RESOURCE_PREFIX, layouts
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, string_keys
from shoal.policy.kinds import CLUSTER_POLICY, POD_CREATORS, WITH_PODS
from shoal.policy.named_models import named_model
from shoal.policy.pod_templates import GPU, gpus_of, pod_templates
from shoal.units.numbers import whole_of

_STRATEGY = "nvidia.com/mig.strategy"
_SHARING, _REPLICAS = "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.replicas"
_PRODUCT, _MEMORY_MIB = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
_MIB, _GB = 2**20, 10**9
_MEMORY = re.compile(r"\.([0-9]+)gb")


@check(
    Rule(
        "SHL-207",
        "InstancesUnderSingle",
        "error",
        fault="a MIG profile is requested, and the nodes have the strategy single",
        effect="no node advertises the resource, so the pods stay pending",
        fix="request nvidia.com/gpu on nodes of the profile, or use the MIG strategy mixed",
        evidence="cluster",
        at_admission="warning",
        bad="""\
apiVersion: v1
kind: Pod
metadata: {name: serve}
spec:
  containers: [{name: main, image: "registry.example/serve:1.4", resources: {limits: {nvidia.com/mig-1g.10gb: 1}}}]
---
apiVersion: v1
kind: Node
metadata: {name: gpu-1, labels: {nvidia.com/mig.strategy: single}}
""",
        changes=(Change("mig.strategy: single", "mig.strategy: mixed"),),
    ),
    Rule(
        "SHL-208",
        "ModelTooLarge",
        "error",
        fault="the weights of the model are larger than the requested MIG instance",
        effect="the process ends with an out-of-memory error when it loads the weights",
        fix="request an instance that holds the weights, or a whole GPU",
        at_admission="warning",
        bad="""\
name: serve
image: registry.example/serve:1.4
args: [--model=mistralai/Mistral-7B-Instruct-v0.3]
resources: {limits: {nvidia.com/mig-1g.5gb: 1}}
""",
        changes=(Change("mig-1g.5gb", "mig-3g.20gb"),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"nvidia.com/mig-",)),
)
def instance_requests(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    for template in pod_templates(obj):
        for path, container in template.containers():
            limits = string_keys(dig(container, "resources", "limits"))
            for name in limits:
                if name.startswith(RESOURCE_PREFIX):
                    here = f"{path}.resources.limits[{name}]"
                    yield from _under_single(here, name, context)
                    yield from _model(here, name, container)


def _under_single(here: str, name: str, context: RuleContext) -> Iterator[Advice]:
    strategies = {node.labels[_STRATEGY] for node in context.nodes() if _STRATEGY in node.labels}
    policies = {str(dig(policy, "spec", "mig", "strategy")) for policy in context.all(CLUSTER_POLICY)}
    if "single" in strategies | policies and "mixed" not in strategies | policies:
        profile = name.removeprefix(RESOURCE_PREFIX)
        yield Advice(
            "InstancesUnderSingle",
            here,
            f"the MIG strategy is single, under which instances are advertised as nvidia.com/gpu and not as {name}: "
            "the pods stay pending",
            f"request nvidia.com/gpu on nodes whose nvidia.com/gpu.product ends in -MIG-{profile}, or set the strategy "
            "mixed",
        )


def _model(here: str, name: str, container: Obj) -> Iterator[Advice]:
    """A process uses one instance, however many the container requests."""
    model, memory = named_model(container), _MEMORY.search(name)
    if model is not None and memory is not None and model.weights_gb > int(memory[1]):
        yield Advice(
            "ModelTooLarge",
            here,
            f"{model}, and the instance {memory[1]} GB; instances cannot be combined for one process",
            _larger(name, model.weights_gb),
        )


@check(
    Rule(
        "SHL-209",
        "ModelsShareMemory",
        "warning",
        fault="the models of all pods that share a GPU by time-slicing are larger than its memory",
        effect="the pods that start last end with an out-of-memory error",
        fix="offer fewer replicas, use MIG instances, or a smaller model",
        evidence="cluster",
        at_admission="warning",
        bad="""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers:
      - name: main
        image: registry.example/serve:1.4
        args: [--model=mistralai/Mistral-7B-Instruct-v0.3]
        resources: {limits: {nvidia.com/gpu: 1}}
---
apiVersion: v1
kind: Node
metadata:
  name: gpu-1
  labels:
    nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB
    nvidia.com/gpu.memory: "40960"
    nvidia.com/gpu.sharing-strategy: time-slicing
    nvidia.com/gpu.replicas: "4"
""",
        changes=(Change('"4"', '"2"'),),
    ),
    kinds=POD_CREATORS,
)
def shared_models(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Time-slicing divides the time of a GPU and not its memory."""
    for template in pod_templates(obj):
        for path, container in template.containers():
            model = named_model(container) if gpus_of(container) else None
            shares = _shares(context) if model is not None else []
            if model is not None and shares and all(count * model.weights_gb > memory for count, memory in shares):
                replicas, memory = max(shares, key=lambda share: share[1] / share[0])
                yield Advice(
                    "ModelsShareMemory",
                    f"{path}.resources.limits[{GPU}]",
                    f"{model}: {replicas} such pods share a GPU with {memory:.0f} GB, and the last ones lack memory",
                    "offer fewer replicas, use MIG instances, or a smaller model",
                )


def _shares(context: RuleContext) -> list[tuple[int, float]]:
    """Replicas and gigabytes of the GPUs of each node; empty if one has a GPU for a single pod."""
    found: set[tuple[int, float]] = set()
    for node in context.nodes():
        if _PRODUCT not in node.labels:
            continue
        replicas, memory = whole_of(node.labels.get(_REPLICAS, "")), whole_of(node.labels.get(_MEMORY_MIB, ""))
        if node.labels.get(_SHARING) != "time-slicing" or not replicas or not memory:
            return []
        found.add((replicas, memory * _MIB / _GB))
    return sorted(found)


def _larger(name: str, needed_gb: float) -> str:
    """The smallest profile of the same GPUs that holds the weights."""
    sizes = [
        (int(size[1]), profile.resource)
        for layout in layouts()
        if layout.profile(name) is not None
        for profile in layout.profiles
        if (size := _MEMORY.search(profile.name)) and int(size[1]) > needed_gb and profile.name.endswith("gb")
    ]
    return f"request {min(sizes)[1]} or a whole GPU" if sizes else "request a whole GPU"
