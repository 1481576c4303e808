"""The objects that a pod names: without them it is refused, or does not start.

References that are marked as optional are left out, and claims that the pod's own controller creates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from shoal.policy.advice import Advice, Obj
from shoal.policy.fields import dig, maps
from shoal.policy.gpu_pods import all_containers
from shoal.policy.kinds import CONFIG_MAP, PRIORITY_CLASS, SECRET, SERVICE_ACCOUNT, VOLUME_CLAIM, GroupKind
from shoal.policy.pod_templates import PodTemplateView

_SOURCES = (("configMap", CONFIG_MAP), ("secret", SECRET))


_REASONS = {PRIORITY_CLASS: "UnknownPriorityClass"}
_REFUSED = (PRIORITY_CLASS, SERVICE_ACCOUNT)


class PodReference(NamedTuple):
    path: str
    kind: GroupKind
    name: str


def pod_references(template: PodTemplateView) -> Iterator[PodReference]:
    """In the order of the fields; several may have the same name."""
    spec = template.spec
    for at, volume in enumerate(maps(spec.get("volumes"))):
        yield from _of_volume(f"{template.path}.volumes[{at}]", volume)
    for path, container in all_containers(template):
        for at, source in enumerate(maps(container.get("envFrom"))):
            for field, kind in _SOURCES:
                yield from _named(f"{path}.envFrom[{at}]", kind, source.get(f"{field}Ref"), "name")
        for at, variable in enumerate(maps(container.get("env"))):
            # Most variables have a value, and a pod may have hundreds.
            if "valueFrom" in variable:
                for field, kind in _SOURCES:
                    found = dig(variable, "valueFrom", f"{field}KeyRef")
                    yield from _named(f"{path}.env[{at}].valueFrom", kind, found, "name")
    if spec.get("serviceAccountName") != "default":
        yield from _named(template.path, SERVICE_ACCOUNT, spec, "serviceAccountName", with_field=True)
    yield from _named(template.path, PRIORITY_CLASS, spec, "priorityClassName", with_field=True)


def _of_volume(path: str, volume: Obj) -> Iterator[PodReference]:
    yield from _named(path, CONFIG_MAP, volume.get("configMap"), "name")
    yield from _named(path, SECRET, volume.get("secret"), "secretName")
    yield from _named(path, VOLUME_CLAIM, volume.get("persistentVolumeClaim"), "claimName")
    for at, source in enumerate(maps(dig(volume, "projected", "sources"))):
        for field, kind in _SOURCES:
            yield from _named(f"{path}.projected.sources[{at}]", kind, source.get(field), "name")


def _named(path: str, kind: GroupKind, holder: Any, field: str, *, with_field: bool = False) -> Iterator[PodReference]:
    name = dig(holder, field)
    if isinstance(name, str) and name and dig(holder, "optional") is not True:
        yield PodReference(f"{path}.{field}" if with_field else path, kind, name)


def missing_reference(path: str, kind: GroupKind, name: str, namespace: str, fix: str = "create it") -> Advice:
    """`namespace`: empty for a kind without one."""
    where = f" in namespace {namespace}" if namespace else ""
    effect = "the pods are refused" if kind in _REFUSED else "the pods would wait"
    reason = _REASONS.get(kind, f"Missing{kind.name}")
    return Advice(reason, path, f'{kind.name} "{name}" not found{where}: {effect}', fix)
