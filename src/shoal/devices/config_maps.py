"""Chooses the ConfigMaps in which the configurations of GPUs are looked up, and their order.

Guarantees: a ConfigMap in a namespace of the GPU operator takes precedence over one in `default`, where manifests
without a namespace are created.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Obj = dict[str, Any]
_LAST = "default"
NAMESPACES = (
    *("gpu-operator", "nvidia-gpu-operator", "nvidia", "nvidia-system", "nvidia-device-plugin", "kube-system"),
    _LAST,
)


def in_order(configs: Mapping[str, Obj]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names and data. `configs` are by `namespace/name`."""
    for name in sorted(configs, key=lambda name: (name.partition("/")[0] == _LAST, name)):
        data = configs[name].get("data")
        yield name, data if isinstance(data, dict) else {}
