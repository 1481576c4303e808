"""Determines the device plugin's configuration on a simulated machine: its own, that of the node's label
(`labelled_config`), and the MIG strategy of a ClusterPolicy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from shoal.data.gpus import find_model
from shoal.devices.labelled_config import LABEL, LabelledConfig
from shoal.devices.mps_limits import MOST_MPS_CLIENTS, most_mps_clients
from shoal.devices.plugin_config import PluginConfig, Strategy, parse_plugin_config
from shoal.embedded.gpus.node_gpus import Complaint
from shoal.embedded.machines.machine import Machine

Obj = dict[str, Any]
STRATEGY = "shoal.dev/mig-strategy"
"""A key beside a node's labels, with the MIG strategy that a ClusterPolicy sets for all nodes."""
__all__ = ["LABEL", "STRATEGY", "PluginManager"]


class PluginManager:
    def __init__(self, machine: Machine) -> None:
        own = _own_config(machine)
        models = [model for slot in machine.gpus if (model := find_model(slot.model)) is not None]
        most = min(map(most_mps_clients, models), default=MOST_MPS_CLIENTS)

        def parse(text: str) -> tuple[PluginConfig, tuple[str, ...]]:
            found = parse_plugin_config(text, own.mig_strategy, most)
            return found, found.notes

        self.config: PluginConfig = own
        self._labelled = LabelledConfig(own, parse)
        self._strategy = ""

    def follow(self, key: str, configs: Mapping[str, Obj], strategy: str = "") -> str:
        """Apply the configuration; returns a message about the result, empty without a change.

        `strategy` takes precedence over that of the configuration, as the plugin's environment does.
        """
        change = self._labelled.follow(key, configs)
        chosen = self._labelled.config
        words = "" if change is None else Complaint(change.message) if change.is_fault else change.message
        if strategy != self._strategy and strategy in ("", *get_args(Strategy)):
            self._strategy = strategy
            words = words or f"the device plugin follows MIG strategy {strategy or chosen.mig_strategy}"
        over = {"mig_strategy": self._strategy} if self._strategy else {}
        self.config = msgspec.structs.replace(chosen, **over)
        return words


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
