"""Protocols for the devices and volumes of pods, as the pod readers use them."""

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
        """The claims of the pod, and the pod without the resources that claims provide."""
        ...

    def positions(self, annotations: Mapping[str, str], node: str) -> DevicePositions:
        """The devices that a pod on the node names as its own."""
        ...

    def ids(self, node: str) -> NodeIds:
        """The ids of the node's devices."""
        ...


class Volumes(Protocol):
    def rule(self, pod: Pod) -> NodeAffinity | str | None:
        """The nodes that can reach the pod's volumes; a text gives the reason why the pod must wait for them."""
        ...

    def refused(self, pod: Pod) -> str:
        """kube-scheduler's message for nodes that cannot reach them; empty where no node is considered."""
        ...
