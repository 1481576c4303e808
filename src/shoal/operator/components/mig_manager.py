"""Builds the objects of the MIG manager, which applies the layout that a label of the node names."""

from __future__ import annotations

from shoal.operator.components.build import (
    Building,
    access,
    daemon_set,
    image_of,
    named,
    own_agent,
    pull_policy_of,
    pull_secrets_of,
    runs_own_image,
    waits_for,
)
from shoal.operator.components.component import MIG_MANAGER
from shoal.operator.components.pods import NODE_NAME, OWN_NAMESPACE, ContainerParts, Env, Mount, PodParts, with_env
from shoal.operator.policy.operands import Obj

DEFAULT_CLIENTS = "default-gpu-clients"
_LAYOUTS, _CLIENTS = "/mig-parted-config", "/gpu-clients"
_RULES = (
    ("", "nodes", "get,list,watch,patch,update"),
    ("", "pods", "get,list,watch,delete"),
    ("", "events", "create,patch"),
)


def mig_manager_objects(build: Building) -> list[Obj]:
    manager = build.spec.mig_manager
    if not manager.enabled:
        return []
    own = runs_own_image(manager)
    pod = PodParts(
        init=waits_for(build, "toolkit"),
        containers=(_own(build) if own else _nvidia(build),),
        runtime_class=build.spec.operator.runtime_class,
        sees_host_processes=True,
        is_on_host_network=manager.host_network,
        pull_secrets=pull_secrets_of(build, manager),
    )
    found = access(build, MIG_MANAGER, everywhere=_RULES)
    if not own and not manager.gpu_clients_config.name:
        clients = named("v1", "ConfigMap", DEFAULT_CLIENTS, build.namespace, MIG_MANAGER.name)
        clients["data"] = {"clients.yaml": "version: v1\nsystemd-services: []\n"}
        found.append(clients)
    return [*found, daemon_set(build, MIG_MANAGER, pod)]


def _own(build: Building) -> ContainerParts:
    """Without a ConfigMap the layouts are generated for the GPUs of the node."""
    manager = build.spec.mig_manager
    env: Env = {**NODE_NAME, **_visible(), "DEFAULT_GPU_CLIENTS_NAMESPACE": OWN_NAMESPACE}
    mounts: tuple[Mount, ...] = (Mount("host-root", "/host", build.spec.host_paths.root_fs),)
    if manager.config.name:
        env = {**env, "CONFIG_FILE": f"{_LAYOUTS}/config.yaml"}
        mounts = (*mounts, Mount("mig-parted-config", _LAYOUTS, config_map=manager.config.name))
    return own_agent(build, "nvidia-mig-manager", manager, ("mig", "run"), with_env(env, manager.env), mounts)


def _nvidia(build: Building) -> ContainerParts:
    manager = build.spec.mig_manager
    env: Env = {
        **NODE_NAME,
        **_visible(),
        "OPERATOR_NAMESPACE": OWN_NAMESPACE,
        "DEFAULT_GPU_CLIENTS_NAMESPACE": OWN_NAMESPACE,
        "GPU_CLIENTS_FILE": f"{_CLIENTS}/clients.yaml",
        "HOST_ROOT_MOUNT": "/host",
        "HOST_NVIDIA_DIR": "/usr/local/nvidia",
        "WITH_SHUTDOWN_HOST_GPU_CLIENTS": "false",
        "CDI_ENABLED": "true" if build.spec.cdi.enabled else "false",
    }
    clients = manager.gpu_clients_config.name or DEFAULT_CLIENTS
    mounts: tuple[Mount, ...] = (
        Mount("host-root", "/host", build.spec.host_paths.root_fs, propagation="HostToContainer"),
        Mount("host-sys", "/sys", "/sys", "Directory"),
        Mount("gpu-clients", _CLIENTS, config_map=clients),
        Mount(
            "driver-install-dir",
            "/driver-root",
            build.spec.host_paths.driver_install_dir,
            "DirectoryOrCreate",
            propagation="HostToContainer",
        ),
        Mount("cdi-root", "/var/run/cdi", "/var/run/cdi", "DirectoryOrCreate"),
    )
    if manager.config.name:
        env = {**env, "CONFIG_FILE": f"{_LAYOUTS}/config.yaml"}
        mounts = (*mounts, Mount("mig-parted-config", _LAYOUTS, config_map=manager.config.name))
    return ContainerParts(
        name="nvidia-mig-manager",
        image=image_of(build, MIG_MANAGER, manager),
        pull_policy=pull_policy_of(build, manager),
        command=("nvidia-mig-manager",),
        args=manager.args,
        env=with_env(env, manager.env),
        mounts=mounts,
        resources=manager.resources,
    )


def _visible() -> dict[str, str]:
    return {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "all", "NVIDIA_MIG_CONFIG_DEVICES": "all"}
