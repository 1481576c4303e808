"""Computes everything that the agent writes on its node: labels of feature discovery, presence, NVLink, and Shoal's
annotations about devices.

Guarantees: every label is valid in Kubernetes. One that is not, because a product name ends with a dash, for example,
is left out and named, because an API server would refuse all labels with it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import msgspec

from shoal.api.names import label_value_fault
from shoal.devices.advertised_devices import inventory
from shoal.devices.discovered import layouts_of, slots_of
from shoal.devices.feature_labels import LabelInput, feature_labels
from shoal.devices.node_annotations import AnnotatedNode, own_words
from shoal.devices.nvlink import nvlink_labels
from shoal.devices.operator_labels import PRESENT

PCI_PRESENT = "feature.node.kubernetes.io/pci-10de.present"


class NodeMetadata(msgspec.Struct, frozen=True):
    labels: dict[str, str]
    annotations: dict[str, str] = {}
    left_out: tuple[str, ...] = ()
    """Why labels are missing."""


def node_metadata(
    scene: LabelInput, *, has_device: bool = False, unhealthy: AbstractSet[int] = frozenset()
) -> NodeMetadata:
    """`has_device`: whether the machine has a PCI device of NVIDIA. `unhealthy`: the indexes of GPUs that cannot be
    used; they are still labelled, because they are still in the machine. Raises `FeatureError`.
    """
    found = feature_labels(scene)
    annotations: dict[str, str] = {}
    if scene.gpus:
        slots, layouts = slots_of(scene.gpus), layouts_of(scene.gpus)
        found |= nvlink_labels([slot.island for slot in slots])
        devices = inventory(slots, layouts, scene.config).devices
        annotations = own_words(AnnotatedNode(slots, layouts, scene.config), devices, unhealthy)
    if scene.gpus or has_device:
        found |= presence_labels()
    faults = {name: fault for name, value in found.items() if (fault := label_value_fault(value))}
    return NodeMetadata(
        labels={name: value for name, value in sorted(found.items()) if name not in faults},
        annotations=annotations,
        left_out=tuple(f"label {name}: {found[name]!r} {fault}" for name, fault in sorted(faults.items())),
    )


def presence_labels() -> dict[str, str]:
    """Of a machine with a PCI device of NVIDIA."""
    return {PRESENT: "true", PCI_PRESENT: "true"}
