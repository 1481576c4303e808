"""Finds what a pod requests and a container on this node cannot have, so that it is refused and never ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.agent.kubelet.supported_fields import containers_of, unsupported_fields, unsupported_media

Obj = dict[str, Any]
_WHAT = "containers on this node"
_CONTAINER = frozenset({"stdin", "stdinOnce", "tty"})
_POD_SECURITY = frozenset(
    {
        "fsGroup",
        "fsGroupChangePolicy",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "seccompProfile",
        "supplementalGroups",
    }
)
_CONTAINER_SECURITY = frozenset(
    {
        "allowPrivilegeEscalation",
        "capabilities",
        "privileged",
        "readOnlyRootFilesystem",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "seccompProfile",
    }
)
_USUAL_PROC = "Default"


def unsupported(pod: Obj, no_mounts: str) -> str:
    """What the pod requests that a container cannot have: the first field and why; empty if it can run. `no_mounts`:
    why this user cannot mount file systems; empty if it can."""
    return next(_unsupported(pod, no_mounts), "")


def _unsupported(pod: Obj, no_mounts: str) -> Iterator[str]:
    spec = pod["spec"]
    yield from unsupported_fields(pod, _WHAT, _CONTAINER)
    if (spec.get("resources") or {}).get("limits"):
        yield f"spec.resources.limits is not supported for {_WHAT}; set the limits of each container"
    if spec.get("dnsPolicy") == "None":
        yield f"spec.dnsPolicy: None is not supported for {_WHAT}: they have the name servers of the node"
    yield from _security(spec.get("securityContext") or {}, "spec.securityContext", _POD_SECURITY)
    yield from unsupported_media(pod, no_mounts)
    for where, container in containers_of(pod):
        own = container.get("securityContext") or {}
        yield from _security(own, f"{where}.securityContext", _CONTAINER_SECURITY)
        for mount in container.get("volumeMounts") or ():
            if mount.get("recursiveReadOnly") not in (None, "Disabled"):
                yield f"{where}.volumeMounts[{mount['name']}]: recursiveReadOnly is not supported"
            if no_mounts and any(mount.get(field) for field in ("subPath", "subPathExpr")):
                yield f"{where}.volumeMounts[{mount['name']}]: subPath {no_mounts}"


def _security(context: Obj, where: str, supported: frozenset[str]) -> Iterator[str]:
    for field, value in context.items():
        is_usual = field == "procMount" and value == _USUAL_PROC
        if value and field not in supported and not is_usual:
            yield f"{where}.{field} is not supported for {_WHAT}"
