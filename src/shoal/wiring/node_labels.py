"""Composes what `shoal agent labels` needs: the settings of file and command line, the source of labels, and where they
are written.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from shoal.agent.features.blocking_read import BlockingRead
from shoal.agent.features.label_source import LabelSource, MachineFiles, SourceSettings
from shoal.agent.features.labelling import LabelTarget, Read, keep_written, write_once
from shoal.agent.plugin.config_files import ConfigFile, ConfigFolder, ConfigKeys, Parse
from shoal.client.http.access import Access
from shoal.client.port import Api
from shoal.devices.labelled_config import LabelledConfig
from shoal.devices.node_metadata import NodeMetadata
from shoal.devices.plugin_config import DEFAULT_MPS_ROOT, PluginConfig, started_config
from shoal.devices.plugin_file import PluginFile, parse_plugin_file
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.plugin_resources import PluginConfigError
from shoal.devices.port import GpuDriver
from shoal.units.errors import UserError, Where

Destination = Literal["node", "nfd-file", "node-feature"]


class LabelSettings(msgspec.Struct, frozen=True):
    config: PluginConfig
    flags: PluginFlags
    parse: Parse[PluginConfig]
    """What applies when the file has another text."""
    file: Path | None = None
    """A file, or a folder of which the label of the Node names one."""
    default: str = ""
    """The file of a Node without the label."""
    is_pci_only: bool = False
    """Only whether the machine has GPUs, without asking a driver."""


class Target(msgspec.Struct, frozen=True):
    kind: Destination
    node: str = ""
    namespace: str = ""
    pod: str = ""
    access: Access | None = None
    """Of the cluster; None for files."""


def label_settings(
    file: Path | None, given: Mapping[str, Any], features: Mapping[str, Any], default: str = ""
) -> tuple[LabelSettings, tuple[str, ...]]:
    """The settings, and notes about the file. `file` may be a folder, of which `default` is for Nodes without label;
    its files are read with the labels. `given`, `features`: flags of the command line by the names of
    `PluginFlags` and `FeatureFlags`, which come before those of the file. Raises `UserError`.
    """
    defaults = PluginFlags(mps_root=DEFAULT_MPS_ROOT)

    def chosen(text: str) -> PluginFile:
        parsed = parse_plugin_file(text)
        flags = msgspec.structs.replace(
            parsed.flags, plugin={**parsed.flags.plugin, **given}, features={**parsed.flags.features, **features}
        )
        return msgspec.structs.replace(parsed, flags=flags)

    def parse(text: str) -> tuple[PluginConfig, tuple[str, ...]]:
        config = started_config(chosen(text), defaults)
        return config, config.notes

    text = "" if file is None or file.is_dir() else _text(file)
    try:
        config, notes = parse(text)
        flags = chosen(text).flags.over(defaults)
    except PluginConfigError as error:
        where = Where(file=str(file)) if file is not None else Where()
        raise UserError(str(error), where=where, fix="see the flags and sharing of the device plugin") from error
    return LabelSettings(config, flags, parse, file, default), notes


def label_source(open_driver: Callable[[], GpuDriver], settings: LabelSettings, fake_type: str | None) -> LabelSource:
    """`fake_type`: the type of a simulated machine; None: this machine."""
    features = settings.flags.features
    return LabelSource(
        open_driver,
        SourceSettings(
            settings.config,
            timestamp_s=None if features.no_timestamp else int(time.time()),
            needs_driver=settings.flags.fail_on_init_error,
            is_pci_only=settings.is_pci_only,
        ),
        MachineFiles(Path(features.machine_type_file)) if fake_type is None else fake_type,
    )


def write_labels(source: LabelSource, target: Target, settings: LabelSettings, tell: Callable[[str], None]) -> None:
    """Once if the settings say so, otherwise until SIGINT or SIGTERM."""
    folder = _folder(source, settings)
    read = BlockingRead(_following(source, settings, folder))
    asyncio.run(_write_labels(read, target, settings, tell, folder))


def read_labels(source: LabelSource, settings: LabelSettings) -> NodeMetadata:
    """Once, without a Node: of a folder, the file for Nodes without label counts."""
    return _following(source, settings, _folder(source, settings))()


def _folder(source: LabelSource, settings: LabelSettings) -> ConfigFolder[PluginConfig] | None:
    if settings.file is None or not settings.file.is_dir():
        return None
    followed = LabelledConfig(settings.config, settings.parse)
    return ConfigFolder(settings.file, followed, source.use, ConfigKeys(settings.default))


def _following(
    source: LabelSource, settings: LabelSettings, folder: ConfigFolder[PluginConfig] | None
) -> Callable[[], NodeMetadata]:
    """The reports of the source, with the configuration as its file is now."""
    followed: ConfigFile[PluginConfig] | ConfigFolder[PluginConfig] | None = folder
    if followed is None and settings.file is not None and not settings.flags.features.oneshot:
        followed = ConfigFile(settings.file, settings.config, settings.parse, source.use)

    def read() -> NodeMetadata:
        if followed is not None:
            followed.check()
        return source.read()

    return read


async def _write_labels(
    read: Read,
    target: Target,
    settings: LabelSettings,
    tell: Callable[[str], None],
    folder: ConfigFolder[PluginConfig] | None,
) -> None:
    from shoal.agent.plugin.node_label import follow_config_label, read_config_label
    from shoal.client.clock import WallClock

    api = _api(target, settings)
    label: asyncio.Task[None] | None = None
    features = settings.flags.features
    interval_s = None if features.sleep_interval_ns is None else features.sleep_interval_ns / 10**9
    opened = _opened(target, api, settings)
    try:
        if folder is not None and api is not None:
            # Labels of another configuration would be on the Node for a moment.
            folder.set_label(await read_config_label(api, target.node))
        if features.oneshot:
            await write_once(read, opened, tell)
            return
        if folder is not None and api is not None:
            label = asyncio.create_task(follow_config_label(api, WallClock(), target.node, folder.set_label))
        task = asyncio.ensure_future(keep_written(read, opened, WallClock(), interval_s, tell))
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, task.cancel)
        await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled():
            task.result()
    finally:
        if label is not None:
            label.cancel()
        await opened.close()
        if api is not None:
            await api.close()


def _api(target: Target, settings: LabelSettings) -> Api | None:
    if target.access is None:
        return None
    from shoal.agent.features.node_object import DISCOVERY_MANAGER, MANAGER
    from shoal.client.http.api import KubeApi
    from shoal.client.http.settings import KubeSettings

    manager = DISCOVERY_MANAGER if settings.is_pci_only else MANAGER
    return KubeApi(target.access, random.Random(), KubeSettings(manager=manager, timeout_s=20.0))


def _opened(target: Target, api: Api | None, settings: LabelSettings) -> LabelTarget:
    features = settings.flags.features
    if api is None:
        from shoal.agent.features.nfd_file import NfdFile

        is_lasting = features.oneshot or features.sleep_interval_ns is None
        return NfdFile(Path(features.output_file), is_lasting=is_lasting)
    if target.kind == "node":
        from shoal.agent.features.node_object import NodeObject

        return NodeObject(api, target.node)
    from shoal.agent.features.node_feature import NodeFeatureObject, Owner

    return NodeFeatureObject(api, target.node, Owner(target.namespace, target.pod))


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot be read: {reason}", where=Where(file=str(file))) from error
