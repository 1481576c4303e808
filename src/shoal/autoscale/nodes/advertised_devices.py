"""Determines what the device plugin of a node that does not exist yet will advertise, by the labels of its pool.

A pool that cuts its GPUs (`nvidia.com/mig.config: all-1g.10gb`) or shares them (`nvidia.com/gpu.replicas` with a
sharing strategy) has nodes with other resources than their machine type. The GPU operator reads the same labels, so a
pool needs none of Shoal's own. GPUs that are cut on demand (`shoal.dev/mig-layout`) are in MIG mode, so they are not
advertised as whole ones. GPUs that are devices of resource claims (`shoal.dev/dra: "true"`) are no resource at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.data.gpus import PRODUCT_LABEL, read_product
from shoal.data.mig import RESOURCE_PREFIX, layout_of_product
from shoal.devices.names import OWN_DRA, OWN_MIG_DEVICES, OWN_MIG_LAYOUT
from shoal.units.annotation_numbers import numbers
from shoal.units.errors import Where
from shoal.units.numbers import whole_of

GPU: Final = "nvidia.com/gpu"
_COUNT: Final = "nvidia.com/gpu.count"
_MIG_CONFIG: Final = "nvidia.com/mig.config"
_ALL: Final = "all-"
DYNAMIC_MIG: Final = "dynamic-mig"
_BY_CLAIMS: Final = frozenset({"true", DYNAMIC_MIG})
_REPLICAS: Final = "nvidia.com/gpu.replicas"
_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"


def advertised(amounts: Mapping[str, int], labels: Mapping[str, str]) -> dict[str, int]:
    """The amounts of a node with these labels, whose machine has whole GPUs."""
    gpus = amounts.get(GPU, 0)
    found = dict(amounts)
    if not gpus:
        return found
    if gives_by_claims(labels):
        del found[GPU]
        return found
    cut = _cut_on_demand(labels, gpus)
    if cut:
        found[GPU] = gpus - cut
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


def gives_by_claims(labels: Mapping[str, str]) -> bool:
    """Whether NVIDIA's GPUs of a node with these labels are devices of resource claims."""
    return labels.get(OWN_DRA) in _BY_CLAIMS


def labels_of_machine(instance: InstanceType, labels: Mapping[str, str]) -> dict[str, str]:
    """The labels of a node of this type, with those that the type has itself.

    A pool gives its labels to nodes of all its types, also to those of other GPU models or without GPUs. The labels
    that cut GPUs on demand are left out where no GPU can be cut. Where they can, the number of GPUs is added.
    """
    found = {key: values[0] for key, values in instance.labels.items() if len(values) == 1} | dict(labels)
    if OWN_MIG_LAYOUT not in found:
        return found
    gpus = instance.capacity.get(GPU, 0)
    if gpus and _can_be_cut(found):
        return {_COUNT: str(gpus), **found}
    return {key: value for key, value in found.items() if key not in (OWN_MIG_LAYOUT, OWN_MIG_DEVICES)}


def _cut_on_demand(labels: Mapping[str, str], gpus: int) -> int:
    """How many GPUs are in MIG mode without a fixed layout."""
    if OWN_MIG_LAYOUT not in labels or not _can_be_cut(labels):
        return 0
    listed = labels.get(OWN_MIG_DEVICES)
    return gpus if listed is None else sum(device < gpus for device in numbers(listed, Where()))


def _can_be_cut(labels: Mapping[str, str]) -> bool:
    return layout_of_product(read_product(labels.get(PRODUCT_LABEL, "")).name) is not None


def _instances(labels: Mapping[str, str]) -> tuple[str, int] | None:
    """The resource and the number on each GPU, where all GPUs are cut alike."""
    config = labels.get(_MIG_CONFIG, "")
    if not config.startswith(_ALL):
        return None
    layout = layout_of_product(read_product(labels.get(PRODUCT_LABEL, "")).name)
    profile = layout.profile(config.removeprefix(_ALL)) if layout is not None else None
    return None if profile is None else (RESOURCE_PREFIX + profile.name, profile.max)
