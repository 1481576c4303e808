"""Warns about pods and templates that are accepted although something in them is questionable.

Every pod is looked through, so what is absent costs one look-up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache

from shoal.embedded.apiserver.kinds.complaints import Obj
from shoal.embedded.apiserver.kinds.pods.placement_warnings import affinity_warnings, label_warnings
from shoal.embedded.apiserver.kinds.pods.volume_warnings import volume_warnings
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults
from shoal.units.quantity import NANO, Quantity

_OLD_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'in v1.11+; use the "sysctls" field instead',
}
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_BYTES = ("memory", "ephemeral-storage")

Placed = list[tuple[str, Obj]]
"""Containers or ports with their paths."""


def pod_warnings(metadata: Obj, spec: Obj, prefix: str) -> list[str]:
    """`prefix` precedes `spec` and `metadata`: nothing for a pod, `spec.template.` for a template."""
    path, annotations = f"{prefix}spec", metadata.get("annotations")
    found: list[str] = []
    if spec.get("nodeSelector") or spec.get("affinity") or spec.get("topologySpreadConstraints"):
        found += label_warnings(spec, path)
    if annotations:
        found += _annotations(annotations, f"{prefix}metadata.annotations")
    if volumes := spec.get("volumes"):
        found += volume_warnings(volumes, f"{path}.volumes")
    found += _repeated_entries(spec.get("hostAliases") or (), f"{path}.hostAliases", "ip")
    found += _repeated_entries(spec.get("imagePullSecrets") or (), f"{path}.imagePullSecrets", "name")
    found += _fractions(spec.get("overhead") or {}, f"{path}.overhead")
    containers = _containers(spec, path)
    if annotations:
        found += _container_annotations(annotations, spec, containers, prefix)
    for here, container in containers:
        if resources := container.get("resources"):
            found += _fractions(resources.get("limits") or {}, f"{here}.resources.limits")
            found += _fractions(resources.get("requests") or {}, f"{here}.resources.requests")
        if variables := container.get("env"):
            found += _repeated_variables(variables, f"{here}.env")
    found += _ports(containers)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        words = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{path}.terminationGracePeriodSeconds: {words}")
    if affinity := spec.get("affinity"):
        found += affinity_warnings(affinity, f"{path}.affinity")
    return list(dict.fromkeys(found))


def name_warnings(name: str) -> list[str]:
    faults = dns_label_faults(name)
    if not faults:
        return []
    words = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: {words}: [{' '.join(faults)}]"]


def _containers(spec: Obj, path: str) -> Placed:
    return [
        (f"{path}.{key}[{place}]", container)
        for key in ("initContainers", "containers", "ephemeralContainers")
        for place, container in enumerate(spec.get(key) or ())
    ]


def _annotations(annotations: Obj, path: str) -> Iterator[str]:
    for key, words in _OLD_ANNOTATIONS.items():
        if key in annotations:
            yield f"{path}[{key}]: non-functional {words}"


def _container_annotations(annotations: Obj, spec: Obj, containers: Placed, prefix: str) -> Iterator[str]:
    """Of profiles said by annotation where no field says them. A pod's own AppArmor annotation is still read."""
    path, security = f"{prefix}metadata.annotations", spec.get("securityContext") or {}
    words = 'non-functional in v1.27+; use the "seccompProfile" field instead'
    if _SECCOMP_POD in annotations and not security.get("seccompProfile"):
        yield f"{path}[{_SECCOMP_POD}]: {words}"
    for _, container in containers:
        own, name = container.get("securityContext") or {}, container.get("name", "")
        if f"{_SECCOMP}{name}" in annotations and not own.get("seccompProfile"):
            yield f"{path}[{_SECCOMP}{name}]: {words}"
        has_profile = own.get("appArmorProfile") or security.get("appArmorProfile")
        if prefix and f"{_APP_ARMOR}{name}" in annotations and not has_profile:
            said = 'deprecated since v1.30; use the "appArmorProfile" field instead'
            yield f"{path}[{_APP_ARMOR}{name}]: {said}"


def _repeated_entries(listed: Sequence[Obj], path: str, named: str) -> Iterator[str]:
    seen: set[str] = set()
    for place, one in enumerate(listed):
        value = one.get(named, "")
        if value in seen:
            yield f"{path}[{place}].{named}: duplicate {named} {json.dumps(value)}"
        seen.add(value)
    if named == "name":
        for place, one in enumerate(listed):
            if not one.get("name"):
                yield f'{path}[{place}].name: invalid empty name ""'


def _fractions(amounts: Obj, path: str) -> Iterator[str]:
    for name in _BYTES:
        if name in amounts and (shown := _fraction(amounts[name])):
            yield f'{path}[{name}]: fractional byte value "{shown}" is invalid, must be an integer'


@lru_cache(maxsize=4096)
def _fraction(amount: str) -> str:
    value = Quantity.parse(amount)
    return str(value) if value.nano % NANO else ""


def _repeated_variables(variables: list[Obj], path: str) -> Iterator[str]:
    """A value may build on the one it replaces."""
    seen: set[str] = set()
    for place, one in enumerate(variables):
        name, value = one.get("name", ""), one.get("value", "")
        itself = f"$({name})"
        if name in seen and (one.get("valueFrom") or value == itself or itself not in value):
            yield f'{path}[{place}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _ports(containers: Placed) -> Iterator[str]:
    known: dict[tuple[int, str], Placed] = {}
    for path, container in containers:
        for place, port in enumerate(container.get("ports") or ()):
            here = f"{path}.ports[{place}]"
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{here}: hostIP set without hostPort: {_shown(port)}"
            others = known.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for there, other in others:
                if words := _clash(port, other):
                    yield f"{here}: {words} port definition with {there}"
            others.append((here, port))


def _shown(port: Obj) -> str:
    """As Go prints it."""
    get = port.get
    numbers = f"HostPort:{get('hostPort', 0)} ContainerPort:{get('containerPort', 0)}"
    return f"{{Name:{get('name', '')} {numbers} Protocol:{get('protocol', '')} HostIP:{get('hostIP', '')}}}"


def _clash(port: Obj, other: Obj) -> str:
    one, two = port.get("hostPort", 0), other.get("hostPort", 0)
    here, there = port.get("hostIP", ""), other.get("hostIP", "")
    if one == two and here == there:
        return "duplicate"
    if not one or not two:
        return "overlapping"
    return "dangerously ambiguous" if one == two and bool(here) != bool(there) else ""
