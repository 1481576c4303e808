"""Names references to ConfigMaps in a ClusterPolicy that have no effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from shoal.devices.labelled_config import LABEL
from shoal.operator.policy.operands import ConfigReference


def config_remarks(
    references: Mapping[str, ConfigReference], nodes: Collection[Mapping[str, str]], present: Collection[str]
) -> list[tuple[str, str]]:
    """Reasons and messages. `references`: by the component's field; `nodes`: the labels of each node with GPUs;
    `present`: the names of the ConfigMaps that exist.
    """
    found = [
        ("ConfigMapNotFound", f"spec.{field}.config names ConfigMap {one.name}: no such one")
        for field, one in references.items()
        if one.name and one.name not in present
    ]
    plugin = references.get("devicePlugin", ConfigReference())
    free = sum(LABEL not in labels for labels in nodes)
    if plugin.name and not plugin.default and free:
        words = (
            f"spec.devicePlugin.config names ConfigMap {plugin.name} and no default: no effect on {free} of "
            f"{len(nodes)} GPU nodes, which lack the label {LABEL}"
        )
        found.append(("NoDefaultConfig", words))
    return found
