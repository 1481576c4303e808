"""Builds the messages of the Container Runtime Interface from the settings of pods and containers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shoal.agent.kubelet.container_settings import (
    ContainerMount,
    ContainerSettings,
    HostPort,
    PodSettings,
    SecurityOptions,
)
from shoal.agent.kubelet.runtime import ContainerLimits, Launch, RunKey
from shoal.agent.protos import cri_pb2 as messages

_PERIOD_US, _LEAST_QUOTA_US = 100_000, 1_000
_LEAST_SHARES, _SHARES = 2, 1024
_BEST_EFFORT, _WITH_REQUESTS = 1000, 900
"""Scores by which the kernel ends containers before other processes when memory is short."""
_MASKED = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_PROPAGATIONS = {
    "None": messages.PROPAGATION_PRIVATE,
    "HostToContainer": messages.PROPAGATION_HOST_TO_CONTAINER,
    "Bidirectional": messages.PROPAGATION_BIDIRECTIONAL,
}
_SECCOMP = "/var/lib/kubelet/seccomp"
"""Where nodes have the profiles that pods name."""
_PROFILES = {
    "RuntimeDefault": messages.SecurityProfile.RuntimeDefault,
    "Unconfined": messages.SecurityProfile.Unconfined,
    "Localhost": messages.SecurityProfile.Localhost,
}


def sandbox_config(
    pod: PodSettings, logs: Path, labels: Mapping[str, str], *, attempt: int = 0, group: str = ""
) -> messages.PodSandboxConfig:
    """`group`: the cgroup of the pod, below the root of the hierarchies; empty: the runtime chooses."""
    return messages.PodSandboxConfig(
        metadata=messages.PodSandboxMetadata(name=pod.name, namespace=pod.namespace, uid=pod.uid, attempt=attempt),
        hostname="" if pod.is_host_network else pod.host_name,
        log_directory=str(logs),
        port_mappings=[] if pod.is_host_network else [_port(one) for one in pod.ports],
        labels={**pod.labels, **labels},
        annotations=pod.annotations,
        linux=messages.LinuxPodSandboxConfig(
            cgroup_parent=group,
            security_context=messages.LinuxSandboxSecurityContext(
                namespace_options=_namespaces(pod),
                privileged=pod.is_privileged,
                seccomp=messages.SecurityProfile(profile_type=messages.SecurityProfile.RuntimeDefault),
            ),
        ),
    )


def container_config(
    key: RunKey, launch: Launch, settings: ContainerSettings, labels: Mapping[str, str], processes: Mapping[str, str]
) -> messages.ContainerConfig:
    """`processes`: the values of the cgroup of version 2 that limit the number of processes."""
    resources = _resources(launch.limits)
    resources.unified.update(processes)
    return messages.ContainerConfig(
        metadata=messages.ContainerMetadata(name=key.container, attempt=key.attempt),
        image=messages.ImageSpec(image=launch.image),
        command=launch.command,
        args=settings.args,
        working_dir="" if launch.folder is None else str(launch.folder),
        envs=[messages.KeyValue(key=name, value=value) for name, value in launch.environment.items()],
        mounts=[_mount(one) for one in settings.mounts],
        devices=[
            messages.Device(container_path=one.container_path, host_path=one.host_path, permissions=one.permissions)
            for one in settings.devices
        ],
        labels=labels,
        log_path=log_path(key),
        stdin=settings.has_stdin,
        stdin_once=settings.has_stdin_once,
        tty=settings.has_terminal,
        linux=messages.LinuxContainerConfig(
            resources=resources, security_context=_security(settings.security, settings.pod)
        ),
        CDI_devices=[messages.CDIDevice(name=name) for name in settings.cdi_devices],
    )


def log_path(key: RunKey) -> str:
    """Below the folder of the pod's logs."""
    return f"{key.container}/{key.attempt}.log"


def _port(one: HostPort) -> messages.PortMapping:
    return messages.PortMapping(
        protocol=one.protocol,
        container_port=one.container_number,
        host_port=one.number,
        host_ip=one.address,
    )


def _namespaces(pod: PodSettings) -> messages.NamespaceOption:
    own = messages.POD if pod.shares_processes else messages.CONTAINER
    return messages.NamespaceOption(
        network=messages.NODE if pod.is_host_network else messages.POD,
        pid=messages.NODE if pod.is_host_pid else own,
        ipc=messages.NODE if pod.is_host_ipc else messages.POD,
    )


def _security(options: SecurityOptions, pod: PodSettings) -> messages.LinuxContainerSecurityContext:
    found = messages.LinuxContainerSecurityContext(
        capabilities=messages.Capability(add_capabilities=options.added, drop_capabilities=options.dropped),
        privileged=options.is_privileged,
        namespace_options=_namespaces(pod),
        readonly_rootfs=options.is_read_only,
        supplemental_groups=options.groups,
        no_new_privs=options.has_no_new_privileges,
        seccomp=messages.SecurityProfile(
            profile_type=_PROFILES[options.seccomp],
            localhost_ref=options.seccomp_file and f"{_SECCOMP}/{options.seccomp_file}",
        ),
    )
    if not options.is_privileged:
        found.masked_paths.extend(_MASKED)
        found.readonly_paths.extend(_READ_ONLY)
    if options.user is not None:
        found.run_as_user.value = options.user
    if options.group is not None:
        found.run_as_group.value = options.group
    return found


def _mount(one: ContainerMount) -> messages.Mount:
    return messages.Mount(
        container_path=one.container_path,
        host_path=str(one.host_path),
        readonly=one.is_read_only,
        propagation=_PROPAGATIONS[one.propagation],
    )


def _resources(limits: ContainerLimits) -> messages.LinuxContainerResources:
    found = messages.LinuxContainerResources(
        cpu_shares=max(limits.cpu_request_milli * _SHARES // 1000, _LEAST_SHARES),
        oom_score_adj=_WITH_REQUESTS if limits.cpu_request_milli or limits.memory_bytes else _BEST_EFFORT,
    )
    if limits.cpu_milli:
        quota = max(limits.cpu_milli * _PERIOD_US // 1000, _LEAST_QUOTA_US)
        found.cpu_period, found.cpu_quota = _PERIOD_US, quota
    if limits.memory_bytes:
        found.memory_limit_in_bytes = limits.memory_bytes
    return found
