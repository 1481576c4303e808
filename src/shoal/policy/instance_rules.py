"""Checks pods that request MIG instances: whether nodes advertise them, and whether a language model fits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shoal.data.mig import RESOURCE_PREFIX, layouts
from shoal.policy.advice import Advice, Obj, RuleContext, rule
from shoal.policy.fields import dig, string_keys
from shoal.policy.kinds import CLUSTER_POLICY
from shoal.policy.pod_templates import command_words, pod_templates

_STRATEGY = "nvidia.com/mig.strategy"
_SIZE = re.compile(r"(?<![A-Za-z0-9.])([0-9]{1,4}(?:\.[0-9]{1,2})?)[bB](?![A-Za-z0-9])")
_SMALLER = {"int4": 0.5, "4bit": 0.5, "awq": 0.5, "gptq": 0.5, "q4": 0.5, "int8": 1.0, "8bit": 1.0, "fp8": 1.0}
"""Bytes of a parameter in quantized models; 2 in others."""
_USUAL_BYTES = 2.0
_MEMORY = re.compile(r"\.([0-9]+)gb")


@rule(
    InstancesUnderSingle="a MIG profile is requested, and the nodes have the strategy single",
    ModelTooLarge="the weights of the model are larger than the requested MIG instance",
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
    words = [word for word in command_words(container) if "/" in word or "model" in word]
    found = next((match for word in words if (match := _SIZE.search(word))), None)
    memory = _MEMORY.search(name)
    if found is None or memory is None:
        return
    text = found.string.lower()
    width = next((width for mark, width in _SMALLER.items() if mark in text), _USUAL_BYTES)
    needed_gb = float(found[1]) * width
    if needed_gb > int(memory[1]):
        yield Advice(
            "ModelTooLarge",
            here,
            f"the model has {found[1]} billion parameters, about {needed_gb:g} GB, and the instance {memory[1]} GB; "
            "instances cannot be combined for one process",
            _larger(name, needed_gb),
        )


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
