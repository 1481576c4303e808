"""The checks of the level `baseline`: what opens the node to a pod. Each says what it found, or None.

Order, words and version numbers follow the published Pod Security Standards; `levels.py` lists who checks when.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.embedded.apiserver.admission.pod_security.pod import SecuredPod, Violation, containers, plural, quoted
from shoal.embedded.apiserver.reading import Obj

_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")


def capabilities(pod: SecuredPod) -> Violation | None:
    names: list[str] = []
    found: set[str] = set()
    for name, _, security in pod.containers:
        extra = set((security.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES
        if extra:
            names.append(name)
            found |= extra
    return Violation("non-default capabilities", forbidden_capabilities(names, found)) if names else None


def forbidden_capabilities(names: list[str], found: set[str]) -> str:
    return f"{containers(names)} must not include {quoted(sorted(found))} in securityContext.capabilities.add"


def host_namespaces(pod: SecuredPod) -> Violation | None:
    found = [f"{field}=true" for field in _HOST_NAMESPACES if pod.spec.get(field)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def host_path_volumes(pod: SecuredPod) -> Violation | None:
    names = [str(volume["name"]) for volume in pod.spec.get("volumes") or () if volume.get("hostPath") is not None]
    if not names:
        return None
    return Violation("hostPath volumes", f"{plural(len(names), 'volume', 'volumes')} {quoted(names)}")


def host_ports(pod: SecuredPod) -> Violation | None:
    names: list[str] = []
    found: set[str] = set()
    for name, container, _ in pod.containers:
        ports = {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        if ports:
            names.append(name)
            found |= ports
    if not names:
        return None
    what = f"{plural(len(names), 'uses', 'use')} {plural(len(found), 'hostPort', 'hostPorts')}"
    return Violation("hostPort", f"{containers(names)} {what} {', '.join(sorted(found))}")


def host_probes(pod: SecuredPod) -> Violation | None:
    names: set[str] = set()
    found: set[str] = set()
    for name, container, _ in pod.containers:
        hosts = {host for handler in _handlers(container) for host in _hosts(handler)}
        if hosts:
            names.add(name)
            found |= hosts
    if not names:
        return None
    uses = plural(len(names), "uses", "use")
    what = plural(len(found), "probe or lifecycle host", "probe or lifecycle hosts")
    detail = f"{containers(sorted(names))} {uses} {what} {quoted(sorted(found))}"
    return Violation("probe or lifecycle host", detail)


def _handlers(container: Obj) -> Iterator[Obj]:
    lifecycle = container.get("lifecycle") or {}
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        yield container.get(field) or {}
    for field in ("postStart", "preStop"):
        yield lifecycle.get(field) or {}


def _hosts(handler: Obj) -> Iterator[str]:
    for field in ("httpGet", "tcpSocket"):
        host = (handler.get(field) or {}).get("host")
        if host:
            yield host


def privileged(pod: SecuredPod) -> Violation | None:
    names = [name for name, _, security in pod.containers if security.get("privileged")]
    if not names:
        return None
    return Violation("privileged", f"{containers(names)} must not set securityContext.privileged=true")


def proc_mount(pod: SecuredPod) -> Violation | None:
    names: list[str] = []
    found: set[str] = set()
    for name, _, security in pod.containers:
        mount = security.get("procMount")
        if mount is not None and mount != "Default":
            names.append(name)
            found.add(mount)
    if not names:
        return None
    return Violation(
        "procMount", f"{containers(names)} must not set securityContext.procMount to {quoted(sorted(found))}"
    )


def proc_mount_with_own_users(pod: SecuredPod) -> Violation | None:
    return None if pod.has_own_users else proc_mount(pod)
