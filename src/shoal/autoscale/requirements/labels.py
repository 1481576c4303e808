"""Names the labels that every pool may serve without naming them, and the current names of old labels."""

from __future__ import annotations

from typing import Final

from shoal.api import stated_capacity

POOL_LABEL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE_LABEL: Final = stated_capacity.CAPACITY_TYPE_LABEL
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
ARCH_LABEL: Final = "kubernetes.io/arch"
OS_LABEL: Final = "kubernetes.io/os"

WELL_KNOWN: Final[frozenset[str]] = frozenset(
    {
        POOL_LABEL,
        CAPACITY_TYPE_LABEL,
        ZONE_LABEL,
        REGION_LABEL,
        INSTANCE_TYPE_LABEL,
        ARCH_LABEL,
        OS_LABEL,
        "node.kubernetes.io/windows-build",
    }
)

_CURRENT: Final = {
    "failure-domain.beta.kubernetes.io/zone": ZONE_LABEL,
    "failure-domain.beta.kubernetes.io/region": REGION_LABEL,
    "beta.kubernetes.io/arch": ARCH_LABEL,
    "beta.kubernetes.io/os": OS_LABEL,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE_LABEL,
    "karpenter.sh/provisioner-name": POOL_LABEL,
}


def current_label(key: str) -> str:
    """The current name of a label; most have only one."""
    return _CURRENT.get(key, key)
