"""Builds the objects of the driver: one DaemonSet with NVIDIA's image, or one per kernel for precompiled drivers.

The driver is replaced only when its pod is deleted, because the driver upgrades node by node decide when that happens.
"""

from __future__ import annotations

import re

import msgspec

from shoal.operator.components.build import VALIDATIONS, Building, Pool, access, daemon_set
from shoal.operator.components.component import DRIVER
from shoal.operator.components.facts import KERNEL
from shoal.operator.components.images import nvidia_image
from shoal.operator.components.pods import (
    NODE_NAME,
    OWN_NAMESPACE,
    ContainerParts,
    Env,
    FromField,
    Mount,
    PodParts,
    with_env,
)
from shoal.operator.policy.operands import Obj, Operand
from shoal.operator.policy.spec import ClusterPolicySpec, DriverFields, Probe
from shoal.units.errors import UserError, Where

READY = f"{VALIDATIONS}/.driver-ctr-ready"
_NVIDIA = Mount("run-nvidia", "/run/nvidia", "/run/nvidia", "DirectoryOrCreate", propagation="Bidirectional")
_HOST = Mount("host-root", "/host", "/", is_read_only=True, propagation="HostToContainer")
_SYS = Mount("host-sys", "/sys", "/sys", "Directory")
_MOUNTS = (
    _NVIDIA,
    Mount("run-nvidia-fabricmanager", "/run/nvidia-fabricmanager", "/run/nvidia-fabricmanager", "DirectoryOrCreate"),
    Mount("run-nvidia-topologyd", "/run/nvidia-topologyd", "/run/nvidia-topologyd", "DirectoryOrCreate"),
    Mount("var-log", "/var/log", "/var/log"),
    Mount("dev-log", "/dev/log", "/dev/log"),
    Mount("host-os-release", "/host-etc/os-release", "/etc/os-release", is_read_only=True),
    Mount(
        "firmware-search-path",
        "/sys/module/firmware_class/parameters/path",
        "/sys/module/firmware_class/parameters/path",
    ),
    Mount(
        "sysfs-memory-online",
        "/sys/devices/system/memory/auto_online_blocks",
        "/sys/devices/system/memory/auto_online_blocks",
    ),
    Mount("nv-firmware", "/lib/firmware", "/run/nvidia/driver/lib/firmware", "DirectoryOrCreate"),
)
_MOFED = (
    Mount(
        "mlnx-ofed-usr-src",
        "/run/mellanox/drivers/usr/src",
        "/run/mellanox/drivers/usr/src",
        "DirectoryOrCreate",
        propagation="HostToContainer",
    ),
    Mount(
        "mlnx-ofed",
        "/run/mellanox/drivers",
        "/run/mellanox/drivers",
        "DirectoryOrCreate",
        propagation="HostToContainer",
    ),
)
_REPOSITORIES = {"ubuntu": "/etc/apt/sources.list.d", "debian": "/etc/apt/sources.list.d"}
_USUAL_REPOSITORIES = "/etc/yum.repos.d"
_CERTIFICATES = {"ubuntu": "/usr/local/share/ca-certificates", "debian": "/usr/local/share/ca-certificates"}
_USUAL_CERTIFICATES = "/etc/pki/ca-trust/extracted/pem"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]")
_LONGEST_LABEL = 63
_VOID: Env = {"NVIDIA_VISIBLE_DEVICES": "void"}


class DriverPool(msgspec.Struct, frozen=True):
    """The nodes of one DaemonSet of the driver."""

    system: str
    kernel: str = ""
    """Only for precompiled drivers."""

    def pool(self) -> Pool:
        if not self.kernel:
            return Pool()
        name = _NOT_IN_NAMES.sub("-", f"{self.kernel}-{self.system}".lower()).strip("-.")
        labels = {
            "nvidia.com/precompiled": "true",
            "nvidia.com/driver-kernel": self.kernel[:_LONGEST_LABEL].strip("-._"),
        }
        return Pool(f"-{name}", labels, {KERNEL: self.kernel})


def driver_objects(build: Building) -> list[Obj]:
    """Empty without nodes with GPUs, because the image depends on their operating system. Raises `UserError`."""
    if not build.spec.driver.enabled:
        return []
    rights = access(
        build,
        DRIVER,
        own=(("apps", "daemonsets", "get,list,watch"), ("", "pods", "get,list,watch")),
        everywhere=(
            ("", "nodes", "get,list,watch,patch,update"),
            ("", "pods", "get,list,watch,delete"),
            ("", "pods/eviction", "create"),
            ("apps", "daemonsets", "get,list,watch"),
        ),
    )
    if build.spec.driver.use_nvidia_driver_crd:
        # The DaemonSets are those of the NVIDIADrivers.
        return rights
    return rights + [driver_daemon_set(build, one, one.pool()) for one in driver_pools(build)]


def driver_pools(build: Building) -> list[DriverPool]:
    if build.spec.driver.use_precompiled:
        return [DriverPool(system, kernel) for kernel, system in build.facts.kernels]
    return [DriverPool(one) for one in build.facts.systems[:1]]


def driver_daemon_set(build: Building, pool: DriverPool, nodes: Pool) -> Obj:
    driver, modules = build.spec.driver, [one for _, _, one in _modules(build.spec)]
    secrets = [name for one in (driver, driver.manager, *modules) for name in one.image_pull_secrets]
    pod = PodParts(
        init=(_manager(build),),
        containers=(_driver(build, pool), *_peer_memory(build, pool), *_side_modules(build, pool)),
        sees_host_processes=True,
        is_on_host_network=any(one.host_network for one in (driver, *modules)),
        pull_secrets=tuple(secrets),
    )
    return daemon_set(build, DRIVER, pod, "OnDelete", nodes)


def _driver(build: Building, pool: DriverPool) -> ContainerParts:
    driver = build.spec.driver
    env: Env = {
        **_VOID,
        **NODE_NAME,
        "NODE_IP": FromField("status.hostIP"),
        "KERNEL_MODULE_TYPE": driver.kernel_module_type,
    }
    if driver.use_open_kernel_modules:
        env = {**env, "KERNEL_MODULE_TYPE": "open"}
    if driver.rdma.enabled:
        env = {**env, "GPU_DIRECT_RDMA_ENABLED": "true", "USE_HOST_MOFED": _word(driver.rdma.use_host_mofed)}
    if pool.kernel:
        env = {**env, "KERNEL_VERSION": pool.kernel}
    more: Obj = {
        "startupProbe": _probe(_STARTUP, driver.startup_probe, _started()),
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", f"rm -f {READY}"]}}},
    }
    for name, probe in (("livenessProbe", driver.liveness_probe), ("readinessProbe", driver.readiness_probe)):
        if probe != Probe():
            more[name] = _probe(_RUNNING, probe, ["sh", "-c", "nvidia-smi"])
    if driver.secret_env:
        more["envFrom"] = [{"secretRef": {"name": driver.secret_env}}]
    mounts = (*_MOUNTS, *(_MOFED if driver.rdma.enabled else ()), *_configuration(build, pool))
    return ContainerParts(
        name="nvidia-driver-ctr",
        image=_image(build.spec, pool),
        pull_policy=driver.image_pull_policy or "IfNotPresent",
        command=("nvidia-driver",),
        args=driver.args or ("init",),
        env=with_env(env, driver.env),
        mounts=mounts,
        resources=driver.resources,
        more=more,
    )


_STARTUP = Probe(
    initial_delay_seconds=60, timeout_seconds=60, period_seconds=10, success_threshold=1, failure_threshold=120
)
_RUNNING = Probe(
    initial_delay_seconds=0, timeout_seconds=10, period_seconds=30, success_threshold=1, failure_threshold=3
)


def _started() -> list[str]:
    return ["sh", "-c", f"nvidia-smi && touch {READY}"]


def _probe(usual: Probe, given: Probe, command: list[str]) -> Obj:
    numbers = {one.encode_name: getattr(given, one.name) for one in msgspec.structs.fields(Probe)}
    usually = {one.encode_name: getattr(usual, one.name) for one in msgspec.structs.fields(Probe)}
    return {"exec": {"command": command}, **usually, **{name: one for name, one in numbers.items() if one is not None}}


def _image(spec: ClusterPolicySpec, pool: DriverPool) -> str:
    image = nvidia_image("driver", spec.driver)
    if not pool.system and not image.is_pinned:
        raise UserError(
            "the operating system of the nodes with GPUs is unknown, so that no driver image can be chosen",
            where=Where(path="spec.driver.version"),
            fix="set driver.version to a digest (sha256:...), or run node feature discovery",
        )
    kernel = f"-{pool.kernel}" if pool.kernel else ""
    return image.text(f"{kernel}-{pool.system}")


def _manager(build: Building) -> ContainerParts:
    manager, policy = build.spec.driver.manager, build.spec.driver.upgrade_policy
    env: Env = {
        **NODE_NAME,
        **_VOID,
        "ENABLE_GPU_POD_EVICTION": "true",
        "ENABLE_AUTO_DRAIN": "false",
        "DRAIN_USE_FORCE": _word(policy.drain.force),
        "DRAIN_TIMEOUT_SECONDS": f"{policy.drain.timeout_seconds}s",
        "DRAIN_DELETE_EMPTYDIR_DATA": _word(policy.drain.delete_empty_dir),
        "OPERATOR_NAMESPACE": OWN_NAMESPACE,
    }
    return ContainerParts(
        name="k8s-driver-manager",
        image=nvidia_image("driver.manager", manager).text(),
        pull_policy=manager.image_pull_policy or "IfNotPresent",
        command=("driver-manager",),
        args=("uninstall_driver",),
        env=with_env(env, manager.env),
        mounts=(_NVIDIA, _HOST, _SYS),
    )


def _peer_memory(build: Building, pool: DriverPool) -> tuple[ContainerParts, ...]:
    driver = build.spec.driver
    if not driver.rdma.enabled:
        return ()
    return (_reloading(build, pool, "nvidia-peermem-ctr", "reload_nvidia_peermem", driver),)


def _reloading(build: Building, pool: DriverPool, name: str, task: str, driver: DriverFields) -> ContainerParts:
    return ContainerParts(
        name=name,
        image=_image(build.spec, pool),
        pull_policy=driver.image_pull_policy or "IfNotPresent",
        command=("nvidia-driver",),
        args=(task,),
        env={**_VOID, "USE_HOST_MOFED": _word(driver.rdma.use_host_mofed)},
        mounts=(_NVIDIA, *_MOFED, Mount("var-log", "/var/log", "/var/log"), Mount("dev-log", "/dev/log", "/dev/log")),
    )


def _side_modules(build: Building, pool: DriverPool) -> list[ContainerParts]:
    """The modules of GPUDirect Storage and GDRCopy, which are loaded beside the driver."""
    return [
        ContainerParts(
            name=name,
            image=nvidia_image(component, operand).text(f"-{pool.system}" if pool.system else ""),
            pull_policy=operand.image_pull_policy or "IfNotPresent",
            command=("bash", "-xc"),
            args=operand.args or (_module_start(name),),
            env=with_env(_VOID, operand.env),
            mounts=(_NVIDIA, Mount("var-log", "/var/log", "/var/log"), Mount("dev-log", "/dev/log", "/dev/log")),
            resources=operand.resources,
        )
        for component, name, operand in _modules(build.spec)
    ]


def _modules(spec: ClusterPolicySpec) -> list[tuple[str, str, Operand]]:
    """Field, container and values of those that are enabled."""
    known = (("gds", "nvidia-fs-ctr", spec.gds), ("gdrcopy", "nvidia-gdrcopy-ctr", spec.gdrcopy))
    return [one for one in known if one[2].enabled]


def _module_start(container: str) -> str:
    wait = "until [ -d /run/nvidia/driver/usr/src ] && lsmod | grep nvidia; do sleep 10; done"
    return f"{wait}; exec {container.removesuffix('-ctr')}-driver install"


def _configuration(build: Building, pool: DriverPool) -> list[Mount]:
    """Files of the driver container that ConfigMaps and Secrets hold."""
    driver, family = build.spec.driver, pool.system.rstrip("0123456789.")
    found: list[Mount] = []
    if driver.repo_config.config_map_name:
        folder = _REPOSITORIES.get(family, _USUAL_REPOSITORIES)
        found += _files(build, "repo-config", driver.repo_config.config_map_name, folder)
    if driver.cert_config.name:
        found += _files(build, "cert-config", driver.cert_config.name, _CERTIFICATES.get(family, _USUAL_CERTIFICATES))
    if driver.kernel_module_config.name:
        found += _files(build, "kernel-module-config", driver.kernel_module_config.name, "/drivers")
    if driver.licensing_config.secret_name:
        secret = driver.licensing_config.secret_name
        found.append(
            Mount("licensing-config", "/drivers/gridd.conf", secret=secret, is_read_only=True, sub_path="gridd.conf")
        )
        if driver.licensing_config.nls_enabled:
            token = "client_configuration_token.tok"  # noqa: S105 - the name of a file
            path = f"/drivers/ClientConfigToken/{token}"
            found.append(Mount("licensing-config", path, secret=secret, is_read_only=True, sub_path=token))
    if driver.virtual_topology.config:
        name = "nvidia-topologyd.conf"
        found.append(
            Mount(
                "topology-config",
                f"/etc/nvidia/{name}",
                config_map=driver.virtual_topology.config,
                is_read_only=True,
                sub_path=name,
            )
        )
    return found


def _files(build: Building, volume: str, config_map: str, folder: str) -> list[Mount]:
    """One mount per key: a mount of the whole folder would hide what the image has there."""
    keys = build.facts.config_keys.get(config_map)
    if keys is None:
        raise UserError(
            f"ConfigMap {build.namespace}/{config_map}, which spec.driver names, not found",
            where=Where(path="spec.driver"),
            fix="create it in the namespace of the operator",
        )
    return [
        Mount(volume, f"{folder}/{key}", config_map=config_map, is_read_only=True, sub_path=key) for key in sorted(keys)
    ]


def _word(is_so: bool) -> str:
    return "true" if is_so else "false"


def config_maps(spec: ClusterPolicySpec) -> tuple[str, ...]:
    """The ConfigMaps whose keys become files of the driver container."""
    driver = spec.driver
    named = (driver.repo_config.config_map_name, driver.cert_config.name, driver.kernel_module_config.name)
    return tuple(one for one in named if one)
