"""Compares the processes that a command starts with the GPUs and pods that there are for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig
from shoal.policy.kinds import POD_CREATORS, SERVICE, WITH_PODS
from shoal.policy.pod_templates import PodTemplateView, command_words, gpus_of, pod_templates
from shoal.units.numbers import whole_of

_NODES: Final = ("--nnodes", "-N")
_PER_NODE: Final = ("--nproc_per_node", "--nproc-per-node")
_PARALLEL: Final = (
    ("--tensor-parallel-size", "--tensor_parallel_size", "-tp", "--tp-size", "--tp", "--num-shard"),
    ("--pipeline-parallel-size", "--pipeline_parallel_size", "-pp", "--pp-size"),
    ("--data-parallel-size", "-dp", "--dp-size"),
)
_SERVERS: Final = ("vllm", "sglang", "text-generation", "trtllm", "lmdeploy")
_ALONE: Final = ("Pod", "Deployment", "StatefulSet")
"""Kinds whose pods serve a model each by itself."""
_ENDPOINT = re.compile(r"^--rdzv[_-]endpoint[= ]?([a-z0-9-]+)\.([a-z0-9-]+)(?::\d+)?$")


@check(
    Rule(
        "SHL-324",
        "ProcessesAndGpus",
        "warning",
        fault="a command starts more or fewer processes than the container has GPUs",
        effect="GPUs are idle, or the processes end because there are too few",
        fix="start as many processes as the container has GPUs",
        at_admission="warning",
        bad="""\
name: train
image: registry.example/train:1.4
command: [torchrun, --nproc_per_node=8, train.py]
resources: {limits: {nvidia.com/gpu: 4}}
""",
        changes=(Change("nvidia.com/gpu: 4", "nvidia.com/gpu: 8"),),
    ),
    Rule(
        "SHL-325",
        "NodesAndPods",
        "error",
        fault="torchrun waits for another number of nodes than the job has pods",
        effect="the workers wait for each other until the timeout",
        fix="make --nnodes, parallelism and completions equal",
        at_admission="warning",
        bad="""\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  completions: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: registry.example/train:1.4
        command: [torchrun, --nnodes=4, "--rdzv_endpoint=train-0.train:29500", train.py]
""",
        changes=(Change("--nnodes=4", "--nnodes=2"),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"torch",)),
)
def processes(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Where the numbers are written as numbers; variables and `auto` are not judged."""
    for template in pod_templates(obj):
        for path, container in template.containers():
            words, gpus = command_words(container), gpus_of(container)
            field = f"{path}.command" if container.get("command") else f"{path}.args"
            started = _number(words, _PER_NODE)
            if started and gpus and started != gpus:
                yield _processes(field, f"starts {started} processes on each node", started, gpus)
            degrees = [_number(words, names) or 1 for names in _PARALLEL]
            serves = any(name in f"{container.get('image')} {' '.join(words)}".lower() for name in _SERVERS)
            wanted = prod(degrees)
            if obj.get("kind") in _ALONE and serves and gpus and wanted > 1 and wanted != gpus:
                yield _processes(field, f"divides the model among {wanted} GPUs", wanted, gpus)
            nodes, pods = _number(words, _NODES), _pods_of(obj)
            if "torchrun" in words and nodes and pods and nodes != pods:
                what = f"torchrun waits for {nodes} nodes, and the job has {pods} pods"
                fix = f"write --nnodes={pods}, or parallelism and completions of {nodes}"
                yield Advice("NodesAndPods", field, what, fix)


@check(
    also={"NoSuchService": "a rendezvous endpoint names a pod of a Service that does not exist"},
    kinds=POD_CREATORS,
)
def endpoints(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """The name of a pod resolves below its headless Service, which is the subdomain of the pod."""
    namespace = str(dig(obj, "metadata", "namespace") or "")
    for template in pod_templates(obj):
        for path, container in template.containers():
            for word in command_words(container):
                found = _ENDPOINT.match(word)
                if found and context.lacks(SERVICE, namespace, found[2]):
                    what = f'{found[1]}.{found[2]} does not resolve: Service "{found[2]}" not found in {namespace}'
                    yield Advice("NoSuchService", f"{path}.command", what, "name the headless Service of the pods")
        yield from _subdomain(template, namespace, context)


def _subdomain(template: PodTemplateView, namespace: str, context: RuleContext) -> Iterator[Advice]:
    name = template.spec.get("subdomain")
    if isinstance(name, str) and name and context.lacks(SERVICE, namespace, name):
        what = f'Service "{name}" not found in namespace {namespace}: the names of the pods do not resolve'
        yield Advice("NoSuchService", f"{template.path}.subdomain", what, "create a headless Service of this name")


def _processes(field: str, what: str, wanted: int, gpus: int) -> Advice:
    effect = "one GPU would have several" if wanted > gpus else f"{gpus - wanted} of them are idle"
    message = f"{what}, and the container has {gpus} GPU{'s' if gpus > 1 else ''}: {effect}"
    return Advice("ProcessesAndGpus", field, message, f"write {gpus}, or request {wanted} GPUs")


def _number(words: Sequence[str], names: Sequence[str]) -> int | None:
    """The number behind one of these options; None if there is none, or something else."""
    for at, word in enumerate(words):
        name, is_joined, value = word.partition("=")
        if name in names:
            return whole_of(value if is_joined else words[at + 1] if at + 1 < len(words) else "")
    return None


def _pods_of(obj: Obj) -> int:
    """Of a Job whose pods all run at once; 0 for others."""
    if obj.get("kind") != "Job" or not str(obj.get("apiVersion")).startswith("batch/"):
        return 0
    parallelism, completions = dig(obj, "spec", "parallelism"), dig(obj, "spec", "completions")
    return parallelism if isinstance(parallelism, int) and parallelism == completions else 0
