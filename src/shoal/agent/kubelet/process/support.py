"""Finds what a pod requests and a process cannot have, so that it is refused and never ignored.

The mount paths of volumes are not refused: the folders are reachable below `$SHOAL_MOUNTS`, and by a variable for each
volume.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from shoal.agent.kubelet.supported_fields import containers_of, unsupported_fields, unsupported_media

Obj = dict[str, Any]
RUNTIME_CLASS = "process"
LABEL, ALLOWED = "shoal.dev/process-pods", "allowed"

_HARMLESS = frozenset(
    {"privileged", "runAsNonRoot", "runAsUser", "runAsGroup", "readOnlyRootFilesystem", "allowPrivilegeEscalation"}
)
_WHAT = "process pods"
_TERMINATION_LOG = "/dev/termination-log"


class ProcessUser(msgspec.Struct, frozen=True):
    """The user whose processes pods become."""

    uid: int
    gid: int


def unsupported(pod: Obj, user: ProcessUser, no_mounts: str) -> str:
    """What the pod requests that a process cannot have: the first field and why; empty if it can run. `no_mounts`: why
    this user cannot mount file systems; empty if it can."""
    return next(_unsupported(pod, user, no_mounts), "")


def _unsupported(pod: Obj, user: ProcessUser, no_mounts: str) -> Iterator[str]:
    spec = pod["spec"]
    yield from unsupported_fields(pod, _WHAT)
    yield from _security(spec.get("securityContext") or {}, "spec.securityContext", user)
    yield from unsupported_media(pod, no_mounts)
    for where, container in containers_of(pod):
        yield from _container(container, where, user)


def _container(container: Obj, where: str, user: ProcessUser) -> Iterator[str]:
    if not container.get("command"):
        yield f"{where}.command is required: a process pod has no image that could define it"
    if container.get("terminationMessagePath", _TERMINATION_LOG) != _TERMINATION_LOG:
        yield f"{where}.terminationMessagePath is not supported; write to the file $SHOAL_TERMINATION_LOG"
    for mount in container.get("volumeMounts") or ():
        if mount.get("mountPropagation"):
            yield f"{where}.volumeMounts[{mount['name']}]: mountPropagation is not supported"
    yield from _security(container.get("securityContext") or {}, f"{where}.securityContext", user)


def _security(context: Obj, where: str, user: ProcessUser) -> Iterator[str]:
    for field, value in context.items():
        if value and field not in _HARMLESS:
            yield f"{where}.{field} is not supported for {_WHAT}"
    for field, own in (("runAsUser", user.uid), ("runAsGroup", user.gid)):
        if context.get(field) not in (None, own):
            wanted = f"{where}.{field}: {context[field]}"
            yield f"{wanted} is not possible: process pods run as user {own}, which started Shoal"
    if context.get("runAsNonRoot") and user.uid == 0:
        yield f"{where}.runAsNonRoot is not possible: process pods run as root, which started Shoal"
    for field in ("privileged", "readOnlyRootFilesystem"):
        if context.get(field):
            yield f"{where}.{field} is not supported for {_WHAT}"
    if context.get("allowPrivilegeEscalation") is False:
        yield f"{where}.allowPrivilegeEscalation: false is not enforced for {_WHAT}"
