"""Defines what a container has besides a command and an environment, and reads it from the pod's spec.

The values that a container leaves open are those of its pod, by Kubernetes' rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

Obj = dict[str, Any]
_HOST_NAME_BYTES = 63


class ContainerMount(msgspec.Struct, frozen=True):
    container_path: str
    host_path: Path
    is_read_only: bool = False
    propagation: str = "None"


class ContainerDevice(msgspec.Struct, frozen=True):
    container_path: str
    host_path: str
    permissions: str = "rw"


class SecurityOptions(msgspec.Struct, frozen=True):
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    is_never_root: bool = False
    added: tuple[str, ...] = ()
    """Capabilities."""
    dropped: tuple[str, ...] = ()
    is_privileged: bool = False
    is_read_only: bool = False
    """The root file system."""
    has_no_new_privileges: bool = False
    seccomp: str = "Unconfined"
    seccomp_file: str = ""


class HostPort(msgspec.Struct, frozen=True):
    """A port of the node that leads to a port of a container."""

    number: int
    container_number: int
    protocol: str = "TCP"
    address: str = ""


class PodSettings(msgspec.Struct, frozen=True):
    """What the containers of a pod share."""

    uid: str
    name: str
    namespace: str
    host_name: str
    handler: str = ""
    """Of the pod's RuntimeClass; empty: the usual one of the runtime."""
    is_host_network: bool = False
    is_host_pid: bool = False
    is_host_ipc: bool = False
    shares_processes: bool = False
    is_privileged: bool = False
    """Whether one of its containers is."""
    ports: tuple[HostPort, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class ContainerSettings(msgspec.Struct, frozen=True):
    pod: PodSettings
    image_id: str = ""
    args: tuple[str, ...] = ()
    mounts: tuple[ContainerMount, ...] = ()
    devices: tuple[ContainerDevice, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    security: SecurityOptions = SecurityOptions()
    has_stdin: bool = False
    has_stdin_once: bool = False
    has_terminal: bool = False


def pod_settings(pod: Obj, handler: str = "") -> PodSettings:
    spec, meta = pod["spec"], pod["metadata"]
    return PodSettings(
        uid=meta["uid"],
        name=meta["name"],
        namespace=meta["namespace"],
        host_name=str(spec.get("hostname") or meta["name"])[:_HOST_NAME_BYTES].rstrip("-."),
        handler=handler,
        is_host_network=bool(spec.get("hostNetwork")),
        is_host_pid=bool(spec.get("hostPID")),
        is_host_ipc=bool(spec.get("hostIPC")),
        shares_processes=bool(spec.get("shareProcessNamespace")),
        is_privileged=any((one.get("securityContext") or {}).get("privileged") for one in every_container(pod)),
        ports=tuple(_host_ports(pod)),
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
    )


def every_container(pod: Obj) -> Iterator[Obj]:
    yield from pod["spec"].get("initContainers") or ()
    yield from pod["spec"]["containers"]


def _host_ports(pod: Obj) -> Iterator[HostPort]:
    for container in every_container(pod):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                protocol, address = port.get("protocol") or "TCP", port.get("hostIP") or ""
                yield HostPort(int(port["hostPort"]), int(port["containerPort"]), protocol, address)


def security_of(pod: Obj, container: Obj) -> SecurityOptions:
    outer: Obj = pod["spec"].get("securityContext") or {}
    own: Obj = container.get("securityContext") or {}

    def chosen(field: str) -> Any:
        return outer.get(field) if own.get(field) is None else own[field]

    capabilities = own.get("capabilities") or {}
    seccomp = chosen("seccompProfile") or {}
    shared = outer.get("fsGroup")
    return SecurityOptions(
        user=chosen("runAsUser"),
        group=chosen("runAsGroup"),
        groups=(*(outer.get("supplementalGroups") or ()), *(() if shared is None else (shared,))),
        is_never_root=bool(chosen("runAsNonRoot")),
        added=tuple(capabilities.get("add") or ()),
        dropped=tuple(capabilities.get("drop") or ()),
        is_privileged=bool(own.get("privileged")),
        is_read_only=bool(own.get("readOnlyRootFilesystem")),
        has_no_new_privileges=own.get("allowPrivilegeEscalation") is False,
        seccomp=seccomp.get("type") or "Unconfined",
        seccomp_file=seccomp.get("localhostProfile") or "",
    )
