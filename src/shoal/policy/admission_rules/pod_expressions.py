"""What the expressions of stateless rules have in common: variables about pods and pod templates, and parts of them.

The expressions are in the declarations of the rules (`policy/rules/gpu_requests.py` and `gpu_bypasses.py`). They read
variables, which the API server computes once for a request. They handle objects as untyped values, because one
expression is used for pods and for templates of several kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from shoal.policy.admission_rules.modes import MAXIMUM_LABEL
from shoal.policy.pod_templates import GPU


def is_gpu_name(name: str) -> str:
    """Whether the resource that has this name in an expression is a GPU, a MIG instance, or a share of either."""
    return f"({name} == '{GPU}' || {name}.startsWith('{GPU}.') || {name}.startsWith('nvidia.com/mig-'))"


def listed(texts: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{each}'" for each in texts) + "]"


def asks(container: str) -> str:
    """Whether the container that has this name in an expression asks for GPUs."""
    asked = []
    for field in ("limits", "requests"):
        amounts = f"{container}.?resources.?{field}.orValue({{}})"
        asked.append(f"{amounts}.exists(k, {is_gpu_name('k')} && string({amounts}[k]) != '0')")
    return f"({' || '.join(asked)})"


VARIABLES: Final[dict[str, str]] = {
    "top": "dyn(object)",
    # The object that has the metadata and the spec of the pod.
    "template": (
        "has(variables.top.spec.template) ? variables.top.spec.template : "
        "has(variables.top.spec.jobTemplate) ? variables.top.spec.jobTemplate.spec.template : variables.top"
    ),
    "former": (
        "oldObject == null ? dyn(null) : "
        "has(dyn(oldObject).spec.template) ? dyn(oldObject).spec.template : "
        "has(dyn(oldObject).spec.jobTemplate) ? dyn(oldObject).spec.jobTemplate.spec.template : dyn(oldObject)"
    ),
    "pod": "variables.template.spec",
    "containers": (
        "variables.pod.?initContainers.orValue([]) + variables.pod.?containers.orValue([])"
        " + variables.pod.?ephemeralContainers.orValue([])"
    ),
    "annotations": "variables.template.?metadata.?annotations.orValue({})",
    "gpus": f"variables.containers.exists(c, {asks('c')})",
    "terms": (
        "variables.pod.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution"
        ".?nodeSelectorTerms.orValue([])"
    ),
    "maximum": f"namespaceObject.metadata.?labels[?'{MAXIMUM_LABEL}'].orValue('')",
}
"""In the order in which they read each other."""


def variables_of(texts: Sequence[str], known: Mapping[str, str] = VARIABLES) -> list[dict[str, str]]:
    """The variables that the expressions read, themselves or by others, in the order of a policy."""
    wanted: list[str] = []
    for name in reversed(list(known)):
        readers = [*texts, *(known[other] for other in wanted)]
        if any(f"variables.{name}" in text for text in readers):
            wanted.append(name)
    return [{"name": name, "expression": known[name]} for name in reversed(wanted)]
