"""Metrics of pods, nodes and namespaces from the series of GPU exporters: one value per object and metric.

An object that uses several GPUs has the mean of their values. Amounts (memory, power, energy, counters) are summed
instead. Rows without a pod belong to no pod, but to the node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct

from shoal.api.selectors import Selector
from shoal.prometheus.samples import MetricLine

_SUMMED = ("_FB_", "POWER_USAGE", "ENERGY", "_COUNT", "THROUGHPUT", "BYTES", "VIOLATION", "XID")
_PREFIX = "DCGM_FI_"
_POD, _NAMESPACE, _NODE = "pod", "namespace", "Hostname"
OWN_LABELS = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "container", "vgpu")
"""Labels by which a query may choose series, beside those of the object itself."""

PODS, NODES, NAMESPACES = "pods", "nodes", "namespaces"


class ObjectValue(Struct, frozen=True):
    namespace: str
    name: str
    value: float


def is_gpu_metric(name: str) -> bool:
    return name.startswith(_PREFIX)


def metric_names(series: Iterable[MetricLine]) -> list[str]:
    return sorted({one.name for one in series if is_gpu_metric(one.name)})


def object_values(
    series: Iterable[MetricLine], resource: str, metric: str, chosen: Selector = Selector.EVERYTHING
) -> list[ObjectValue]:
    """`chosen`: by the labels of the series."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in series:
        if one.name == metric and chosen.matches(one.labels) and (key := _object(one.labels, resource)) is not None:
            found[key].append(one.value)
    is_summed = any(part in metric for part in _SUMMED)
    return [
        ObjectValue(namespace, name, sum(values) if is_summed else sum(values) / len(values))
        for (namespace, name), values in sorted(found.items())
    ]


def _object(labels: Mapping[str, str], resource: str) -> tuple[str, str] | None:
    """Namespace and name of the object that a series is about."""
    namespace, pod, node = (labels.get(name, "") for name in (_NAMESPACE, _POD, _NODE))
    if resource == NODES:
        return ("", node) if node else None
    if not pod or not namespace:
        return None
    return (namespace, pod) if resource == PODS else ("", namespace)
