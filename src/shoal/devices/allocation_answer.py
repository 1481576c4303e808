"""Computes what the device plugin answers to an Allocate request: environment, mounts, device nodes and CDI names.

The strategies of the plugin (`envvar`, `volume-mounts`, `cdi-annotations`, `cdi-cri`) can be combined. Two replicas of
one GPU are one device for the container.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.cdi_devices import PLUGIN_KIND, qualified
from shoal.devices.cdi_spec import DeviceNode
from shoal.devices.mps_daemons import MPS_INSIDE, MpsFolders
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.plugin_flags import PluginFlags

_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_MOUNTED = "/var/run/nvidia-container-devices"
_FEATURES = (
    ("gds_enabled", "NVIDIA_GDS", "nvidia.com/gds"),
    ("gdrcopy_enabled", "NVIDIA_GDRCOPY", "nvidia.com/gdrcopy"),
    ("mofed_enabled", "NVIDIA_MOFED", "nvidia.com/mofed"),
)
_CDI = ("cdi-annotations", "cdi-cri")


class ContainerMount(msgspec.Struct, frozen=True):
    container: str
    host: str
    read_only: bool = False


class AllocationAnswer(msgspec.Struct, frozen=True):
    environment: Mapping[str, str] = {}
    mounts: tuple[ContainerMount, ...] = ()
    nodes: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = {}
    cdi: tuple[str, ...] = ()


class AnswerSettings(msgspec.Struct, frozen=True):
    flags: PluginFlags
    config: PluginConfig
    indexes: Mapping[str, str] = {}
    """The index of each GPU and MIG instance by UUID: `0`, `0:1`."""
    nodes: Mapping[str, tuple[DeviceNode, ...]] = {}
    """The device nodes of each GPU and MIG instance by UUID."""
    common_nodes: tuple[DeviceNode, ...] = ()
    """Those that every container needs, where the host has them."""


def answer_of(devices: Sequence[PhysicalDevice], settings: AnswerSettings, request: str) -> AllocationAnswer:
    """`request`: a unique text for this request, which becomes part of the annotation's name."""
    flags = settings.flags
    physical = tuple(dict.fromkeys(device.physical for device in devices))
    ids = tuple(settings.indexes.get(one, one) for one in physical) if flags.device_id_strategy == "index" else physical
    environment, mounts = _listed(ids, flags)
    annotations: dict[str, str] = {}
    cdi: tuple[str, ...] = ()
    names = (*qualified(PLUGIN_KIND, ids), *_cdi_features(flags))
    if "cdi-annotations" in flags.device_list_strategy:
        annotations[f"{flags.cdi_annotation_prefix}nvidia-device-plugin_{request}"] = ",".join(names)
    if "cdi-cri" in flags.device_list_strategy:
        cdi = names
    if settings.config.sharing == "mps" and any(device.replicas > 1 for device in devices):
        environment, mounts = _with_mps(environment, mounts, devices[0].resource, flags.mps_root)
    return AllocationAnswer(
        environment=environment,
        mounts=mounts,
        nodes=_nodes(physical, settings) if flags.pass_device_specs else (),
        annotations=annotations,
        cdi=cdi,
    )


def _listed(ids: Sequence[str], flags: PluginFlags) -> tuple[dict[str, str], tuple[ContainerMount, ...]]:
    """The list of devices for NVIDIA's container runtime."""
    environment: dict[str, str] = {}
    mounts: tuple[ContainerMount, ...] = ()
    strategies = flags.device_list_strategy
    if "envvar" in strategies:
        environment[_VISIBLE] = ",".join(ids)
    if "volume-mounts" in strategies:
        # Where both are configured, the runtime has to read the mounts.
        environment[_VISIBLE] = _MOUNTED
        mounts = tuple(ContainerMount(f"{_MOUNTED}/{one}", "/dev/null") for one in ids)
    if environment:
        environment |= {name: "enabled" for field, name, _ in _FEATURES if getattr(flags, field)}
    return environment, mounts


def _cdi_features(flags: PluginFlags) -> tuple[str, ...]:
    return tuple(name for field, _, kind in _FEATURES if getattr(flags, field) for name in qualified(kind, ("all",)))


def _with_mps(
    environment: Mapping[str, str], mounts: Sequence[ContainerMount], resource: str, root: str
) -> tuple[dict[str, str], tuple[ContainerMount, ...]]:
    inside, host = MpsFolders(MPS_INSIDE, resource), MpsFolders(root, resource)
    added = (ContainerMount(inside.pipe, host.pipe), ContainerMount("/dev/shm", host.shared_memory))  # noqa: S108
    return {**environment, "CUDA_MPS_PIPE_DIRECTORY": inside.pipe}, (*mounts, *added)


def _nodes(physical: Sequence[str], settings: AnswerSettings) -> tuple[DeviceNode, ...]:
    """None if every strategy is one of CDI: its specification has them."""
    if all(one in _CDI for one in settings.flags.device_list_strategy):
        return ()
    own = (node for one in physical for node in settings.nodes.get(one, ()))
    return tuple(dict.fromkeys((*settings.common_nodes, *own)))
