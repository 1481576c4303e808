"""Follows the device plugin's configuration of a machine that runs real pods: `shoal up --this-machine`, `shoal join`.

It is that of a file; or of the file in a folder, or the key of a ConfigMap, that the Node's label
`nvidia.com/device-plugin.config` names. Guarantee: a configuration with which the plugin would not start changes
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal.agent.kubelet.gpus import CONFIG
from shoal.agent.plugin.config_files import ConfigFile, ConfigFolder
from shoal.agent.plugin.device_plugin import PluginSettings
from shoal.devices.config_maps import NAMESPACES
from shoal.devices.labelled_config import ConfigChange, LabelledConfig
from shoal.devices.plugin_file import parse_plugin_file
from shoal.devices.plugin_resources import PluginConfigError
from shoal.units.errors import UserError, Where
from shoal.wiring.plugin_settings import SettingsReader

Obj = dict[str, Any]
ConfigMaps = Callable[[], Mapping[str, Obj]]
"""Those in which configurations are looked up, by `namespace/name`."""
_log = logging.getLogger("shoal.this-machine")


class GpuConfigs:
    def __init__(self, reader: SettingsReader, path: Path | None, maps: ConfigMaps | None = None) -> None:
        """`path`: a file or a folder; None: only ConfigMaps. Raises UserError for a file with which the plugin would
        not start."""
        self._reader, self._maps = reader, maps or dict
        self._applied: PluginSettings | None = None
        self._file: ConfigFile[PluginSettings] | None = None
        self._folder: ConfigFolder[PluginSettings] | None = None
        usual, _ = self._read("")
        self._usual = usual
        self._followed = LabelledConfig(usual, self._read)
        if path is not None and path.is_dir():
            self._folder = ConfigFolder(path, LabelledConfig(usual, self._read), self._apply)
        elif path is not None:
            self._file = ConfigFile(path, self._first(path), self._read, self._apply)

    def now(self, label: str) -> tuple[PluginSettings, ConfigChange | None]:
        """The settings, and what is to be reported. `label`: that of the Node, empty without one."""
        if self._folder is not None:
            self._folder.set_label(label)
            return self._applied or self._usual, None
        if self._file is not None:
            self._file.check()
        own = self._file.config if self._file is not None else self._usual
        change = self._followed.follow(label, self._maps() if label else {})
        if change is not None:
            _log.log(logging.WARNING if change.is_fault else logging.INFO, "%s", change.message)
        return (self._followed.config if label else own), change

    def _apply(self, settings: PluginSettings) -> None:
        self._applied = settings

    def _first(self, path: Path) -> PluginSettings:
        where = Where(file=str(path))
        try:
            return self._read(path.read_text(encoding="utf-8"))[0]
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot be read: {getattr(error, 'strerror', '') or error}", where=where) from None
        except PluginConfigError as error:
            raise UserError(str(error), where=where, fix="see the flags and sharing of the device plugin") from None

    def _read(self, text: str) -> tuple[PluginSettings, tuple[str, ...]]:
        """Without a strategy in the file, MIG instances are resources of their own."""
        file = parse_plugin_file(text)
        settings, notes = self._reader.settings(file)
        if "mig_strategy" not in file.flags.plugin:
            config = msgspec.structs.replace(settings.config, mig_strategy=CONFIG.mig_strategy)
            settings = msgspec.structs.replace(settings, config=config)
        return settings, notes


def check_gpu_config(path: Path) -> None:
    """Raises UserError for what cannot be read, or with which the plugin would not start."""
    if not path.exists():
        raise UserError("there is no such file or folder", where=Where(file=str(path)), fix="correct --gpu-config")
    GpuConfigs(SettingsReader({}), path)


def plugin_config_maps(items: Mapping[str, Obj]) -> Mapping[str, Obj]:
    """Those of the namespaces that can have configurations, by `namespace/name`."""
    return {name: obj for name, obj in items.items() if name.partition("/")[0] in NAMESPACES}
