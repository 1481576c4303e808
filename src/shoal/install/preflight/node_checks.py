"""Checks of nodes: the container runtime, one operating system, the oldest driver for each generation of GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shoal.data.gpu_drivers import LEAST_DRIVER, driver_branch, generation_of, major_version
from shoal.data.gpus import PRODUCT_LABEL
from shoal.install.preflight.facts import ClusterFacts, Finding, FoundNode
from shoal.install.values.reading import ChartValues

RUNTIMES = ("containerd", "cri-o")
_PCI = ("pci-10de", "pci-0302_10de", "pci-0300_10de")
_FEATURE = "feature.node.kubernetes.io/"
_DEPLOY_DRIVER = "nvidia.com/gpu.deploy.driver"
_FEW = 3


def gpu_nodes(nodes: Sequence[FoundNode]) -> list[FoundNode]:
    """Nodes that have GPUs, by their labels or their resources."""
    return [node for node in nodes if node.gpus or is_gpu_node(node.labels)]


def labelled_nodes(nodes: Sequence[FoundNode]) -> list[FoundNode]:
    """Nodes that have labels of GPUs, or of a discovery of features."""
    return [
        node for node in nodes if is_gpu_node(node.labels) or any(name.startswith(_FEATURE) for name in node.labels)
    ]


def is_gpu_node(labels: Mapping[str, str]) -> bool:
    pci = any(labels.get(f"{_FEATURE}{name}.present") == "true" for name in _PCI)
    return pci or labels.get("nvidia.com/gpu.present") == "true" or PRODUCT_LABEL in labels


def node_findings(facts: ClusterFacts, values: ChartValues) -> Iterator[Finding]:
    with_gpus = gpu_nodes(facts.nodes)
    yield from _runtimes(with_gpus, values)
    if values.get("operator.enabled"):
        yield from _systems(with_gpus, values)
    yield from _drivers(with_gpus, values)
    yield from _counts(facts, with_gpus)


def _runtimes(nodes: Sequence[FoundNode], values: ChartValues) -> Iterator[Finding]:
    for runtime in sorted({node.runtime.partition("://")[0] for node in nodes} - {*RUNTIMES, ""}):
        names = [node.name for node in nodes if node.runtime.startswith(f"{runtime}://")]
        yield Finding(
            "error" if values.get("toolkit.enabled") and values.get("operator.enabled") else "warning",
            "runtime",
            f"{_named('node', names)} with GPUs: the container runtime {runtime} is not supported",
            "use containerd or CRI-O there, or set toolkit.enabled=false if its hosts give GPUs to containers",
        )


def _systems(nodes: Sequence[FoundNode], values: ChartValues) -> Iterator[Finding]:
    if not values.get("driver.enabled") or values.get("driver.nvidiaDriverCRD.enabled"):
        return
    given = [node for node in nodes if node.os and node.labels.get(_DEPLOY_DRIVER, "true") == "true"]
    systems = sorted({node.os for node in given})
    if len(systems) > 1:
        examples = ", ".join(f"{name} ({next(one.name for one in given if one.os == name)})" for name in systems[:_FEW])
        yield Finding(
            "error",
            "operating system",
            f"the nodes with GPUs have {len(systems)} operating systems: {examples}; one driver image is for one",
            "use one version, or drivers of the hosts (driver.enabled=false), or one NVIDIADriver for each "
            "(driver.nvidiaDriverCRD.enabled=true)",
        )


def _drivers(nodes: Sequence[FoundNode], values: ChartValues) -> Iterator[Finding]:
    installs = values.get("operator.enabled") and values.get("driver.enabled")
    pinned = major_version(str(values.get("driver.version")))
    for generation, least in LEAST_DRIVER:
        of_it = [node for node in nodes if generation_of(node.labels).startswith(generation)]
        found = [(node, pinned if installs else driver_branch(node.labels)) for node in of_it]
        old = [(node, branch) for node, branch in found if 0 < branch < least]
        if old:
            where = "driver.version" if installs else _named("node", [node.name for node, _ in old])
            yield Finding(
                "error",
                "driver",
                f"{where}: the driver {old[0][1]} is too old for GPUs of the generation {generation} "
                f"({_named('node', [node.name for node, _ in old])}), which need {least} or newer",
                f"set driver.version to {least} or newer" if installs else f"install a driver {least} or newer there",
            )


def _counts(facts: ClusterFacts, nodes: Sequence[FoundNode]) -> Iterator[Finding]:
    if not nodes:
        yield Finding("note", "GPUs", f"none of {len(facts.nodes)} nodes has a GPU yet; the GPU stack waits for one")
    elif sum(node.gpus for node in nodes) == 1:
        yield Finding("note", "GPUs", "the cluster has one GPU; for production use at least two, on two nodes")


def _named(what: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_FEW])
    more = f" and {len(names) - _FEW} others" if len(names) > _FEW else ""
    return f"{what}{'' if len(names) == 1 else 's'} {shown}{more}"
