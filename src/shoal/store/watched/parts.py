"""Protocols by which the readers of pods ask for devices and volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from shoal.api.node_affinity import NodeAffinity
from shoal.api.pod import Pod
from shoal.engine.device_notation import NodeIds
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.dra.requests import ClaimRef


class Devices(Protocol):
    def refs(self, pod: Pod) -> tuple[tuple[ClaimRef, ...], Pod]:
        """What the pod claims, and the pod without the resources that claims stand for."""
        ...

    def positions(self, annotations: Mapping[str, str], node: str) -> DevicePositions:
        """Devices that a pod on the node says it holds."""
        ...

    def ids(self, node: str) -> NodeIds:
        """What the node's devices are called."""
        ...


class Volumes(Protocol):
    def rule(self, pod: Pod) -> NodeAffinity | str | None:
        """Nodes from which the pod's volumes can be reached; a text says why the pod has to wait for them."""
        ...

    def refused(self, pod: Pod) -> str:
        """What kube-scheduler says of nodes from which they cannot be reached; empty where no node is asked."""
        ...
