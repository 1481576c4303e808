"""Builds the objects of the components that give GPUs to virtual machines. All of them run NVIDIA's images."""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.operator.components.build import Building, Rule, access, daemon_set
from shoal.operator.components.component import (
    CC_MANAGER,
    KATA_MANAGER,
    KATA_PLUGIN,
    SANDBOX_PLUGIN,
    VFIO_MANAGER,
    VGPU_DEVICES,
    VGPU_MANAGER,
    Component,
)
from shoal.operator.components.images import nvidia_image
from shoal.operator.components.pods import NODE_NAME, OWN_NAMESPACE, ContainerParts, Env, Mount, PodParts, with_env
from shoal.operator.policy.operands import Obj, Operand
from shoal.operator.policy.spec import ClusterPolicySpec

_NODES: tuple[Rule, ...] = (("", "nodes", "get,list,watch,patch,update"),)
_PODS: tuple[Rule, ...] = (("", "pods", "get,list,watch,delete"), ("", "pods/eviction", "create"))
_HOST = Mount("host-root", "/host", "/", is_read_only=True, propagation="HostToContainer")
_HOST_MOUNTS = (
    _HOST,
    Mount("host-sys", "/sys", "/sys", "Directory"),
    Mount("run-nvidia", "/run/nvidia", "/run/nvidia", "DirectoryOrCreate", propagation="Bidirectional"),
)


class SandboxPart(msgspec.Struct, frozen=True):
    """What differs between these components."""

    component: Component
    container: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    mode: str = ""
    """The mode of sandbox workloads in which it runs; empty: in all."""
    is_on_delete: bool = False


SANDBOX_PARTS: tuple[SandboxPart, ...] = (
    SandboxPart(
        VGPU_MANAGER, "nvidia-vgpu-manager-ctr", ("nvidia-driver",), ("init",), (*_NODES, *_PODS), is_on_delete=True
    ),
    SandboxPart(VGPU_DEVICES, "nvidia-vgpu-device-manager", ("nvidia-k8s-vgpu-dm",), rules=(*_NODES, *_PODS)),
    SandboxPart(VFIO_MANAGER, "nvidia-vfio-manager", ("vfio-manager",), ("bind", "--all"), (*_NODES, *_PODS)),
    SandboxPart(SANDBOX_PLUGIN, "nvidia-sandbox-device-plugin-ctr", mode="kubevirt"),
    SandboxPart(KATA_PLUGIN, "nvidia-kata-sandbox-device-plugin-ctr", mode="kata"),
    SandboxPart(KATA_MANAGER, "nvidia-kata-manager", rules=_NODES),
    SandboxPart(CC_MANAGER, "nvidia-cc-manager", rules=(*_NODES, *_PODS)),
)


def sandbox_objects(build: Building, part: SandboxPart) -> list[Obj]:
    sandbox, operand = build.spec.sandbox_workloads, sandbox_operand(build.spec, part.component)
    if not sandbox.enabled or not operand.enabled or part.mode not in ("", sandbox.mode):
        return []
    container = ContainerParts(
        name=part.container,
        image=nvidia_image(part.component.field, operand).text(),
        pull_policy=operand.image_pull_policy or "IfNotPresent",
        command=part.command,
        args=operand.args or part.args,
        env=with_env({**NODE_NAME, "NAMESPACE": OWN_NAMESPACE, **_own_env(build, part.component)}, operand.env),
        mounts=(*_HOST_MOUNTS, *_own_mounts(build, part.component)),
        resources=operand.resources,
    )
    pod = PodParts(
        init=_manager(build, part.component),
        containers=(container,),
        sees_host_processes=True,
        is_on_host_network=operand.host_network,
        pull_secrets=operand.image_pull_secrets,
    )
    strategy: Literal["", "OnDelete"] = "OnDelete" if part.is_on_delete else ""
    rights = access(build, part.component, everywhere=part.rules)
    return [*rights, daemon_set(build, part.component, pod, strategy)]


def sandbox_operand(spec: ClusterPolicySpec, component: Component) -> Operand:
    operands: dict[str, Operand] = {
        "vgpuManager": spec.vgpu_manager,
        "vgpuDeviceManager": spec.vgpu_device_manager,
        "vfioManager": spec.vfio_manager,
        "sandboxDevicePlugin": spec.sandbox_device_plugin,
        "kataSandboxDevicePlugin": spec.kata_sandbox_device_plugin,
        "kataManager": spec.kata_manager,
        "ccManager": spec.cc_manager,
    }
    return operands[component.field]


def _own_env(build: Building, component: Component) -> Env:
    spec = build.spec
    if component == CC_MANAGER:
        return {"DEFAULT_CC_MODE": spec.cc_manager.default_mode}
    if component == VGPU_DEVICES:
        return {
            "CONFIG_FILE": "/vgpu-config/config.yaml",
            "DEFAULT_VGPU_CONFIG": spec.vgpu_device_manager.config.default,
        }
    if component == KATA_MANAGER:
        config = msgspec.json.encode(spec.kata_manager.config, order="sorted").decode()
        return {"KATA_CONFIG": config} if spec.kata_manager.config else {}
    return {}


def _own_mounts(build: Building, component: Component) -> tuple[Mount, ...]:
    kubelet, spec = build.spec.host_paths.kubelet_root_dir, build.spec
    if component in (SANDBOX_PLUGIN, KATA_PLUGIN):
        return (Mount("device-plugins", "/var/lib/kubelet/device-plugins", f"{kubelet}/device-plugins"),)
    if component == VGPU_DEVICES and spec.vgpu_device_manager.config.name:
        return (Mount("vgpu-config", "/vgpu-config", config_map=spec.vgpu_device_manager.config.name),)
    if component == VGPU_MANAGER and spec.vgpu_manager.kernel_module_config.name:
        name = spec.vgpu_manager.kernel_module_config.name
        return (Mount("kernel-module-config", "/drivers/kernel-module-config", config_map=name),)
    return ()


def _manager(build: Building, component: Component) -> tuple[ContainerParts, ...]:
    """The init container that removes the driver of containers from the GPUs."""
    managers = {
        VGPU_MANAGER: build.spec.vgpu_manager.driver_manager,
        VFIO_MANAGER: build.spec.vfio_manager.driver_manager,
    }
    manager = managers.get(component)
    if manager is None:
        return ()
    return (
        ContainerParts(
            name="k8s-driver-manager",
            image=nvidia_image("driver.manager", manager).text(),
            pull_policy=manager.image_pull_policy or "IfNotPresent",
            command=("driver-manager",),
            args=("uninstall_driver",),
            env=with_env(
                {**NODE_NAME, "NVIDIA_VISIBLE_DEVICES": "void", "OPERATOR_NAMESPACE": OWN_NAMESPACE}, manager.env
            ),
            mounts=_HOST_MOUNTS,
        ),
    )
