"""Parses the device plugin's configuration file, which GPU feature discovery and the MPS daemon read too.

A fault is an error in the plugin's words. Unknown fields are ignored, as the plugin does, and named in the notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from shoal.api.yaml_text import read_yaml
from shoal.devices.names import GPU
from shoal.devices.plugin_flags import GivenFlags, given_flags, mapping, unknown_fields
from shoal.devices.plugin_resources import (
    PluginConfigError,
    SharingBlock,
    resource_name,
    sharing_block,
    without_ignored,
)
from shoal.units.errors import UserError

VERSION = "v1"
SharingStrategy = Literal["none", "time-slicing", "mps"]
_SHORT_FORM = (
    "timeSlicing.replicas without resources is read as resources: [{{name: {name}, replicas: {replicas}}}]; "
    'the real device plugin rejects it ("no resources specified")'
)
_NO_CHANNELS = "imex.channelIDs has no effect: containers get no IMEX channel"
_BOTH = "sharing has timeSlicing and mps, which exclude each other on a GPU: mps is used, timeSlicing is ignored"


class PluginFile(msgspec.Struct, frozen=True):
    version: str = VERSION
    flags: GivenFlags = GivenFlags()
    sharing: SharingStrategy = "none"
    block: SharingBlock | None = None
    """Of the strategy in use, as it is written."""
    imex_channels: tuple[int, ...] = ()
    imex_required: bool = False
    notes: tuple[str, ...] = ()
    """What is ignored or translated, and how."""

    def in_force(self) -> tuple[SharingBlock | None, tuple[str, ...]]:
        """The block without what the plugin ignores, and notes about that."""
        return (None, ()) if self.block is None else without_ignored(self.block)


def parse_plugin_file(text: str) -> PluginFile:
    """An empty file has no settings. Raises `PluginConfigError`."""
    try:
        documents: list[Any] = [document for _, document in read_yaml(text)]
    except UserError as error:
        raise PluginConfigError(f"error parsing config file: {error}", "syntax") from error
    return plugin_file(documents[0] if documents else {})


def plugin_file(document: Any) -> PluginFile:
    given = mapping(document, "config file")
    version = given.get("version", VERSION)
    if version != VERSION:
        raise PluginConfigError(f"unknown version: {version}", "version")
    resources = mapping(given.get("resources"), "resources")
    for kind in ("gpus", "mig"):
        _check_resources(resources.get(kind), f"resources.{kind}")
    sharing, block, notes = _sharing(mapping(given.get("sharing"), "sharing"))
    imex = mapping(given.get("imex"), "imex")
    flags = given_flags(given.get("flags"))
    unknown = (
        *unknown_fields(given, ("version", "flags", "resources", "sharing", "imex"), ""),
        *flags.unknown,
    )
    channels = _channels(imex.get("channelIDs"))
    if channels:
        notes = (*notes, _NO_CHANNELS)
    return PluginFile(
        flags=flags,
        sharing=sharing,
        block=block,
        imex_channels=channels,
        imex_required=imex.get("required") is True,
        notes=(*notes, *(f"{name}: the device plugin has no such field and ignores it" for name in unknown)),
    )


def pattern_matches(pattern: str, text: str) -> bool:
    """Whether a pattern of `resources` matches all of a product or profile name; only `*` has a meaning of its own."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    *middle, last = rest
    if not text.startswith(first):
        return False
    position = len(first)
    for part in middle:
        found = text.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return len(text) - position >= len(last) and text.endswith(last)


def _sharing(given: Mapping[str, Any]) -> tuple[SharingStrategy, SharingBlock | None, tuple[str, ...]]:
    sliced, mps = given.get("timeSlicing"), given.get("mps")
    notes: list[str] = []
    block: SharingBlock | None = None
    strategy: SharingStrategy = "none"
    if sliced is not None:
        fields = mapping(sliced, "sharing.timeSlicing")
        if not fields.get("resources") and fields.get("replicas") is not None:
            # It is often copied, and its meaning is plain.
            notes.append(_SHORT_FORM.format(name=GPU, replicas=fields["replicas"]))
            fields = {**fields, "resources": [{"name": GPU, "replicas": fields["replicas"]}]}
        block, strategy = sharing_block(fields, "sharing.timeSlicing"), "time-slicing"
    if mps is not None:
        if block is not None:
            notes.append(_BOTH)
        block, strategy = sharing_block(mapping(mps, "sharing.mps"), "sharing.mps"), "mps"
        if block.one_per_request is None:
            block = msgspec.structs.replace(block, one_per_request=True)
    return strategy, block, tuple(notes)


def _check_resources(given: Any, where: str) -> None:
    """The plugin ignores them, but not their mistakes."""
    if given is not None and not isinstance(given, list):
        raise PluginConfigError(f"{where}: expected a list", "type")
    for index, one in enumerate(given or ()):
        fields = mapping(one, f"{where}[{index}]")
        if fields.get("name") is not None:
            resource_name(fields["name"], f"{where}[{index}].name")


def _channels(given: Any) -> tuple[int, ...]:
    listed = [] if given is None else given
    if listed not in ([], [0]) or any(isinstance(one, bool) for one in listed):
        what = "invalid IMEX channel IDs: expected an empty list or a list with the channel ID 0 only"
        raise PluginConfigError(f"{what}; imex.channelIDs is {given}", "imex-channels")
    return tuple(listed)
