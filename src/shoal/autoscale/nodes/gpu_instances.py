"""Makes instance types of the table of cloud machines with GPUs, for pools whose cloud is not asked.

Capacity and list prices are facts of the table; what system and kubelet keep, and which zones have a type, are
estimates, because only the cloud knows them. A machine without a list price is left out: a plan could not compare it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final

from shoal.autoscale.nodes.instance_types import ON_DEMAND, SPOT, InstanceType, Offering
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements.labels import (
    ARCH_LABEL,
    INSTANCE_TYPE_LABEL,
    OS_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
)
from shoal.data.gpus import PRODUCT_LABEL
from shoal.data.instances import Instance, catalog
from shoal.devices.product_names import product_label

_GIB: Final = 2**30
_PODS: Final = 110
MEMORY_KEPT: Final = 0.075
"""The part of the memory that hypervisor, system and kubelet keep: Karpenter's own estimate for AWS."""
_CPU_KEPT_MILLI: Final = 200

_CLOUDS: Final = {
    "EC2NodeClass": "aws",
    "AWSNodeTemplate": "aws",
    "GCENodeClass": "gcp",
    "AKSNodeClass": "azure",
}
_ZONE_SUFFIX: Final = {"aws": "a", "gcp": "-a", "azure": "-1"}
_RESOURCES: Final = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}


def types_for_pool(pool: NodePool, zones: Sequence[str] = ()) -> tuple[InstanceType, ...]:
    """The types of the pool's cloud; of all clouds where its node class does not tell it. `zones`: of the cluster."""
    cloud = _CLOUDS.get(pool.node_class, "")
    wanted = pool.requirements.get(ZONE_LABEL)
    named = tuple(sorted(wanted.values)) if not wanted.is_open else tuple(zones)
    return tuple(
        _type(one, named or (_usual_zone(one),))
        for one in catalog().instances
        if one.usd is not None and (not cloud or one.provider == cloud)
    )


def type_named(name: str, zones: Sequence[str]) -> InstanceType | None:
    """The type of the table with this name, offered in these zones; None if the table has none, or not its price."""
    return next((_type(one, zones) for one in catalog().instances if one.type == name and one.usd is not None), None)


def _usual_zone(one: Instance) -> str:
    return f"{one.region or one.provider}{_ZONE_SUFFIX.get(one.provider, '-a')}"


def _type(one: Instance, zones: Iterable[str]) -> InstanceType:
    model = one.model()
    resource = _RESOURCES.get(model.vendor if model is not None else "nvidia", "nvidia.com/gpu")
    memory = round(one.memory_gib * _GIB)
    prices = {ON_DEMAND: float(one.usd or 0)} | _spot(one)
    return InstanceType(
        name=one.type,
        capacity={"cpu": one.vcpus * 1000, "memory": memory, "pods": _PODS, resource: one.gpus},
        overhead={"cpu": _CPU_KEPT_MILLI, "memory": round(memory * MEMORY_KEPT)},
        labels=_labels(one),
        offerings=tuple(Offering(zone, kind, price) for zone in zones for kind, price in prices.items()),
    )


def _spot(one: Instance) -> dict[str, float]:
    """The middle of the known prices, or the list price less the usual discount; nothing where neither is known."""
    if one.spot_usd is not None:
        return {SPOT: float(sum(one.spot_usd)) / 2}
    if one.spot_discount is not None and one.usd is not None:
        return {SPOT: float(one.usd * (1 - one.spot_discount))}
    return {}


def _labels(one: Instance) -> dict[str, tuple[str, ...]]:
    model = one.model()
    labels = {INSTANCE_TYPE_LABEL: one.type, ARCH_LABEL: one.arch, OS_LABEL: "linux"}
    if one.region:
        labels[REGION_LABEL] = one.region
    if model is not None and model.vendor == "nvidia":
        labels["nvidia.com/gpu.count"] = str(one.gpus)
        labels["nvidia.com/gpu.memory"] = str(model.memory_mib())
        if model.labels:
            labels[PRODUCT_LABEL] = product_label(model)
    if one.provider == "aws":
        labels |= _aws_labels(one)
    return {key: (value,) for key, value in labels.items()}


def _aws_labels(one: Instance) -> dict[str, str]:
    model = one.model()
    prefix = "karpenter.k8s.aws/instance"
    return {
        f"{prefix}-family": one.family,
        f"{prefix}-category": "".join(takewhile(str.isalpha, one.family)),
        f"{prefix}-size": one.type.partition(".")[2],
        f"{prefix}-cpu": str(one.vcpus),
        f"{prefix}-memory": str(round(one.memory_gib * 1024)),
        f"{prefix}-gpu-name": one.gpu.partition("-")[0].lower(),
        f"{prefix}-gpu-manufacturer": model.vendor if model is not None else "nvidia",
        f"{prefix}-gpu-count": str(one.gpus),
        f"{prefix}-gpu-memory": str(round(one.gpu_gib * 1024)),
    }
