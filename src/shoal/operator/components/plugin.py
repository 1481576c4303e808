"""Builds the objects of the device plugin, of feature discovery, and of NVIDIA's daemon for MPS.

The three read the same ConfigMap: a label of the node chooses a key of it, or else the default of the policy.
"""

from __future__ import annotations

from shoal.operator.components.build import (
    Building,
    access,
    daemon_set,
    image_of,
    own_agent,
    pull_policy_of,
    pull_secrets_of,
    runs_own_image,
    waits_for,
)
from shoal.operator.components.component import DISCOVERY, FEATURES, MPS, PLUGIN
from shoal.operator.components.pods import NODE_NAME, OWN_NAMESPACE, ContainerParts, Env, Mount, PodParts, with_env
from shoal.operator.policy.operands import Obj, Operand

_ALL: Env = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "all"}
_CHOICES = "/available-configs"
_CHOSEN = "/config/config.yaml"
_CONFIG_LABEL = "nvidia.com/device-plugin.config"
_CDI = Mount("cdi-root", "/var/run/cdi", "/var/run/cdi", "DirectoryOrCreate")
_MPS_CAPABLE = {"nvidia.com/mps.capable": "true"}
_AGENT_RULES = (
    ("", "nodes", "get,list,watch,patch"),
    ("", "nodes/status", "patch"),
    ("", "pods", "get,list,watch"),
    ("", "pods/status", "patch"),
    ("", "pods/devices", "update"),
    ("", "events", "create,patch"),
)


def plugin_objects(build: Building) -> list[Obj]:
    plugin = build.spec.device_plugin
    if not plugin.enabled:
        return []
    own = runs_own_image(plugin)
    rules = _AGENT_RULES if own else (("", "nodes", "get,list,watch"),)
    container = _own_plugin(build) if own else _nvidia_plugin(build)
    pod = _configured_pod(build, plugin, container, "nvidia-device-plugin")
    return [*access(build, PLUGIN, everywhere=rules), daemon_set(build, PLUGIN, pod)]


def mps_objects(build: Building) -> list[Obj]:
    """Shoal's device plugin starts the daemons itself."""
    plugin = build.spec.device_plugin
    if not plugin.enabled or runs_own_image(plugin) or not plugin.config.name:
        return []
    container = ContainerParts(
        name="mps-control-daemon-ctr",
        image=image_of(build, PLUGIN, plugin),
        pull_policy=pull_policy_of(build, plugin),
        command=("mps-control-daemon",),
        env={**_ALL, **NODE_NAME, **_strategy(build), "CONFIG_FILE": _CHOSEN, "MPS_ROOT": plugin.mps.root},
        mounts=(
            Mount("mps-root", "/mps", plugin.mps.root, "DirectoryOrCreate"),
            Mount("mps-shm", "/dev/shm", f"{plugin.mps.root}/shm", "DirectoryOrCreate"),  # noqa: S108
        ),
    )
    pod = _configured_pod(build, plugin, container, "mps-control-daemon")
    found = daemon_set(build, MPS, pod)
    found["spec"]["template"]["spec"]["nodeSelector"] |= _MPS_CAPABLE
    return [*access(build, MPS, everywhere=(("", "nodes", "get,list,watch"),)), found]


def feature_objects(build: Building) -> list[Obj]:
    gfd = build.spec.gfd
    if not gfd.enabled:
        return []
    own = runs_own_image(gfd)
    env: Env = {**_ALL, **NODE_NAME, **_strategy(build), "GFD_SLEEP_INTERVAL": "60s", "GFD_FAIL_ON_INIT_ERROR": "true"}
    if own:
        args = ("labels", "--write", "node")
        container = own_agent(
            build, "gpu-feature-discovery", gfd, args, with_env({**env, **_own_config(build)}, gfd.env)
        )
        rules = (("", "nodes", "get,list,watch,patch"),)
    else:
        container = ContainerParts(
            name="gpu-feature-discovery",
            image=image_of(build, FEATURES, gfd),
            pull_policy=pull_policy_of(build, gfd),
            command=("gpu-feature-discovery",),
            args=gfd.args,
            env=with_env(
                {**env, **_nvidia_config(build), "NAMESPACE": OWN_NAMESPACE, "USE_NODE_FEATURE_API": "false"}, gfd.env
            ),
            mounts=(
                Mount(
                    "output-dir",
                    "/etc/kubernetes/node-feature-discovery/features.d",
                    "/etc/kubernetes/node-feature-discovery/features.d",
                    "DirectoryOrCreate",
                ),
                Mount("host-sys", "/sys", "/sys", is_read_only=True),
            ),
            resources=gfd.resources,
        )
        rules = (("", "nodes", "get,list,watch"),)
    pod = _configured_pod(build, gfd, container, "gpu-feature-discovery")
    return [*access(build, FEATURES, everywhere=rules), daemon_set(build, FEATURES, pod)]


def discovery_objects(build: Building) -> list[Obj]:
    """Finds the nodes with GPUs by their PCI devices, where node feature discovery does not run."""
    if not build.settings.has_discovery:
        return []
    operand = Operand()
    args = ("labels", "--write", "node", "--pci-only")
    container = own_agent(build, "node-discovery", operand, args, NODE_NAME).without_privileges()
    pod = PodParts(containers=(container,), pull_secrets=build.settings.image_pull_secrets)
    rules = (("", "nodes", "get,list,watch,patch"),)
    return [*access(build, DISCOVERY, everywhere=rules), daemon_set(build, DISCOVERY, pod)]


def _own_plugin(build: Building) -> ContainerParts:
    plugin, kubelet = build.spec.device_plugin, build.spec.host_paths.kubelet_root_dir
    env = with_env({**_plugin_env(build), **_own_config(build)}, plugin.env)
    args = ("run", "--cdi-dir", _CDI.path)
    mounts = (
        Mount("device-plugins", "/var/lib/kubelet/device-plugins", f"{kubelet}/device-plugins", "Directory"),
        Mount(
            "pod-resources",
            "/var/lib/kubelet/pod-resources",
            f"{kubelet}/pod-resources",
            "Directory",
            is_read_only=True,
        ),
        _CDI,
        Mount("mps-root", plugin.mps.root, plugin.mps.root, "DirectoryOrCreate"),
        Mount("mps-shm", "/dev/shm", f"{plugin.mps.root}/shm", "DirectoryOrCreate"),  # noqa: S108 - of the daemons
    )
    return own_agent(build, "nvidia-device-plugin", plugin, args, env, mounts)


def _nvidia_plugin(build: Building) -> ContainerParts:
    plugin, kubelet = build.spec.device_plugin, build.spec.host_paths.kubelet_root_dir
    return ContainerParts(
        name="nvidia-device-plugin",
        image=image_of(build, PLUGIN, plugin),
        pull_policy=pull_policy_of(build, plugin),
        command=("nvidia-device-plugin",),
        args=plugin.args,
        env=with_env({**_plugin_env(build), **_nvidia_config(build)}, plugin.env),
        mounts=(
            Mount("device-plugins", "/var/lib/kubelet/device-plugins", f"{kubelet}/device-plugins"),
            Mount(
                "run-nvidia-driver",
                "/driver-root",
                build.spec.host_paths.driver_install_dir,
                "DirectoryOrCreate",
                propagation="HostToContainer",
            ),
            _CDI,
            Mount("mps-root", "/mps", plugin.mps.root, "DirectoryOrCreate"),
            Mount("mps-shm", "/dev/shm", f"{plugin.mps.root}/shm", "DirectoryOrCreate"),  # noqa: S108 - of the daemons
        ),
        resources=plugin.resources,
    )


def _plugin_env(build: Building) -> Env:
    env: Env = {
        **_ALL,
        **NODE_NAME,
        **_strategy(build),
        "PASS_DEVICE_SPECS": "true",
        "FAIL_ON_INIT_ERROR": "true",
        "DEVICE_LIST_STRATEGY": "envvar",
        "DEVICE_ID_STRATEGY": "uuid",
        "MPS_ROOT": build.spec.device_plugin.mps.root,
    }
    if not build.spec.cdi.enabled:
        return env
    return {**env, "CDI_ENABLED": "true", "DEVICE_LIST_STRATEGY": "cdi-annotations,cdi-cri"}


def _strategy(build: Building) -> dict[str, str]:
    return {"MIG_STRATEGY": build.spec.mig.strategy}


def _own_config(build: Building) -> dict[str, str]:
    """Shoal's agent reads the label of the node itself."""
    config = build.spec.device_plugin.config
    if not config.name:
        return {}
    return {"CONFIG_FILE": _CHOICES, "DEFAULT_CONFIG": config.default}


def _nvidia_config(build: Building) -> dict[str, str]:
    return {"CONFIG_FILE": _CHOSEN} if build.spec.device_plugin.config.name else {}


def _configured_pod(build: Building, operand: Operand, container: ContainerParts, process: str) -> PodParts:
    """`process`: the name of the program that must read a changed configuration."""
    config = build.spec.device_plugin.config
    own, wait = runs_own_image(operand), waits_for(build, "toolkit")
    usual = PodParts(
        init=wait,
        containers=(container,),
        runtime_class=build.spec.operator.runtime_class,
        is_on_host_network=operand.host_network,
        pull_secrets=pull_secrets_of(build, operand),
    )
    if not config.name:
        return usual
    choices = Mount("config-choices", _CHOICES, config_map=config.name)
    if own:
        return usual.with_containers(wait, (container.with_mounts(choices),))
    chosen = Mount("config", "/config")
    first, follower = (_config_manager(build, operand, process, one, (choices, chosen)) for one in (True, False))
    return usual.with_containers((*wait, first), (container.with_mounts(chosen), follower), shares_processes=True)


def _config_manager(
    build: Building,
    operand: Operand,
    process: str,
    is_first: bool,
    mounts: tuple[Mount, ...],
) -> ContainerParts:
    """The container that copies the chosen key of the ConfigMap, once or whenever the label changes."""
    env: Env = {
        **NODE_NAME,
        "ONESHOT": "true" if is_first else "false",
        "NODE_LABEL": _CONFIG_LABEL,
        "CONFIG_FILE_SRCDIR": _CHOICES,
        "CONFIG_FILE_DST": _CHOSEN,
        "DEFAULT_CONFIG": build.spec.device_plugin.config.default,
        # Without a label and a default nothing is configured.
        "FALLBACK_STRATEGIES": "empty",
        "SEND_SIGNAL": "false" if is_first else "true",
        "SIGNAL": "1",
        "PROCESS_TO_SIGNAL": process,
    }
    return ContainerParts(
        name="config-manager-init" if is_first else "config-manager",
        image=image_of(build, PLUGIN, operand),
        pull_policy=pull_policy_of(build, operand),
        command=("config-manager",),
        env=env,
        mounts=mounts,
    )
