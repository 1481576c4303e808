"""Determines what the device plugin of a node that does not exist yet will advertise, by the labels of its pool.

A pool that cuts its GPUs (`nvidia.com/mig.config: all-1g.10gb`) or shares them (`nvidia.com/gpu.replicas` with a
sharing strategy) has nodes with other resources than their machine type. The GPU operator reads the same labels, so a
pool needs none of Shoal's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from shoal.data.gpus import PRODUCT_LABEL, read_product
from shoal.data.mig import RESOURCE_PREFIX, layout_of_product
from shoal.units.numbers import whole_of

GPU: Final = "nvidia.com/gpu"
_MIG_CONFIG: Final = "nvidia.com/mig.config"
_ALL: Final = "all-"
_REPLICAS: Final = "nvidia.com/gpu.replicas"
_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"


def advertised(amounts: Mapping[str, int], labels: Mapping[str, str]) -> dict[str, int]:
    """The amounts of a node with these labels, whose machine has whole GPUs."""
    gpus = amounts.get(GPU, 0)
    found = dict(amounts)
    if not gpus:
        return found
    instances = _instances(labels)
    if instances is not None:
        resource, of_each = instances
        del found[GPU]
        found[resource] = gpus * of_each
        return found
    replicas = whole_of(labels.get(_REPLICAS, "")) or 1
    if replicas > 1 and labels.get(_STRATEGY, "none") != "none":
        found[GPU] = gpus * replicas
    return found


def _instances(labels: Mapping[str, str]) -> tuple[str, int] | None:
    """The resource and the number on each GPU, where all GPUs are cut alike."""
    config = labels.get(_MIG_CONFIG, "")
    if not config.startswith(_ALL):
        return None
    layout = layout_of_product(read_product(labels.get(PRODUCT_LABEL, "")).name)
    profile = layout.profile(config.removeprefix(_ALL)) if layout is not None else None
    return None if profile is None else (RESOURCE_PREFIX + profile.name, profile.max)
