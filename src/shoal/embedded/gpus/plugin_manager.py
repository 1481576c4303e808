"""Follows the label `nvidia.com/device-plugin.config`: the key of a ConfigMap with the plugin's configuration.

The key is looked up in the known ConfigMaps, in their order (`config_maps.py`). If it is missing, or the plugin would
not start with it, the plugin continues with its previous configuration, and the fault is reported once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from shoal.data.gpus import find_model
from shoal.devices.mps_limits import MOST_MPS_CLIENTS, most_mps_clients
from shoal.devices.plugin_config import PluginConfig, Strategy, parse_plugin_config
from shoal.devices.plugin_resources import PluginConfigError
from shoal.embedded.gpus.config_maps import NAMESPACES, in_order
from shoal.embedded.gpus.node_gpus import Complaint
from shoal.embedded.machines.machine import Machine

Obj = dict[str, Any]
_MOST_NAMED = 5
LABEL = "nvidia.com/device-plugin.config"
STRATEGY = "shoal.dev/mig-strategy"
"""A key beside a node's labels, with the MIG strategy that a ClusterPolicy sets for all nodes."""


class PluginManager:
    def __init__(self, machine: Machine) -> None:
        self._own = _own_config(machine)
        models = [model for slot in machine.gpus if (model := find_model(slot.model)) is not None]
        self._most_mps_clients = min(map(most_mps_clients, models), default=MOST_MPS_CLIENTS)
        self.config: PluginConfig = self._own
        self._chosen: PluginConfig = self._own
        self._strategy = ""
        self._followed: tuple[str, str | None] = ("", None)

    def follow(self, key: str, configs: Mapping[str, Obj], strategy: str = "") -> str:
        """Apply the configuration; returns a message about the result, empty without a change. A changed ConfigMap is
        applied too.

        `strategy` takes precedence over that of the configuration, as the plugin's environment does.
        """
        words = self._follow(key, configs)
        if strategy != self._strategy and strategy in ("", *get_args(Strategy)):
            self._strategy = strategy
            words = words or f"the device plugin follows MIG strategy {strategy or self._chosen.mig_strategy}"
        over = {"mig_strategy": self._strategy} if self._strategy else {}
        self.config = msgspec.structs.replace(self._chosen, **over)
        return words

    def _follow(self, key: str, configs: Mapping[str, Obj]) -> str:
        found = [(name, data[key]) for name, data in in_order(configs) if key in data]
        name, text = next(
            ((name, text) for name, text in found if _is_plugins(text)), found[0] if found else ("", None)
        )
        if (key, text) == self._followed:
            return ""
        self._followed = (key, text)
        if not key:
            self._chosen = self._own
            return "the device plugin is back to the configuration it started with"
        if text is None:
            return Complaint(
                f"device plugin configuration {key} was not applied: no ConfigMap has the key; {_known_keys(configs)}"
            )
        try:
            self._chosen = parse_plugin_config(text, self._own.mig_strategy, self._most_mps_clients)
        except PluginConfigError as error:
            return Complaint(f"device plugin configuration {key} of ConfigMap {name} was not applied: {error}")
        done = f"device plugin configuration {key} of ConfigMap {name} was applied"
        return Complaint("; ".join((done, *self._chosen.notes))) if self._chosen.notes else done


def _own_config(machine: Machine) -> PluginConfig:
    """The initial configuration of the plugin on this machine."""
    sharing = machine.sharing
    if sharing is None:
        return PluginConfig(mig_strategy=machine.mig_strategy)
    return PluginConfig(
        mig_strategy=machine.mig_strategy,
        sharing=sharing.strategy,
        replicas=(("*", sharing.replicas),),
        rename=sharing.rename,
        one_per_request=sharing.fail_requests_greater_than_one,
    )


def _is_plugins(text: object) -> bool:
    """Whether the text is a plugin configuration: other ConfigMaps use keys such as `config.yaml` for other content."""
    return isinstance(text, str) and "version" in text and "mig-configs" not in text


def _known_keys(configs: Mapping[str, Obj]) -> str:
    keys = [
        f"{name} has {', '.join(found)}"
        for name, data in in_order(configs)
        if (found := sorted(key for key, text in data.items() if _is_plugins(text)))
    ]
    return "; ".join(keys[:_MOST_NAMED]) or f"none in the namespaces {', '.join(NAMESPACES)} has a configuration"
