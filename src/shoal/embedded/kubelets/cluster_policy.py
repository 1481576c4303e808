"""Reads the ClusterPolicy of the GPU operator: which ConfigMaps apply to all nodes, and the defaults of nodes without
labels.

As with the operator, the labels of a node choose a key of the ConfigMap that the policy names; other ConfigMaps have no
effect, and without a name no configuration can be chosen. The policy's MIG strategy takes precedence over that of a
configuration, because the plugin gets it as an environment variable. Rejected: a policy that exists from the start.
Without a policy all ConfigMaps are searched, so that a label and a ConfigMap are enough for an experiment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from shoal.client.item import Item
from shoal.embedded.gpus import mig_manager, plugin_manager
from shoal.operator.policy.config_remarks import config_remarks
from shoal.operator.policy.operands import ConfigReference
from shoal.operator.policy.reading import read_cluster_policy

Obj = dict[str, Any]


class ClusterPolicy(msgspec.Struct, frozen=True):
    plugin: ConfigReference = ConfigReference()
    layouts: ConfigReference = ConfigReference()
    """The configuration of the MIG manager."""
    strategy: str = ""

    def applied(self, labels: Mapping[str, str], configs: Mapping[str, Obj]) -> tuple[dict[str, str], dict[str, Obj]]:
        """The labels and ConfigMaps that apply to a node's GPUs."""
        followed = dict(labels)
        _choose(followed, plugin_manager.LABEL, self.plugin.default)
        _choose(followed, mig_manager.LABEL, self.layouts.default)
        if not self.plugin.name:
            followed.pop(plugin_manager.LABEL, None)
        followed[plugin_manager.STRATEGY] = self.strategy
        followed[mig_manager.SOURCE] = self.layouts.name
        named = {self.plugin.name, self.layouts.name}
        return followed, {key: one for key, one in configs.items() if key.rpartition("/")[2] in named}

    def remarks(self, gpu_nodes: Collection[Mapping[str, str]], configs: Mapping[str, Obj]) -> list[tuple[str, str]]:
        """Reasons and messages about fields without effect. `gpu_nodes`: the labels of each GPU node."""
        present = {key.rpartition("/")[2] for key in configs}
        return config_remarks({"devicePlugin": self.plugin, "migManager": self.layouts}, gpu_nodes, present)


def read_policy(item: Item) -> ClusterPolicy:
    """Raises UserError for a value that the operator does not accept."""
    written = item.obj().get("spec") or {}
    spec = read_cluster_policy(written).spec
    # Without a strategy in the policy, that of the machine remains.
    strategy = spec.mig.strategy if (written.get("mig") or {}).get("strategy") else ""
    return ClusterPolicy(spec.device_plugin.config, spec.mig_manager.config, strategy)


def _choose(labels: dict[str, str], label: str, default: str) -> None:
    if default and not labels.get(label):
        labels[label] = default
