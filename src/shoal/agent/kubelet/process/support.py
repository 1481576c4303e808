"""Finds what a pod requests and a process cannot have, so that it is refused and never ignored.

The fields of a pod are listed positively: a field that is not in the lists is refused if it has a value. The mount
paths of volumes are not refused: the folders are reachable below `$SHOAL_MOUNTS`, and by a variable for each volume.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from shoal.agent.kubelet.volumes import KINDS, kind_of

Obj = dict[str, Any]
RUNTIME_CLASS = "process"
LABEL, ALLOWED = "shoal.dev/process-pods", "allowed"

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
_HARMLESS = frozenset(
    {"privileged", "runAsNonRoot", "runAsUser", "runAsGroup", "readOnlyRootFilesystem", "allowPrivilegeEscalation"}
)
_TERMINATION_LOG = "/dev/termination-log"


class ProcessUser(msgspec.Struct, frozen=True):
    """The user whose processes pods become."""

    uid: int
    gid: int


def unsupported(pod: Obj, user: ProcessUser) -> str:
    """What the pod requests that a process cannot have: the first field and why; empty if it can run."""
    return next(_unsupported(pod, user), "")


def _unsupported(pod: Obj, user: ProcessUser) -> Iterator[str]:
    spec = pod["spec"]
    for field, value in spec.items():
        if value and field not in _POD:
            yield f"spec.{field} is not supported for process pods"
    yield from _security(spec.get("securityContext") or {}, "spec.securityContext", user)
    for volume in spec.get("volumes") or ():
        if kind_of(volume) not in KINDS:
            yield f"spec.volumes[{volume['name']}]: {kind_of(volume)} is not supported; use one of {', '.join(KINDS)}"
        empty = volume.get("emptyDir") or {}
        if empty.get("medium") or empty.get("sizeLimit"):
            yield f"spec.volumes[{volume['name']}]: medium and sizeLimit of an emptyDir are not supported"
        for source in (volume.get("projected") or {}).get("sources") or ():
            if not source.keys() & {"configMap", "secret", "downwardAPI", "serviceAccountToken"}:
                yield f"spec.volumes[{volume['name']}]: {', '.join(source)} is not supported as a projected source"
    for part in ("initContainers", "containers"):
        for container in spec.get(part) or ():
            yield from _container(container, f"spec.{part}[{container['name']}]", user)


def _container(container: Obj, where: str, user: ProcessUser) -> Iterator[str]:
    for field, value in container.items():
        if value and field not in _CONTAINER:
            yield f"{where}.{field} is not supported for process pods"
    if not container.get("command"):
        yield f"{where}.command is required: a process pod has no image that could define it"
    if container.get("terminationMessagePath", _TERMINATION_LOG) != _TERMINATION_LOG:
        yield f"{where}.terminationMessagePath is not supported; write to the file $SHOAL_TERMINATION_LOG"
    resources = container.get("resources") or {}
    if resources.get("claims"):
        yield f"{where}.resources.claims is not supported for process pods"
    for resource in {**(resources.get("requests") or {}), **(resources.get("limits") or {})}:
        if resource.startswith("hugepages-"):
            yield f"{where}.resources: {resource} is not supported for process pods"
    if "ephemeral-storage" in (resources.get("limits") or {}):
        yield f"{where}.resources.limits: ephemeral-storage is not enforced for process pods"
    for mount in container.get("volumeMounts") or ():
        if any(mount.get(key) for key in ("subPath", "subPathExpr", "mountPropagation")):
            yield f"{where}.volumeMounts[{mount['name']}]: subPath and mountPropagation are not supported"
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        if "grpc" in (container.get(name) or {}):
            yield f"{where}.{name}.grpc is not supported; use exec, httpGet or tcpSocket"
    yield from _security(container.get("securityContext") or {}, f"{where}.securityContext", user)


def _security(context: Obj, where: str, user: ProcessUser) -> Iterator[str]:
    for field, value in context.items():
        if value and field not in _HARMLESS:
            yield f"{where}.{field} is not supported for process pods"
    for field, own in (("runAsUser", user.uid), ("runAsGroup", user.gid)):
        if context.get(field) not in (None, own):
            wanted = f"{where}.{field}: {context[field]}"
            yield f"{wanted} is not possible: process pods run as user {own}, which started Shoal"
    if context.get("runAsNonRoot") and user.uid == 0:
        yield f"{where}.runAsNonRoot is not possible: process pods run as root, which started Shoal"
    for field in ("privileged", "readOnlyRootFilesystem"):
        if context.get(field):
            yield f"{where}.{field} is not supported for process pods"
    if context.get("allowPrivilegeEscalation") is False:
        yield f"{where}.allowPrivilegeEscalation: false is not enforced for process pods"
