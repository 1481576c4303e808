"""The stateless rules as expressions of the API server: what must be true of pods and pod templates.

Expressions read variables, which the API server computes once for a request. They handle objects as untyped values,
because one expression is used for pods and for templates of several kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from shoal.policy.admission_rules import gpu_access as access
from shoal.policy.admission_rules.modes import MAXIMUM_LABEL
from shoal.policy.advice import Rule
from shoal.policy.pod_templates import GPU


class PodCheck(msgspec.Struct, frozen=True):
    expression: str
    message: str
    message_expression: str = ""
    """Replaces the message where it depends on the object."""


class PolicyRule(msgspec.Struct, frozen=True):
    reason: str
    rule: Rule
    """The same check on files and for the webhook."""
    validations: tuple[PodCheck, ...]
    data_check: PodCheck | None = None
    """The check of ConfigMaps and Secrets, from which containers may take variables."""
    has_failure_ignored: bool = False
    """Whether an object is admitted of which an expression cannot be evaluated."""


def _is_gpu(name: str) -> str:
    return f"({name} == '{GPU}' || {name}.startsWith('{GPU}.') || {name}.startsWith('nvidia.com/mig-'))"


def _listed(texts: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{each}'" for each in texts) + "]"


def _amounts(field: str) -> str:
    return f"c.?resources.?{field}.orValue({{}})"


def asks(container: str) -> str:
    """Whether the container that has this name in an expression asks for GPUs."""
    asked = []
    for field in ("limits", "requests"):
        amounts = f"{container}.?resources.?{field}.orValue({{}})"
        asked.append(f"{amounts}.exists(k, {_is_gpu('k')} && string({amounts}[k]) != '0')")
    return f"({' || '.join(asked)})"


def _label(name: str) -> str:
    return "(" + " || ".join(f"{name}.contains('{part}')" for part in access.NODE_LABELS) + ")"


def _count(list_name: str) -> str:
    each = (
        f"c.?resources.?limits.orValue({{}}).filter(k, {_is_gpu('k')})"
        f".map(k, quantity(string(c.resources.limits[k])).asInteger()).sum()"
    )
    return f"variables.pod.?{list_name}.orValue([]).map(c, {each})"


def _hides(variable: str) -> str:
    none = _listed(access.NO_DEVICES)
    return f"!has({variable}.valueFrom) && {variable}.?value.orValue('') in {none}"


_VISIBLE = f"e.?name.orValue('') == '{access.VARIABLE}'"
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

TOLERATION = (
    "!variables.gpus || variables.pod.?tolerations.orValue([]).exists(t, "
    f"(t.?key.orValue('') == '{GPU}' || (t.?key.orValue('') == '' && t.?operator.orValue('') == 'Exists'))"
    " && t.?effect.orValue('') in ['', 'NoSchedule'])"
)
AFFINITY = (
    "!variables.gpus || variables.pod.?nodeName.orValue('') != ''"
    f" || variables.pod.?nodeSelector.orValue({{}}).exists(k, {_label('k')})"
    " || (variables.terms.size() > 0 && variables.terms.all(t, t.?matchFields.orValue([]).size() > 0"
    f" || t.?matchExpressions.orValue([]).exists(m, {_label('m.key')} && m.operator in {_listed(access.SELECTING)})))"
)
_VISIBLE_DEVICES = (
    f"variables.annotations.all(k, !k.startsWith('{access.CDI_PREFIX}')) && variables.containers.all(c, "
    f"c.?env.orValue([]).all(e, !({_VISIBLE}) || ({_hides('e')}))"
    f" && c.?envFrom.orValue([]).all(f, f.?prefix.orValue('') == '' || !'{access.VARIABLE}'.startsWith(f.prefix))"
    f" && c.?volumeMounts.orValue([]).all(m, !m.?mountPath.orValue('').startsWith('{access.DEVICE_MOUNTS}')))"
)
_HOST_PATH = (
    "p.size() == 0 || (p[0] == 'dev' && (p.size() == 1 || p[1].startsWith('nvidia')"
    f" || p[1] in {_listed(access.DEVICE_FOLDERS)})) || (p[0] == 'proc' && 'root' in p)"
    " || (p[0] == 'run' && p.size() > 1 && p[1] == 'nvidia')"
    " || (p[0] == 'var' && p.size() > 2 && p[1] == 'run' && p[2] == 'nvidia')"
)
_NO_DEVICES_IN_DATA = " && ".join(
    f"!('{access.VARIABLE}' in dyn(object).?{field}.orValue({{}}))" for field in access.DATA_FIELDS
)
_PATH_PARTS = "v.?hostPath.?path.orValue('-').split('/').filter(s, !(s in ['', '.']))"
_HOST_DEVICES = f"variables.pod.?volumes.orValue([]).all(v, ![{_PATH_PARTS}].exists(p, {_HOST_PATH}))"
_RUNTIME_CLASS = (
    "!variables.pod.?runtimeClassName.orValue('').startsWith('nvidia') || variables.gpus"
    f" || variables.annotations.exists(k, k in {_listed(access.PART_ANNOTATIONS)})"
    " || variables.pod.?resourceClaims.orValue([]).size() > 0"
    f" || variables.containers.all(c, c.?env.orValue([]).exists(e, {_VISIBLE} && {_hides('e')}))"
)
_EQUAL = (
    f"variables.containers.all(c, {_amounts('requests')}.all(k, !{_is_gpu('k')} || "
    f"string(c.?resources.?limits[?k].orValue('')) == string(c.resources.requests[k])))"
)
_MAXIMUM = (
    "!variables.maximum.matches('^[0-9]{1,6}$') || "
    f"({_count('containers')}.sum() <= int(variables.maximum)"
    f" && {_count('initContainers')}.all(n, n <= int(variables.maximum)))"
)
_OVER = "'pods of this namespace must not request more than ' + variables.maximum + ' GPUs'"

POLICY_RULES: Final[tuple[PolicyRule, ...]] = (
    PolicyRule("UnequalGpus", access.equal_gpus, (PodCheck(_EQUAL, access.EQUAL),), has_failure_ignored=True),
    PolicyRule(
        "NoGpuToleration",
        access.gpu_tolerations,
        (PodCheck(TOLERATION, access.TOLERATION),),
        has_failure_ignored=True,
    ),
    PolicyRule(
        "NoGpuNodeAffinity",
        access.gpu_node_affinity,
        (PodCheck(AFFINITY, access.AFFINITY),),
        has_failure_ignored=True,
    ),
    PolicyRule(
        "VisibleDevicesByHand",
        access.named_devices,
        (PodCheck(_VISIBLE_DEVICES, access.VISIBLE),),
        PodCheck(_NO_DEVICES_IN_DATA, access.IN_DATA),
    ),
    PolicyRule(
        "GpuWithoutRequest",
        access.unrequested_devices,
        (PodCheck(_HOST_DEVICES, access.HOST_DEVICES), PodCheck(_RUNTIME_CLASS, access.RUNTIME)),
    ),
    PolicyRule(
        "PrivilegedContainer",
        access.privileged_containers,
        (PodCheck("variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))", access.PRIVILEGED),),
    ),
    PolicyRule(
        "OverNamespaceMaximum",
        access.namespace_maximum,
        (PodCheck(_MAXIMUM, "the pod requests more GPUs than its namespace allows", _OVER),),
    ),
)
"""Rules that keep GPUs from being taken past the scheduler fail closed, the others open: an expression of a huge object
may exceed the budget of the API server."""


def variables_of(texts: Sequence[str], known: Mapping[str, str] = VARIABLES) -> list[dict[str, str]]:
    """The variables that the expressions read, themselves or by others, in the order of a policy."""
    wanted: list[str] = []
    for name in reversed(list(known)):
        readers = [*texts, *(known[other] for other in wanted)]
        if any(f"variables.{name}" in text for text in readers):
            wanted.append(name)
    return [{"name": name, "expression": known[name]} for name in reversed(wanted)]
