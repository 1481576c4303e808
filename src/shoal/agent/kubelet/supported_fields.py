"""Finds what a pod requests and no runtime of this kubelet can give, so that it is refused and never ignored.

The fields of a pod are listed positively: a field that is not in the lists is refused if it has a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.agent.kubelet.lifecycle_hooks import HANDLERS
from shoal.agent.kubelet.volumes import KINDS, kind_of

Obj = dict[str, Any]

_POD = frozenset(
    [
        "activeDeadlineSeconds",
        "affinity",
        "automountServiceAccountToken",
        "containers",
        "dnsPolicy",
        "enableServiceLinks",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostUsers",
        "hostname",
        "imagePullSecrets",
        "initContainers",
        "nodeName",
        "nodeSelector",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "readinessGates",
        "resources",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "schedulingGates",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "shareProcessNamespace",
        "subdomain",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
        "schedulingGroup",
        "workloadRef",
    ]
)
_CONTAINER = frozenset(
    [
        "args",
        "command",
        "env",
        "envFrom",
        "image",
        "imagePullPolicy",
        "lifecycle",
        "livenessProbe",
        "name",
        "ports",
        "readinessProbe",
        "resizePolicy",
        "resources",
        "restartPolicy",
        "restartPolicyRules",
        "securityContext",
        "startupProbe",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "volumeMounts",
        "workingDir",
    ]
)
_HOOKS, _HANDLERS = ("postStart", "preStop"), ", ".join(HANDLERS)


def unsupported_fields(pod: Obj, what: str, more: frozenset[str] = frozenset()) -> Iterator[str]:
    """The fields, each with the reason. `what`: `process pods`; `more`: fields that only their containers have."""
    spec = pod["spec"]
    for field, value in spec.items():
        if value and field not in _POD:
            yield f"spec.{field} is not supported for {what}"
    if spec.get("hostUsers") is False:
        yield f"spec.hostUsers: false is not supported for {what}: they have the users of the node"
    for volume in spec.get("volumes") or ():
        if kind_of(volume) not in KINDS:
            yield f"spec.volumes[{volume['name']}]: {kind_of(volume)} is not supported; use one of {', '.join(KINDS)}"
        for source in (volume.get("projected") or {}).get("sources") or ():
            if not source.keys() & {"configMap", "secret", "downwardAPI", "serviceAccountToken"}:
                yield f"spec.volumes[{volume['name']}]: {', '.join(source)} is not supported as a projected source"
    for where, container in containers_of(pod):
        for field, value in container.items():
            if value and field not in _CONTAINER and field not in more:
                yield f"{where}.{field} is not supported for {what}"
        yield from _of_container(container, where, what)


def unsupported_media(pod: Obj, no_mounts: str) -> Iterator[str]:
    """The emptyDirs with a medium that they cannot have. `no_mounts`: why no file system can be mounted; empty if one
    can."""
    for volume in pod["spec"].get("volumes") or ():
        medium = (volume.get("emptyDir") or {}).get("medium") or ""
        if medium not in ("", "Memory"):
            yield f"spec.volumes[{volume['name']}]: medium {medium} of an emptyDir is not supported; use Memory"
        if medium == "Memory" and no_mounts:
            yield f"spec.volumes[{volume['name']}]: medium Memory {no_mounts}"


def containers_of(pod: Obj) -> Iterator[tuple[str, Obj]]:
    """Each container, with the path of its spec."""
    for part in ("initContainers", "containers"):
        for container in pod["spec"].get(part) or ():
            yield f"spec.{part}[{container['name']}]", container


def _of_container(container: Obj, where: str, what: str) -> Iterator[str]:
    resources = container.get("resources") or {}
    if resources.get("claims"):
        yield f"{where}.resources.claims is not supported for {what}"
    for resource in {**(resources.get("requests") or {}), **(resources.get("limits") or {})}:
        if resource.startswith("hugepages-"):
            yield f"{where}.resources: {resource} is not supported for {what}"
    for name, hook in (container.get("lifecycle") or {}).items():
        if name not in _HOOKS:
            yield f"{where}.lifecycle.{name} is not supported for {what}"
        elif not hook.keys() & {*HANDLERS}:
            yield f"{where}.lifecycle.{name}: {', '.join(hook) or 'no handler'} is not supported; use {_HANDLERS}"
