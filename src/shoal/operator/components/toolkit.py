"""Builds the objects of NVIDIA's container toolkit, which configures the container runtime of the host."""

from __future__ import annotations

from shoal.operator.components.build import VALIDATIONS, Building, access, daemon_set, validations_mount
from shoal.operator.components.component import TOOLKIT
from shoal.operator.components.images import nvidia_image
from shoal.operator.components.pods import NODE_NAME, ContainerParts, Env, Mount, PodParts, with_env
from shoal.operator.components.validator import driver_validation
from shoal.operator.policy.operands import Obj

_USUAL_RUNTIME = "containerd"
_CONFIG = {
    "containerd": ("CONTAINERD_CONFIG", "/etc/containerd/config.toml"),
    "crio": ("CRIO_CONFIG", "/etc/crio/crio.conf.d/99-nvidia.conf"),
    "docker": ("DOCKER_CONFIG", "/etc/docker/daemon.json"),
}
_SOCKET = {
    "containerd": ("CONTAINERD_SOCKET", "/run/containerd/containerd.sock"),
    "docker": ("DOCKER_SOCKET", "/var/run/docker.sock"),
}
_START = (
    f"until [ -f {VALIDATIONS}/driver-ready ]; do echo waiting for the driver; sleep 5; done; "
    f"set -o allexport; . {VALIDATIONS}/driver-ready; exec nvidia-toolkit"
)
_CDI_FOLDER = "/var/run/cdi"


def toolkit_objects(build: Building) -> list[Obj]:
    toolkit = build.spec.toolkit
    if not toolkit.enabled:
        return []
    pod = PodParts(
        init=driver_validation(build),
        containers=(_toolkit(build),),
        sees_host_processes=True,
        is_on_host_network=toolkit.host_network,
        pull_secrets=toolkit.image_pull_secrets,
    )
    return [*access(build, TOOLKIT, own=(("apps", "daemonsets", "get,list,watch"),)), daemon_set(build, TOOLKIT, pod)]


def runtime_of(build: Building) -> str:
    """The container runtime that is configured: that of the nodes, or the default of the policy."""
    return build.facts.runtime or build.spec.operator.default_runtime or _USUAL_RUNTIME


def _toolkit(build: Building) -> ContainerParts:
    toolkit, paths, runtime = build.spec.toolkit, build.spec.host_paths, runtime_of(build)
    env: Env = {
        **NODE_NAME,
        "ROOT": toolkit.install_dir,
        "NVIDIA_CONTAINER_RUNTIME_MODES_CDI_DEFAULT_KIND": "management.nvidia.com/gpu",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "TOOLKIT_PID_FILE": "/run/nvidia/toolkit/toolkit.pid",
        "RUNTIME": runtime,
        "NVIDIA_RUNTIME_NAME": build.spec.operator.runtime_class,
    }
    if build.spec.cdi.enabled:
        env = {**env, "CDI_ENABLED": "true", "NVIDIA_CONTAINER_RUNTIME_MODE": "cdi", "CRIO_CONFIG_MODE": "config"}
    if build.spec.cdi.nri_plugin_enabled:
        env = {**env, "ENABLE_NRI_PLUGIN": "true"}
    env = with_env(env, toolkit.env)
    return ContainerParts(
        name="nvidia-container-toolkit-ctr",
        image=nvidia_image("toolkit", toolkit).text(),
        pull_policy=toolkit.image_pull_policy or "IfNotPresent",
        command=("/bin/sh", "-c"),
        args=toolkit.args or (_START,),
        env={**env, **_inside(env, runtime)},
        mounts=(
            Mount("nvidia-run-path", "/run/nvidia", "/run/nvidia", "DirectoryOrCreate", propagation="HostToContainer"),
            validations_mount(),
            Mount("toolkit-root", "/run/nvidia/toolkit", "/run/nvidia/toolkit", "DirectoryOrCreate"),
            Mount("toolkit-install-dir", toolkit.install_dir, toolkit.install_dir, "DirectoryOrCreate"),
            Mount(
                "crio-hooks", "/usr/share/containers/oci/hooks.d", "/run/containers/oci/hooks.d", "DirectoryOrCreate"
            ),
            Mount("host-root", "/host", paths.root_fs, is_read_only=True, propagation="HostToContainer"),
            Mount(
                "driver-install-dir",
                "/driver-root",
                paths.driver_install_dir,
                "DirectoryOrCreate",
                propagation="HostToContainer",
            ),
            Mount("cdi-root", _CDI_FOLDER, _CDI_FOLDER, "DirectoryOrCreate"),
            *_runtime_mounts(env, runtime),
        ),
        resources=toolkit.resources,
    )


def _runtime_files(env: Env, runtime: str) -> list[tuple[str, str, str]]:
    """Variable, path on the host and path in the container of the files of the runtime."""
    found = []
    for table, folder in ((_CONFIG, "/runtime/config-dir"), (_SOCKET, "/runtime/sock-dir")):
        if runtime in table:
            variable, usual = table[runtime]
            path = str(env.get(variable, usual))
            found.append((variable, path, f"{folder}/{path.rpartition('/')[2]}"))
    return found


def _inside(env: Env, runtime: str) -> dict[str, str]:
    """The variables name files of the host; the container has them in other folders."""
    found = {variable: inside for variable, _, inside in _runtime_files(env, runtime)}
    config = next((one for one in found if one.endswith("_CONFIG")), "")
    socket = next((one for one in found if one.endswith("_SOCKET")), "")
    general = {"RUNTIME_CONFIG": found.get(config, ""), "RUNTIME_SOCKET": found.get(socket, "")}
    return {**found, **{name: value for name, value in general.items() if value}}


def _runtime_mounts(env: Env, runtime: str) -> list[Mount]:
    found = []
    for variable, host, inside in _runtime_files(env, runtime):
        name = variable.lower().replace("_", "-")
        folder = host.rpartition("/")[0] or "/"
        found.append(Mount(name, inside.rpartition("/")[0], folder, "DirectoryOrCreate"))
    return found
