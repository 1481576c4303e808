"""Represents the GPU software that works on a simulated node at one moment."""

from __future__ import annotations

import msgspec

from shoal.embedded.gpus.driver import DRIVER, cuda_of
from shoal.embedded.machines.gpu_software import GpuSoftware, Layer, preinstalled


class NodeSoftware(msgspec.Struct, frozen=True):
    layers: frozenset[Layer]
    driver: str = DRIVER
    """The version of the driver that is loaded, or was loaded last."""

    @property
    def cuda(self) -> str:
        return cuda_of(self.driver)

    def has(self, layer: Layer) -> bool:
        return layer in self.layers


def first_software(software: GpuSoftware) -> NodeSoftware:
    """What a machine has when it starts."""
    return NodeSoftware(preinstalled(software))
