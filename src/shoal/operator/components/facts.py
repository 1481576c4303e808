"""Represents what the objects of the components depend on beside the policy: the nodes, and how the operator runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from shoal.operator.components.operating_systems import os_tag

GPU_LABELS = (
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
)
"""The labels of node feature discovery by which a node with GPUs is found."""
NFD_PREFIX = "feature.node.kubernetes.io/"
KERNEL = "feature.node.kubernetes.io/kernel-version.full"
PREINSTALLED = "pre-installed"
"""The value of the driver's deploy label on a node whose driver is part of the machine."""
RUNTIMES = {"containerd": "containerd", "cri-o": "crio", "docker": "docker"}


class OperatorSettings(msgspec.Struct, frozen=True):
    """How the operator itself is installed."""

    namespace: str = "shoal-system"
    image: str = "shoal:latest"
    """Shoal's own image, for the components that need no image of NVIDIA."""
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    has_discovery: bool = True
    """Whether a DaemonSet of Shoal finds the nodes with GPUs; off where node feature discovery runs."""


class OperatorNode(msgspec.Struct, frozen=True):
    name: str
    labels: dict[str, str] = {}
    os_image: str = ""
    kernel: str = ""
    runtime: str = ""
    """As the kubelet reports it: `containerd://1.7.27`."""

    @property
    def has_gpus(self) -> bool:
        return any(self.labels.get(one) == "true" for one in GPU_LABELS)

    @property
    def os(self) -> str:
        return os_tag(self.labels, self.os_image)


class FleetFacts(msgspec.Struct, frozen=True):
    """Of all nodes together."""

    gpu_nodes: int = 0
    has_labels: bool = False
    """Whether any node has a label of node feature discovery."""
    systems: tuple[str, ...] = ()
    """The operating systems of the nodes with GPUs, the most frequent first."""
    kernels: tuple[tuple[str, str], ...] = ()
    """Kernel and operating system of the nodes with GPUs, sorted."""
    runtimes: tuple[str, ...] = ()
    """The container runtimes of the nodes with GPUs, as they report them, the most frequent first."""
    config_keys: dict[str, tuple[str, ...]] = {}
    """The keys of the ConfigMaps that the policy names, by name; without those that do not exist."""
    has_service_monitors: bool = False
    """Whether the API server serves ServiceMonitors."""

    @property
    def runtime(self) -> str:
        """The most frequent runtime; empty if none is known."""
        return next(
            (RUNTIMES[name] for name in (one.partition(":")[0] for one in self.runtimes) if name in RUNTIMES), ""
        )


def fleet_facts(
    nodes: Iterable[OperatorNode],
    config_keys: dict[str, tuple[str, ...]] | None = None,
    *,
    has_service_monitors: bool = False,
) -> FleetFacts:
    all_nodes = list(nodes)
    with_gpus = [one for one in all_nodes if one.has_gpus]
    return FleetFacts(
        gpu_nodes=len(with_gpus),
        has_labels=any(name.startswith(NFD_PREFIX) for one in all_nodes for name in one.labels),
        systems=_frequent(one.os for one in with_gpus if one.os),
        kernels=tuple(sorted({(one.kernel, one.os) for one in with_gpus if one.kernel})),
        runtimes=_frequent(one.runtime for one in with_gpus if one.runtime),
        config_keys=config_keys or {},
        has_service_monitors=has_service_monitors,
    )


def _frequent(values: Iterable[str]) -> tuple[str, ...]:
    counts = Counter(values)
    return tuple(sorted(counts, key=lambda one: (-counts[one], one)))
