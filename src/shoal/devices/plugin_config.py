"""Determines how GPUs and MIG instances are advertised: the MIG strategy, and the replicas of each resource.

The format is that of the plugin's own file (`plugin_file`). What the plugin ignores (`resources`, `rename` of one
resource, devices other than all) is ignored here too; a configuration with which it would not start is rejected with
its message. One such configuration is translated instead, because its meaning is plain and it is often copied:
`timeSlicing.replicas` without `resources` means all GPUs.
"""

from __future__ import annotations

from typing import Literal, cast

import msgspec

from shoal.devices.mps_limits import MOST_MPS_CLIENTS, check_mps_clients
from shoal.devices.names import SHARED_SUFFIX
from shoal.devices.plugin_file import PluginFile, SharingStrategy, parse_plugin_file
from shoal.devices.plugin_flags import PluginFlags, check_flags
from shoal.devices.plugin_resources import PluginConfigError, SharingBlock

_MOST_REPLICAS = 1_000
"""The maximum number of replicas. Each is a device of its own, and a typing error must not create a million of them."""
DEFAULT_MPS_ROOT = "/run/nvidia/mps"
"""Where NVIDIA's charts and operator put the directories of MPS."""

Strategy = Literal["none", "single", "mixed"]


class PluginConfig(msgspec.Struct, frozen=True):
    mig_strategy: Strategy = "none"
    sharing: SharingStrategy = "none"
    replicas: tuple[tuple[str, int], ...] = ()
    """Replicas by resource; `*`: all resources."""
    rename: bool = False
    one_per_request: bool = False
    packed: bool = False
    """Whether replicas are allocated from GPUs in use first."""
    renames: tuple[tuple[str, str], ...] = ()
    """The new names of single resources. The released plugin ignores them."""
    notes: tuple[str, ...] = ()
    """What was translated or ignored, and how."""

    def replicas_of(self, resource: str) -> int:
        found = dict(self.replicas)
        return found.get(resource, found.get("*", 1))

    def name_of(self, resource: str) -> str:
        if self.replicas_of(resource) < 2:
            return resource
        return dict(self.renames).get(resource, resource + SHARED_SUFFIX if self.rename else resource)


def parse_plugin_config(text: str, default: Strategy, most_mps_clients: int = MOST_MPS_CLIENTS) -> PluginConfig:
    """As an installation by NVIDIA's chart or operator starts. Raises `PluginConfigError`.

    `default`: the strategy where the file has none; MPS is allowed with it, because a node may have no MIG devices.
    `most_mps_clients`: of the GPUs of the machine.
    """
    file = parse_plugin_file(text)
    config = started_config(file, PluginFlags(mps_root=DEFAULT_MPS_ROOT), most_mps_clients)
    if "mig_strategy" in file.flags.plugin:
        return config
    return msgspec.structs.replace(config, mig_strategy=default)


def started_config(file: PluginFile, defaults: PluginFlags, most_mps_clients: int = MOST_MPS_CLIENTS) -> PluginConfig:
    """The configuration with which the plugin starts. Raises `PluginConfigError` if it does not start.

    `defaults`: the flags that are used where the file sets none.
    """
    flags = file.flags.over(defaults)
    check_flags(flags, is_mps=file.sharing == "mps")
    block, ignored = file.in_force()
    if block is not None:
        _check_replicas(block, most_mps_clients if file.sharing == "mps" else None)
    return msgspec.structs.replace(
        config_of_block(file.sharing, block, cast("Strategy", flags.mig_strategy)),
        packed=flags.shared_devices_allocation_policy == "packed",
        notes=(*file.notes, *ignored),
    )


def config_of_block(sharing: SharingStrategy, block: SharingBlock | None, strategy: Strategy) -> PluginConfig:
    if block is None:
        return PluginConfig(mig_strategy=strategy)
    return PluginConfig(
        mig_strategy=strategy,
        sharing=sharing,
        replicas=tuple((one.name, one.replicas) for one in block.resources),
        rename=block.rename_by_default,
        one_per_request=bool(block.one_per_request),
        renames=tuple((one.name, one.rename) for one in block.resources if one.rename),
    )


def _check_replicas(block: SharingBlock, most_mps_clients: int | None) -> None:
    for one in block.resources:
        if most_mps_clients is not None:
            check_mps_clients(one.replicas, most_mps_clients, one.name)
        elif one.replicas > _MOST_REPLICAS:
            what = f"maximum allowed replicas exceeded: {one.replicas} > {_MOST_REPLICAS}: {one.name}"
            raise PluginConfigError(what, "replicas-too-many")
