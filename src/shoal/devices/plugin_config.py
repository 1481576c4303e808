"""Parses the device plugin's configuration: how GPUs and MIG instances are advertised, and with how many replicas.

The format is that of the plugin's own file. Fields that the plugin ignores (`resources`, `rename` of one resource,
devices other than all) are ignored here too; a configuration with which it would not start is rejected with its
message. One such configuration is translated instead, because its meaning is plain and it is often copied:
`timeSlicing.replicas` without `resources` means all GPUs.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from shoal.api.yaml_text import read_yaml
from shoal.devices.mps_limits import MOST_MPS_CLIENTS
from shoal.devices.names import GPU, SHARED_SUFFIX
from shoal.units.errors import UserError

_DOMAIN = "nvidia.com/"
_MOST_REPLICAS = 1_000
"""The maximum number of replicas. Each is a device of its own, and a typing error must not create a million of them."""

Strategy = Literal["none", "single", "mixed"]


_SHORT_FORM = (
    "timeSlicing.replicas without resources is read as resources: [{{name: {name}, replicas: {replicas}}}]; "
    'the real device plugin rejects it ("no resources specified")'
)


class PluginConfigError(Exception):
    """The plugin would not start with this."""


class PluginConfig(msgspec.Struct, frozen=True):
    mig_strategy: Strategy = "none"
    sharing: Literal["none", "time-slicing", "mps"] = "none"
    replicas: tuple[tuple[str, int], ...] = ()
    """Replicas by resource; `*`: all resources."""
    rename: bool = False
    one_per_request: bool = False
    packed: bool = False
    """Whether replicas are allocated from GPUs in use first."""
    notes: tuple[str, ...] = ()
    """What was translated, and how."""

    def replicas_of(self, resource: str) -> int:
        found = dict(self.replicas)
        return found.get(resource, found.get("*", 1))

    def name_of(self, resource: str) -> str:
        return resource + SHARED_SUFFIX if self.rename and self.replicas_of(resource) > 1 else resource


class _Resource(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    replicas: int = 0


class _Sharing(msgspec.Struct, frozen=True, rename="camel"):
    resources: list[_Resource] = []
    replicas: int | None = None
    """No field of the plugin's format: the short form."""
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool | None = None


class _SharingBlocks(msgspec.Struct, frozen=True, rename="camel"):
    time_slicing: _Sharing | None = None
    mps: _Sharing | None = None


class _Plugin(msgspec.Struct, frozen=True, rename="camel"):
    shared_devices_allocation_policy: Literal["distributed", "packed"] = "distributed"


class _Flags(msgspec.Struct, frozen=True, rename="camel"):
    mig_strategy: Strategy | None = None
    plugin: _Plugin = _Plugin()


class _PluginConfigFile(msgspec.Struct, frozen=True, rename="camel"):
    version: str = ""
    flags: _Flags = _Flags()
    sharing: _SharingBlocks = _SharingBlocks()


def parse_plugin_config(text: str, default: Strategy, most_mps_clients: int = MOST_MPS_CLIENTS) -> PluginConfig:
    """`most_mps_clients`: of the GPUs of the machine."""
    try:
        documents: list[Any] = [document for _, document in read_yaml(text)]
        file = msgspec.convert(documents[0] if documents else {"version": "v1"}, _PluginConfigFile)
    except (UserError, msgspec.ValidationError) as error:
        raise PluginConfigError(f"error parsing config file: {error}") from error
    if file.version != "v1":
        raise PluginConfigError(f"unknown version: {file.version or 'missing'}")
    if file.sharing.mps is not None and file.sharing.time_slicing is not None:
        raise PluginConfigError("sharing has timeSlicing and mps, which exclude each other on a GPU: leave one out")
    is_mps = file.sharing.mps is not None
    block, notes = _long_form(file.sharing)
    most = most_mps_clients if is_mps else _MOST_REPLICAS
    return PluginConfig(
        mig_strategy=file.flags.mig_strategy or default,
        sharing="none" if block is None else "mps" if is_mps else "time-slicing",
        replicas=() if block is None else _replicas(block, most),
        rename=block is not None and block.rename_by_default,
        one_per_request=_one_per_request(block, is_mps=is_mps),
        packed=file.flags.plugin.shared_devices_allocation_policy == "packed",
        notes=notes,
    )


def _long_form(blocks: _SharingBlocks) -> tuple[_Sharing | None, tuple[str, ...]]:
    """The block in force in the plugin's own format, and what was translated."""
    block = blocks.mps or blocks.time_slicing
    if blocks.time_slicing is None or block is None or block.resources or block.replicas is None:
        return block, ()
    resource = _Resource(GPU, block.replicas)
    return msgspec.structs.replace(block, resources=[resource]), (
        _SHORT_FORM.format(name=resource.name, replicas=resource.replicas),
    )


def _replicas(block: _Sharing, most: int) -> tuple[tuple[str, int], ...]:
    if not block.resources:
        raise PluginConfigError("no resources specified")
    found = []
    for resource in block.resources:
        if not resource.name:
            raise PluginConfigError("no resource name specified")
        if resource.replicas < 2:
            raise PluginConfigError(f"number of replicas must be >= 2: {resource.name}")
        if resource.replicas > most:
            what = f"maximum allowed replicas exceeded: {resource.replicas} > {most}"
            raise PluginConfigError(f"{what}: {resource.name}")
        name = resource.name if resource.name.startswith(_DOMAIN) else _DOMAIN + resource.name
        found.append((name, resource.replicas))
    return tuple(found)


def _one_per_request(block: _Sharing | None, *, is_mps: bool) -> bool:
    if block is None:
        return False
    reported = block.fail_requests_greater_than_one
    return is_mps if reported is None else reported
