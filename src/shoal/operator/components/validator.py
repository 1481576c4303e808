"""Builds the objects of the validator, which tests the layers of a node in their order and marks those that work."""

from __future__ import annotations

from shoal.operator.components.build import (
    VALIDATIONS,
    Building,
    access,
    daemon_set,
    image_of,
    pull_policy_of,
    pull_secrets_of,
    runs_own_image,
    validations_mount,
)
from shoal.operator.components.component import SANDBOX_VALIDATOR, VALIDATOR, Component
from shoal.operator.components.images import nvidia_image
from shoal.operator.components.pods import NODE_NAME, OWN_NAMESPACE, ContainerParts, Env, Mount, PodParts, with_env
from shoal.operator.policy.operands import EnvVar, Obj

_LIBRARIES = ":".join(
    f"{root}/{folder}"
    for root in ("/run/nvidia/driver", "/host")
    for folder in ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64")
)
"""Where the driver's libraries are before the toolkit gives them to containers."""
_ALL = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "all"}


def validator_objects(build: Building) -> list[Obj]:
    if not build.spec.validator.enabled:
        return []
    rules = (
        ("", "pods", "get,list,watch,create,update,patch,delete"),
        ("apps", "daemonsets", "get,list,watch"),
    )
    pod = PodParts(
        init=(*driver_validation(build), *_layer_validations(build)),
        containers=(_kept_running(build),),
        runtime_class=build.spec.operator.runtime_class,
        is_on_host_network=build.spec.validator.host_network,
        pull_secrets=pull_secrets_of(build, build.spec.validator),
    )
    rights = access(build, VALIDATOR, own=rules, everywhere=(("", "nodes", "get,list,watch"),))
    return [*rights, daemon_set(build, VALIDATOR, pod)]


def sandbox_validator_objects(build: Building) -> list[Obj]:
    """For nodes whose GPUs are given to virtual machines."""
    if not build.spec.sandbox_workloads.enabled or not build.spec.validator.enabled:
        return []
    validator = build.spec.validator
    layers = (
        ("cc-manager", validator.cc_manager.env),
        ("vfio-pci", validator.vfio_pci.env),
        ("vgpu-manager", validator.vgpu_manager.env),
        ("vgpu-devices", validator.vgpu_devices.env),
    )
    pod = PodParts(
        init=tuple(_nvidia_layer(build, layer, env) for layer, env in layers),
        containers=(_nvidia_sleeper(build, SANDBOX_VALIDATOR),),
        pull_secrets=validator.image_pull_secrets,
    )
    rights = access(build, SANDBOX_VALIDATOR, everywhere=(("", "nodes", "get,list,watch"),))
    return [*rights, daemon_set(build, SANDBOX_VALIDATOR, pod)]


def driver_validation(build: Building) -> tuple[ContainerParts, ...]:
    """Waits for the driver and marks it as ready, for the pods that start before the toolkit works."""
    validator = build.spec.validator
    if not validator.enabled:
        return ()
    if not runs_own_image(validator):
        return (_nvidia_layer(build, "driver", validator.driver.env),)
    return (_own_layer(build, "driver", validator.driver.env, _driver_env(build), _driver_mounts(build)),)


def _driver_env(build: Building) -> Env:
    return {"LD_LIBRARY_PATH": _LIBRARIES, "DRIVER_INSTALL_DIR": build.spec.host_paths.driver_install_dir}


def _layer_validations(build: Building) -> list[ContainerParts]:
    validator = build.spec.validator
    layers: list[tuple[str, tuple[EnvVar, ...]]] = [
        ("toolkit", validator.toolkit.env),
        ("cuda", validator.cuda.env),
        ("plugin", validator.plugin.env),
    ]
    if build.spec.gds.enabled:
        layers.insert(0, ("nvidia-fs", ()))
    if build.spec.gdrcopy.enabled:
        layers.insert(0, ("gdrcopy", ()))
    if runs_own_image(validator):
        plugins = f"{build.spec.host_paths.kubelet_root_dir}/device-plugins"
        mounts = (
            Mount("device-plugins", "/var/lib/kubelet/device-plugins", plugins, is_read_only=True),
            *_cdi_mounts(),
        )
        own = [one for one in layers if one[0] in ("toolkit", "cuda", "plugin")]
        return [_own_layer(build, layer, env, _ALL, mounts) for layer, env in own]
    return [_nvidia_layer(build, layer, env) for layer, env in layers]


def _kept_running(build: Building) -> ContainerParts:
    """The container by which the pod stays ready while the layers work."""
    validator = build.spec.validator
    if not runs_own_image(validator):
        return _nvidia_sleeper(build, VALIDATOR)
    plugins = f"{build.spec.host_paths.kubelet_root_dir}/device-plugins"
    return ContainerParts(
        name="nvidia-operator-validator",
        image=build.settings.image,
        pull_policy=pull_policy_of(build, validator),
        args=(
            *("agent", "validate", "--layers", "driver,toolkit,plugin", "--watch"),
            *("--ready-dir", VALIDATIONS, *validator.args),
        ),
        env=with_env({**NODE_NAME, **_ALL}, validator.env),
        mounts=(
            validations_mount(is_read_only=False),
            Mount("device-plugins", "/var/lib/kubelet/device-plugins", plugins, is_read_only=True),
            *_cdi_mounts(),
        ),
        resources=validator.resources,
    )


def _own_layer(
    build: Building, layer: str, env: tuple[EnvVar, ...], usual: Env, mounts: tuple[Mount, ...]
) -> ContainerParts:
    validator = build.spec.validator
    return ContainerParts(
        name=f"{layer}-validation",
        image=build.settings.image,
        pull_policy=pull_policy_of(build, validator),
        args=("agent", "validate", "--layers", layer, "--wait", "--ready-dir", VALIDATIONS),
        env=with_env({**NODE_NAME, **usual}, env),
        mounts=(validations_mount(is_read_only=False), *mounts),
    )


def _nvidia_layer(build: Building, layer: str, env: tuple[EnvVar, ...]) -> ContainerParts:
    validator = build.spec.validator
    usual: Env = {
        **NODE_NAME,
        "WITH_WAIT": "true",
        "COMPONENT": layer,
        "OPERATOR_NAMESPACE": OWN_NAMESPACE,
        "VALIDATOR_IMAGE": image_of(build, VALIDATOR, validator),
        "VALIDATOR_IMAGE_PULL_POLICY": pull_policy_of(build, validator),
        "VALIDATOR_RUNTIME_CLASS": build.spec.operator.runtime_class,
        "MIG_STRATEGY": build.spec.mig.strategy,
    }
    return ContainerParts(
        name=f"{layer}-validation",
        image=_nvidia_image(build),
        pull_policy=pull_policy_of(build, validator),
        command=("sh", "-c"),
        args=("nvidia-validator",),
        env=with_env(usual, env),
        mounts=(validations_mount(is_read_only=False), *_driver_mounts(build)),
    )


def _nvidia_sleeper(build: Building, component: Component) -> ContainerParts:
    validator = build.spec.validator
    return ContainerParts(
        name=component.name,
        image=_nvidia_image(build),
        pull_policy=pull_policy_of(build, validator),
        command=("sh", "-c"),
        args=validator.args or ("echo all validations are successful; while true; do sleep 86400; done",),
        env=with_env({}, validator.env),
        mounts=(validations_mount(),),
        resources=validator.resources,
    )


def _nvidia_image(build: Building) -> str:
    return nvidia_image("validator", build.spec.validator).text()


def _driver_mounts(build: Building) -> tuple[Mount, ...]:
    paths = build.spec.host_paths
    return (
        Mount(
            "driver-install-dir",
            "/run/nvidia/driver",
            paths.driver_install_dir,
            "DirectoryOrCreate",
            propagation="HostToContainer",
        ),
        Mount("host-root", "/host", paths.root_fs, is_read_only=True, propagation="HostToContainer"),
        Mount("host-dev-char", "/host-dev-char", "/dev/char"),
    )


def _cdi_mounts() -> tuple[Mount, ...]:
    return (Mount("cdi-root", "/var/run/cdi", "/var/run/cdi", "DirectoryOrCreate"),)
