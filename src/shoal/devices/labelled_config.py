"""Follows the label `nvidia.com/device-plugin.config`: the key of a ConfigMap with the plugin's configuration.

The key is looked up in the known ConfigMaps, in their order (`config_maps`). If it is missing, or the plugin would not
start with it, the previous configuration remains, and the fault is reported once. NVIDIA's manager ends its pod
instead, which takes the GPUs of the node away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from shoal.devices.config_maps import NAMESPACES, in_order
from shoal.devices.plugin_resources import PluginConfigError

Obj = dict[str, Any]
T = TypeVar("T")
LABEL = "nvidia.com/device-plugin.config"
_MOST_NAMED = 5


class ConfigChange(msgspec.Struct, frozen=True):
    """The result of a change of the label or of a ConfigMap."""

    message: str
    is_fault: bool = False
    """Whether the configuration was not applied, or not all of it."""


class LabelledConfig(Generic[T]):
    """`own`: what applies without the label. `parse`: raises `PluginConfigError`; its notes say what is ignored."""

    def __init__(self, own: T, parse: Callable[[str], tuple[T, tuple[str, ...]]]) -> None:
        self._own, self._parse = own, parse
        self._followed: tuple[str, str | None] = ("", None)
        self.config: T = own

    def follow(self, key: str, configs: Mapping[str, Obj]) -> ConfigChange | None:
        """`key`: the value of the label. A changed ConfigMap is applied too. None: nothing has changed."""
        found = [(name, data[key]) for name, data in in_order(configs) if key in data]
        name, text = next(
            ((name, text) for name, text in found if is_plugin_config(text)), found[0] if found else ("", None)
        )
        if (key, text) == self._followed:
            return None
        self._followed = (key, text)
        if not key:
            self.config = self._own
            return ConfigChange("the device plugin is back to the configuration it started with")
        if text is None:
            what = f"device plugin configuration {key} was not applied: no ConfigMap has the key"
            return ConfigChange(f"{what}; {_known_keys(configs)}", is_fault=True)
        try:
            self.config, notes = self._parse(text)
        except PluginConfigError as error:
            what = f"device plugin configuration {key} of ConfigMap {name} was not applied: {error}"
            return ConfigChange(what, is_fault=True)
        done = f"device plugin configuration {key} of ConfigMap {name} was applied"
        return ConfigChange("; ".join((done, *notes)), is_fault=bool(notes))


def fallback_key(keys: Sequence[str], strategies: Sequence[str]) -> str:
    """The key that applies to a node without the label, as NVIDIA's manager chooses it; empty: none.

    `strategies`: tried in order: `named` (the key `default`), `single` (the only key) and `empty` (no configuration).
    """
    for strategy in strategies:
        if strategy == "named" and "default" in keys:
            return "default"
        if strategy == "single" and len(keys) == 1:
            return keys[0]
        if strategy == "empty":
            return ""
    return ""


def is_plugin_config(text: object) -> bool:
    """Whether the text is a plugin configuration: other ConfigMaps use keys such as `config.yaml` for other content."""
    return isinstance(text, str) and "version" in text and "mig-configs" not in text


def _known_keys(configs: Mapping[str, Obj]) -> str:
    keys = [
        f"{name} has {', '.join(found)}"
        for name, data in in_order(configs)
        if (found := sorted(key for key, text in data.items() if is_plugin_config(text)))
    ]
    return "; ".join(keys[:_MOST_NAMED]) or f"none in the namespaces {', '.join(NAMESPACES)} has a configuration"
